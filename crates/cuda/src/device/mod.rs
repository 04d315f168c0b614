//! Finds and opens a device; its memory and its state.

mod caps;
mod memory;
mod nvml;
mod state;

pub use caps::caps;
pub use memory::Buffer;
pub(crate) use memory::Flag;
use state::StateReader;
pub use state::driver_version;

use crate::error::{CudaError, Unavailable};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{CudaContext, CudaStream, result};
use holdpoint_model::machine::{CudaVersions, DeviceState};
use holdpoint_model::protocol::DeviceInfo;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The oldest CUDA version of a driver: older ones lack calls that timing needs.
const CUDA_MIN: i32 = 12_080;

const NO_DEVICE: &str = "the driver finds no device: check nvidia-smi and CUDA_VISIBLE_DEVICES";

/// A device with one stream, on which everything runs in order.
pub struct Device {
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) state: Arc<StateReader>,
    pub info: DeviceInfo,
    /// Architecture to compile for, such as `sm_90a`.
    pub arch: String,
    pub l2_bytes: usize,
    pub multiprocessors: u32,
    /// Shared memory that a block can have on request.
    pub shared_bytes: usize,
    pub capability: (i32, i32),
}

/// Number of devices, at least one.
pub fn device_count() -> Result<u32, Unavailable> {
    // SAFETY: only tries to load the library.
    if !unsafe { sys::is_culib_present() } {
        let detail =
            "there is no libcuda.so: install the NVIDIA driver, or measure on a machine that has one";
        return Err(Unavailable::new("cuda_unavailable", detail));
    }
    check_version(cuda_version().unwrap_or(0))?;
    result::init().map_err(|error| not_found(&error))?;
    match result::device::get_count() {
        Ok(count) if count > 0 => Ok(count.unsigned_abs()),
        Ok(_) => Err(Unavailable::new("cuda_device_not_found", NO_DEVICE)),
        Err(error) => Err(not_found(&error)),
    }
}

/// The driver's CUDA version; its library must be there.
fn cuda_version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: writes one number, and may be called before anything else.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok().map(|()| version)
}

/// Makes no context.
pub fn device_name(ordinal: u32) -> Option<String> {
    let device = result::device::get(i32::try_from(ordinal).ok().filter(|_| device_count().is_ok())?).ok()?;
    result::device::get_name(device).ok()
}

fn check_version(version: i32) -> Result<(), Unavailable> {
    if version >= CUDA_MIN {
        return Ok(());
    }
    let detail = format!(
        "the driver speaks CUDA {}, {} or newer is needed: update it to 570 or later",
        format_version(version),
        format_version(CUDA_MIN)
    );
    Err(Unavailable::new("cuda_driver_too_old", detail))
}

/// 13000 is 13.0.
fn format_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn not_found(error: &cudarc::driver::DriverError) -> Unavailable {
    match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Unavailable::new("cuda_device_not_found", NO_DEVICE),
        code => {
            let detail = format!("the driver answers {code:?}: look at nvidia-smi and the kernel log");
            Unavailable::new("cuda_query_failed", detail)
        }
    }
}

impl Device {
    pub fn open(ordinal: u32) -> Result<Self, Unavailable> {
        let count = device_count()?;
        if ordinal >= count {
            let detail = format!("device {ordinal} was asked for, there are {count}, counted from 0");
            return Err(Unavailable::new("cuda_device_index_out_of_range", detail));
        }
        Self::open_found(ordinal).map_err(|error| not_found(&error))
    }

    fn open_found(ordinal: u32) -> Result<Self, cudarc::driver::DriverError> {
        let context = CudaContext::new(ordinal as usize)?;
        // SAFETY: all work goes to one stream, so nothing needs to be waited for across streams.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let (major, minor) = context.compute_capability()?;
        let uuid = uuid_text(&context.uuid()?.bytes.map(|byte| byte as u8));
        let state = Arc::new(StateReader::new(&uuid));
        let attribute = |attribute| context.attribute(attribute).map(i32::unsigned_abs);
        let mhz = |of| attribute(of).ok().map(|khz| khz / 1_000).filter(|mhz| *mhz > 0);
        let info = DeviceInfo {
            ordinal,
            name: context.name()?,
            uuid,
            compute_capability: format!("{major}.{minor}"),
            versions: CudaVersions {
                driver: state.driver_version().unwrap_or_default(),
                cuda: cuda_version().map(format_version).unwrap_or_default(),
                nvrtc: None,
            },
            multiprocessors: Some(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            // Boost clocks go beyond the driver's figure.
            sm_mhz_max: state.sm_mhz_max().or_else(|| mhz(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)),
            memory_mhz_max: mhz(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            memory_bus_bits: attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).ok(),
            l2_bytes: Some(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into()),
        };
        Ok(Self {
            info,
            arch: arch(major, minor),
            l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
                as usize,
            capability: (major, minor),
            state,
            stream,
        })
    }

    pub fn synchronize(&self) -> Result<(), CudaError> {
        Ok(self.stream.synchronize()?)
    }

    pub fn state(&self) -> Option<DeviceState> {
        self.state.read()
    }

    /// Begins to read its state, which takes milliseconds, beside what this thread does.
    pub fn state_meanwhile(&self) -> JoinHandle<Option<DeviceState>> {
        let state = self.state.clone();
        std::thread::spawn(move || state.read())
    }

    /// The most power that it may draw.
    pub fn power_limit_w(&self) -> Option<f64> {
        self.state.power_limit_w()
    }

    /// Millijoules since the driver was loaded.
    pub fn energy_mj(&self) -> Option<u64> {
        self.state.energy_mj()
    }

    /// Fails with the originals' reason code where it has no 8-bit floats.
    pub fn fp8(&self) -> Result<(), &'static str> {
        fp8(self.capability.0)
    }
}

fn fp8(major: i32) -> Result<(), &'static str> {
    if major >= 9 { Ok(()) } else { Err("compute_capability_below_sm90") }
}

/// Generation-specific instructions (the suffix `a`) are used where a kernel has a path for them.
fn arch(major: i32, minor: i32) -> String {
    let suffix = if (major, minor) == (9, 0) { "a" } else { "" };
    format!("sm_{major}{minor}{suffix}")
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_has_its_own_reason() {
        assert!(check_version(13_000).is_ok() && check_version(12_080).is_ok());
        let error = check_version(12_040).unwrap_err();
        assert_eq!(error.reason, "cuda_driver_too_old");
        assert!(error.detail.contains("12.4") && error.detail.contains("12.8"), "{error}");
    }

    #[test]
    fn hopper_is_compiled_for_with_its_own_instructions() {
        assert_eq!((arch(9, 0), arch(8, 9), arch(10, 0)), ("sm_90a".into(), "sm_89".into(), "sm_100".into()));
    }

    #[test]
    fn a_machine_without_a_device_says_why() {
        let known = [
            "cuda_unavailable",
            "cuda_device_not_found",
            "cuda_device_index_out_of_range",
            "cuda_driver_too_old",
        ];
        let error = Device::open(u32::MAX).err().unwrap();
        assert!(known.contains(&error.reason), "{error}");
    }
}
