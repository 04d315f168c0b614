//! A kernel file with the constants that it is compiled with for a request.

use super::Gpu;
use crate::request::Request;
use holdpoint_cuda::compile::{Config, Source, Unit};
use holdpoint_cuda::{CudaError, Dtype, Kernel};
use holdpoint_model::suite::Variant;

/// A kernel with the constants for a request: its own, or the winner of a tuning, or the op's defaults.
pub(crate) struct KernelChoice {
    pub(crate) unit: Unit,
    pub(crate) kernel_name: String,
    pub(crate) bucket: String,
    pub(crate) source: &'static str,
}

impl KernelChoice {
    /// `names` are those of the fast and the plain kernel, `bucket` the sizes that constants are chosen for.
    pub(crate) fn new(
        gpu: &Gpu,
        request: &Request,
        source: &'static Source,
        names: [&'static str; 2],
        bucket: &[(&str, usize)],
        dtype: Dtype,
    ) -> Self {
        let kernel_name = match request.variant {
            Variant::Fast => names[0],
            Variant::Reference => names[1],
        };
        let bucket = format_bucket(bucket, dtype);
        let known = gpu.registry.get(kernel_name, &bucket).map(|entry| entry.config.clone());
        let (config, source_name) = match (&request.config, known) {
            (Some(config), _) => (config.clone(), "candidate"),
            (None, Some(config)) => (config, "registry_cache"),
            (None, None) => (Config::new(), "heuristic"),
        };
        Self {
            unit: Unit { source, dtype, config },
            kernel_name: kernel_name.to_owned(),
            bucket,
            source: source_name,
        }
    }

    /// Sets constants that were not chosen, so that what is launched is what was compiled.
    pub(crate) fn with(mut self, constants: &[(&str, usize)]) -> Self {
        for (name, value) in constants {
            self.unit.config.entry((*name).to_owned()).or_insert(*value as i64);
        }
        self
    }

    pub(crate) fn constant(&self, name: &str) -> usize {
        self.unit.config.get(name).and_then(|value| usize::try_from(*value).ok()).unwrap_or(1)
    }

    pub(crate) fn kernel(&self, gpu: &mut Gpu) -> Result<Kernel, CudaError> {
        gpu.kernel(&self.unit, &self.kernel_name)
    }
}

/// Sizes in the originals' form: `key=value` by key, joined by `|`.
fn format_bucket(sizes: &[(&str, usize)], dtype: Dtype) -> String {
    let mut parts: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    parts.push(format!("dtype={}", dtype.name()));
    parts.sort();
    parts.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_by_name() {
        assert_eq!(format_bucket(&[("width", 2), ("batch", 1)], Dtype::F16), "batch=1|dtype=f16|width=2");
    }
}
