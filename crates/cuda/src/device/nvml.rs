//! The driver's management library: the few of its functions that are needed, by their names in C. Must not interpret what they tell.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt;

const FILE: &str = "libnvidia-ml.so.1";
const SUCCESS: c_int = 0;
const INSUFFICIENT_SIZE: c_int = 7;
/// Bytes of the driver's version, at most (`NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE`).
const VERSION_BYTES_MAX: usize = 80;
/// Room for processes that start between two calls.
const PROCESSES_MORE: c_uint = 5;

/// Names of the reasons for which clocks are held back, by their bits from the lowest on (`nvmlClocksThrottleReason…`).
const REASONS: [&str; 9] = [
    "GPU_IDLE",
    "APPLICATIONS_CLOCKS_SETTING",
    "SW_POWER_CAP",
    "HW_SLOWDOWN",
    "SYNC_BOOST",
    "SW_THERMAL_SLOWDOWN",
    "HW_THERMAL_SLOWDOWN",
    "HW_POWER_BRAKE_SLOWDOWN",
    "DISPLAY_CLOCK_SETTING",
];

type Handle = *mut c_void;

#[derive(Debug)]
pub(super) enum NvmlError {
    /// There is no such library.
    Missing,
    /// The error in its words.
    Failed(String),
}

impl fmt::Display for NvmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no {FILE}"),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

/// The values of `nvmlClockType_t` that are read.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    Sm = 1,
    Memory = 2,
}

/// The library, initialised.
pub(super) struct Nvml(Library);

/// `nvmlProcessInfo_v2_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProcessInfo {
    pid: c_uint,
    used_bytes: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

impl Nvml {
    pub(super) fn open() -> Result<Self, NvmlError> {
        // SAFETY: the driver's own library, whose initialisers every program runs that asks about its devices.
        let nvml = Self(unsafe { Library::new(FILE) }.map_err(|_| NvmlError::Missing)?);
        let init = nvml.function::<unsafe extern "C" fn() -> c_int>("nvmlInit_v2")?;
        // SAFETY: it takes no arguments.
        nvml.check(unsafe { init() })?;
        Ok(nvml)
    }

    /// A function of the library. Its type must be the one in nvml.h.
    fn function<F: Copy>(&self, name: &str) -> Result<F, NvmlError> {
        // SAFETY: each caller below states the type that nvml.h declares, and the library stays open while it is called.
        let function = unsafe { self.0.get::<F>(name.as_bytes()) };
        function.map(|function| *function).map_err(|_| NvmlError::Failed(format!("the driver has no {name}")))
    }

    fn check(&self, status: c_int) -> Result<(), NvmlError> {
        if status == SUCCESS {
            return Ok(());
        }
        let describe = self.function::<unsafe extern "C" fn(c_int) -> *const c_char>("nvmlErrorString")?;
        // SAFETY: it gives a constant string for any number.
        let text = unsafe { CStr::from_ptr(describe(status)) };
        Err(NvmlError::Failed(text.to_string_lossy().into_owned()))
    }

    pub(super) fn driver_version(&self) -> Result<String, NvmlError> {
        type Function = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        let mut text = [0_u8; VERSION_BYTES_MAX];
        let function = self.function::<Function>("nvmlSystemGetDriverVersion")?;
        // SAFETY: the length is that of the buffer.
        self.check(unsafe { function(text.as_mut_ptr().cast(), VERSION_BYTES_MAX as c_uint) })?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    pub(super) fn device_by_uuid(&self, uuid: &CStr) -> Result<NvmlDevice<'_>, NvmlError> {
        type Function = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
        let function = self.function::<Function>("nvmlDeviceGetHandleByUUID")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with a zero, and the handle may be written.
        self.check(unsafe { function(uuid.as_ptr(), &mut handle) })?;
        Ok(NvmlDevice { nvml: self, handle })
    }

    pub(super) fn device_by_index(&self, index: u32) -> Result<NvmlDevice<'_>, NvmlError> {
        type Function = unsafe extern "C" fn(c_uint, *mut Handle) -> c_int;
        let function = self.function::<Function>("nvmlDeviceGetHandleByIndex_v2")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle may be written.
        self.check(unsafe { function(index, &mut handle) })?;
        Ok(NvmlDevice { nvml: self, handle })
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        if let Ok(shutdown) = self.function::<unsafe extern "C" fn() -> c_int>("nvmlShutdown") {
            // SAFETY: it takes no arguments, and no device outlives the library.
            unsafe { shutdown() };
        }
    }
}

pub(super) struct NvmlDevice<'a> {
    nvml: &'a Nvml,
    handle: Handle,
}

impl NvmlDevice<'_> {
    /// Calls a function that writes one value.
    fn read<T: Default>(&self, name: &str) -> Result<T, NvmlError> {
        let mut value = T::default();
        let function = self.nvml.function::<unsafe extern "C" fn(Handle, *mut T) -> c_int>(name)?;
        // SAFETY: the handle is the library's, and the value may be written.
        self.nvml.check(unsafe { function(self.handle, &mut value) })?;
        Ok(value)
    }

    /// Calls a function that writes one value of a kind.
    fn read_kind(&self, name: &str, kind: c_uint) -> Result<u32, NvmlError> {
        type Function = unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int;
        let mut value = 0;
        let function = self.nvml.function::<Function>(name)?;
        // SAFETY: the handle is the library's, and the value may be written.
        self.nvml.check(unsafe { function(self.handle, kind, &mut value) })?;
        Ok(value)
    }

    pub(super) fn index(&self) -> Result<u32, NvmlError> {
        self.read("nvmlDeviceGetIndex")
    }

    pub(super) fn clock_mhz(&self, clock: Clock) -> Result<u32, NvmlError> {
        self.read_kind("nvmlDeviceGetClockInfo", clock as c_uint)
    }

    pub(super) fn clock_mhz_max(&self, clock: Clock) -> Result<u32, NvmlError> {
        self.read_kind("nvmlDeviceGetMaxClockInfo", clock as c_uint)
    }

    pub(super) fn temperature_c(&self) -> Result<u32, NvmlError> {
        self.read_kind("nvmlDeviceGetTemperature", 0)
    }

    pub(super) fn power_mw(&self) -> Result<u32, NvmlError> {
        self.read("nvmlDeviceGetPowerUsage")
    }

    pub(super) fn power_limit_mw(&self) -> Result<u32, NvmlError> {
        self.read("nvmlDeviceGetEnforcedPowerLimit")
    }

    /// Since the driver was loaded.
    pub(super) fn energy_mj(&self) -> Result<u64, NvmlError> {
        self.read("nvmlDeviceGetTotalEnergyConsumption")
    }

    pub(super) fn throttle_reasons(&self) -> Result<Vec<String>, NvmlError> {
        let bits: c_ulonglong = self.read("nvmlDeviceGetCurrentClocksThrottleReasons")?;
        let names = REASONS.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
        Ok(names.map(|(_, name)| (*name).to_owned()).collect())
    }

    /// Processes that compute on the device.
    pub(super) fn pids(&self) -> Result<Vec<u32>, NvmlError> {
        type Function = unsafe extern "C" fn(Handle, *mut c_uint, *mut ProcessInfo) -> c_int;
        let function = self.nvml.function::<Function>("nvmlDeviceGetComputeRunningProcesses_v3")?;
        let mut count = 0;
        // SAFETY: without room for any, it writes how many there are.
        match unsafe { function(self.handle, &mut count, std::ptr::null_mut()) } {
            INSUFFICIENT_SIZE => {}
            status => return self.nvml.check(status).map(|()| Vec::new()),
        }
        count += PROCESSES_MORE;
        let mut processes = vec![ProcessInfo::default(); count as usize];
        // SAFETY: there is room for as many as the count says.
        self.nvml.check(unsafe { function(self.handle, &mut count, processes.as_mut_ptr()) })?;
        Ok(processes.iter().take(count as usize).map(|process| process.pid).collect())
    }
}
