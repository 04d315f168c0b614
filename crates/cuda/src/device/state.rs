//! Clocks, temperature and other state of a device, read through the driver's management library.

use super::nvml::{Clock, Nvml, NvmlDevice, NvmlError};
use crate::error::Unavailable;
use crate::trace;
use holdpoint_model::machine::DeviceState;
use std::ffi::CString;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The energy counter itself moves in steps of this, and reading it takes 3 ms, so it is not read in between.
const ENERGY_EVERY: Duration = Duration::from_millis(100);

/// The driver's version. An error says why its management library cannot be used: then there are no clocks, temperatures or
/// throttle reasons either.
pub fn driver_version() -> Result<String, Unavailable> {
    Nvml::open().and_then(|nvml| nvml.driver_version()).map_err(|error| match error {
        NvmlError::Missing => {
            let detail = "there is no libnvidia-ml.so: install the NVIDIA driver with its management library";
            Unavailable::new("nvml_library_not_found", detail)
        }
        error => {
            let detail = format!("the management library answers \"{error}\": look at nvidia-smi");
            Unavailable::new("nvml_query_failed", detail)
        }
    })
}

/// Reads the state of one device; what cannot be read is absent.
pub struct StateReader {
    nvml: Option<Nvml>,
    /// Its index in the library, which may differ from the driver's; lookup by it is fast.
    index: u32,
    /// Never changes and takes a millisecond to read, so it is read once.
    sm_mhz_max: Option<u32>,
    /// The same.
    power_limit_w: Option<f64>,
    energy_read: Mutex<Option<Instant>>,
}

impl StateReader {
    pub fn new(uuid: &str) -> Self {
        let nvml = Nvml::open().ok();
        let uuid = CString::new(uuid).unwrap_or_default();
        let device = nvml.as_ref().and_then(|nvml| nvml.device_by_uuid(&uuid).ok());
        let index = device.as_ref().and_then(|device| device.index().ok());
        let sm_mhz_max = device.as_ref().and_then(|device| device.clock_mhz_max(Clock::Sm).ok());
        let power_limit_w =
            device.and_then(|device| device.power_limit_mw().ok()).map(|mw| f64::from(mw) / 1e3);
        let (energy_read, nvml) = (Mutex::new(None), nvml.filter(|_| index.is_some()));
        Self { nvml, index: index.unwrap_or(0), sm_mhz_max, power_limit_w, energy_read }
    }

    /// The most power that the device may draw.
    pub fn power_limit_w(&self) -> Option<f64> {
        self.power_limit_w
    }

    /// The highest clock of the multiprocessors.
    pub fn sm_mhz_max(&self) -> Option<u32> {
        self.sm_mhz_max
    }

    pub fn driver_version(&self) -> Option<String> {
        self.nvml.as_ref()?.driver_version().ok()
    }

    pub fn read(&self) -> Option<DeviceState> {
        let device = self.nvml.as_ref()?.device_by_index(self.index).ok()?;
        let throttle_reasons =
            trace::step("nvml", "reasons", || device.throttle_reasons()).unwrap_or_default();
        let processes = trace::step("nvml", "processes", || device.pids()).unwrap_or_default();
        Some(DeviceState {
            sm_mhz: trace::step("nvml", "SM clock", || device.clock_mhz(Clock::Sm)).ok(),
            sm_mhz_max: self.sm_mhz_max,
            memory_mhz: trace::step("nvml", "memory clock", || device.clock_mhz(Clock::Memory)).ok(),
            temperature_c: trace::step("nvml", "temperature", || device.temperature_c()).ok(),
            power_w: trace::step("nvml", "power", || device.power_mw()).ok().map(|mw| f64::from(mw) / 1e3),
            power_limit_w: self.power_limit_w,
            energy_j: self.energy_j(&device),
            throttle_reasons,
            processes,
        })
    }

    /// Millijoules since the driver was loaded.
    pub fn energy_mj(&self) -> Option<u64> {
        self.nvml.as_ref()?.device_by_index(self.index).ok()?.energy_mj().ok()
    }

    /// Joules since the driver was loaded, unless they were read just now.
    fn energy_j(&self, device: &NvmlDevice<'_>) -> Option<f64> {
        let mut read = self.energy_read.lock().ok()?;
        if read.is_some_and(|at| at.elapsed() < ENERGY_EVERY) {
            return None;
        }
        *read = Some(Instant::now());
        trace::step("nvml", "energy", || device.energy_mj()).ok().map(|mj| mj as f64 / 1e3)
    }
}
