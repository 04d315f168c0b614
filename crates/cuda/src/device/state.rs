//! The device's state, through the driver's management library. Only reads.

use crate::error::Unavailable;
use holdpoint_model::machine::DeviceState;
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;

/// Version of the driver, as its management library tells it.
///
/// # Errors
/// Why that library cannot be used: then there are no clocks, temperatures or throttle reasons either.
pub fn driver_version() -> Result<String, Unavailable> {
    Nvml::init().and_then(|nvml| nvml.sys_driver_version()).map_err(|error| match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
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
pub(crate) struct StateReader {
    nvml: Option<Nvml>,
    /// Its number among the library's devices, which may differ from the driver's: asking by it is quick.
    index: u32,
}

impl StateReader {
    pub(crate) fn new(uuid: &str) -> Self {
        let nvml = Nvml::init().ok();
        let index = nvml.as_ref().and_then(|nvml| nvml.device_by_uuid(uuid).ok()?.index().ok());
        Self { nvml: nvml.filter(|_| index.is_some()), index: index.unwrap_or(0) }
    }

    pub(crate) fn driver_version(&self) -> Option<String> {
        self.nvml.as_ref()?.sys_driver_version().ok()
    }

    pub(crate) fn read(&self) -> Option<DeviceState> {
        let device = self.nvml.as_ref()?.device_by_index(self.index).ok()?;
        let reasons = device.current_throttle_reasons().ok();
        let own = reasons.map(|reasons| reasons.iter_names().map(|(name, _)| name.to_owned()).collect());
        let processes = device.running_compute_processes().ok();
        Some(DeviceState {
            sm_mhz: device.clock_info(Clock::SM).ok(),
            sm_mhz_max: device.max_clock_info(Clock::SM).ok(),
            memory_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_w: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            energy_j: device.total_energy_consumption().ok().map(|mj| mj as f64 / 1e3),
            throttle_reasons: own.unwrap_or_default(),
            processes: processes.unwrap_or_default().iter().map(|process| process.pid).collect(),
        })
    }
}
