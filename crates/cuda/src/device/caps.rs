//! The driver's capabilities, in the originals' words. Queries every device, measures on none.

use super::{Device, cuda_version, device_count, format_version, fp8, state};
use crate::error::Unavailable;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use holdpoint_model::caps::{Cap, CudaCaps, CudaDeviceCaps, Fp8Caps};

/// The driver's capabilities. Each device is opened once, since a listed one may still refuse.
pub fn caps() -> (CudaCaps, Fp8Caps) {
    // SAFETY: only tries to load the library.
    let has_library = unsafe { sys::is_culib_present() };
    let (devices, problem) = match device_count() {
        Ok(count) => ((0..count).map(device_caps).collect(), None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let driver_version = state::driver_version().ok();
    let cuda_version = has_library.then(cuda_version).flatten().map(format_version);
    summarize(devices, problem, driver_version, cuda_version)
}

fn device_caps(ordinal: u32) -> CudaDeviceCaps {
    let (name, major, minor) = query_device(ordinal).unwrap_or_else(|| ("unknown device".to_owned(), 0, 0));
    let problem = Device::open(ordinal).err();
    CudaDeviceCaps {
        ordinal,
        name,
        compute_capability: format!("{major}.{minor}"),
        available: problem.is_none(),
        reason: problem.as_ref().map(|error| error.reason.to_owned()),
        detail: problem.map(|error| error.detail),
        fp8: Cap::new(fp8(major).err()),
    }
}

/// Name and compute capability, which need no context.
fn query_device(ordinal: u32) -> Option<(String, i32, i32)> {
    let device = result::device::get(i32::try_from(ordinal).ok()?).ok()?;
    // SAFETY: the device was just found.
    let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) }.ok();
    Some((
        result::device::get_name(device).ok()?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

/// The originals' keys describe the first device, the others all devices.
fn summarize(
    devices: Vec<CudaDeviceCaps>,
    problem: Option<Unavailable>,
    driver_version: Option<String>,
    cuda_version: Option<String>,
) -> (CudaCaps, Fp8Caps) {
    let first = devices.first();
    let available = devices.iter().any(|device| device.available);
    let (reason, detail) = match (&problem, first) {
        _ if available => (None, None),
        (Some(error), _) => (Some(error.reason.to_owned()), Some(error.detail.clone())),
        (None, Some(first)) => (first.reason.clone(), first.detail.clone()),
        (None, None) => (Some("cuda_device_not_found".to_owned()), None),
    };
    let fp8_reason = match first.filter(|_| available) {
        None => Some("fp8_requires_cuda".to_owned()),
        Some(first) => first.fp8.reason.clone(),
    };
    let fp8 = Fp8Caps {
        available: fp8_reason.is_none(),
        dtype_available: true,
        supported_dtypes: vec!["float8_e4m3fn".to_owned()],
        reason: fp8_reason,
    };
    let cuda = CudaCaps {
        available,
        device_count: u32::try_from(devices.len()).unwrap_or(u32::MAX),
        device_name: first.map(|first| first.name.clone()),
        compute_capability: first.map(|first| first.compute_capability.clone()),
        reason,
        detail,
        driver_version,
        cuda_version,
        devices,
    };
    (cuda, fp8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(ordinal: u32, major: i32, reason: Option<&str>) -> CudaDeviceCaps {
        CudaDeviceCaps {
            ordinal,
            name: format!("device {ordinal}"),
            compute_capability: format!("{major}.0"),
            available: reason.is_none(),
            reason: reason.map(str::to_owned),
            detail: None,
            fp8: Cap::new(fp8(major).err()),
        }
    }

    #[test]
    fn the_first_device_speaks_for_the_seeds_keys_and_any_makes_cuda_available() {
        let devices = vec![device(0, 8, Some("cuda_query_failed")), device(1, 9, None)];
        let (cuda, fp8) = summarize(devices.clone(), None, None, None);
        assert_eq!((cuda.available, cuda.device_count, cuda.reason), (true, 2, None));
        assert_eq!(cuda.device_name.as_deref(), Some("device 0"));
        assert_eq!(fp8.reason.as_deref(), Some("compute_capability_below_sm90"));

        let (cuda, fp8) = summarize(devices[..1].to_vec(), None, None, None);
        assert_eq!((cuda.available, cuda.reason.as_deref()), (false, Some("cuda_query_failed")));
        assert_eq!(fp8.reason.as_deref(), Some("fp8_requires_cuda"));
    }

    #[test]
    fn without_a_driver_the_reason_and_the_remedy_are_reported() {
        let none = Unavailable::new("cuda_unavailable", "install it");
        let (cuda, _) = summarize(Vec::new(), Some(none), None, None);
        assert_eq!(cuda.reason.as_deref(), Some("cuda_unavailable"));
        assert_eq!(cuda.detail.as_deref(), Some("install it"));
        assert!(cuda.devices.is_empty() && !cuda.available);
    }
}
