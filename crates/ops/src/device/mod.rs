//! The parts that an op's CUDA version is made of: an open device, kernels with their constants, launches and buffers. Must not know
//! any op, nor run one.

mod build;
mod choice;
mod device_file;
mod gpu;
mod oracle;
mod units;
mod winners;

pub use build::{Build, Launches, PrepareError};
pub(crate) use build::{DeviceInput, DeviceOutput};
pub(crate) use choice::KernelChoice;
pub use gpu::Gpu;
pub use oracle::DeviceOracle;
pub(crate) use oracle::Proof;
pub(crate) use units::FULL_ARCH;
pub use units::{ARCHS, Compilation, KernelFile, checked_units};
pub use winners::{Winner, Winners};

use crate::shape::Nchw;
use holdpoint_cuda::compile::{Config, Source};
use holdpoint_cuda::{Arguments, Dtype, Kernel, Launch};

pub(crate) const COMMON: (&str, &str) = ("common.cuh", include_str!("common.cuh"));
pub(crate) const UNITS: (&str, &str) = ("units.cuh", include_str!("units.cuh"));

pub(crate) static DRAW: Source = Source { name: "draw", text: include_str!("draw.cu"), headers: &[COMMON] };
pub(crate) static COMPARE: Source =
    Source { name: "compare", text: include_str!("compare.cu"), headers: &[COMMON] };

pub(crate) const ALL: &[Dtype] = &[Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::E4m3];
pub(crate) const WIDE: &[Dtype] = &[Dtype::F32, Dtype::F16, Dtype::Bf16];

pub(crate) const PLAIN_THREADS: u32 = 256;

/// Launch of a plain kernel: one thread per element.
pub(crate) fn plain_launch(kernel: &Kernel, count: usize, arguments: Arguments) -> Launch {
    let blocks = count.div_ceil(PLAIN_THREADS as usize).clamp(1, 1 << 20);
    kernel.launch(blocks as u32, PLAIN_THREADS, arguments)
}

pub(crate) fn map_sizes(arguments: Arguments, dims: &Nchw) -> Arguments {
    arguments.int(dims.batch).int(dims.channels).int(dims.height).int(dims.width)
}

/// Bytes of the widest access that divides a row and keeps all addresses aligned, at most 16.
pub(crate) fn unit_bytes(row_bytes: usize, misalign: usize, dtype: Dtype) -> usize {
    let mut bytes = 16;
    while bytes > dtype.bytes() && !(row_bytes.is_multiple_of(bytes) && misalign.is_multiple_of(bytes)) {
        bytes /= 2;
    }
    bytes
}

pub(crate) fn grid_x(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

/// All combinations of these values of constants.
pub(crate) fn combinations(axes: &[(&str, &[i64])]) -> Vec<Config> {
    let mut all = vec![Config::new()];
    for (name, values) in axes {
        let with = |config: &Config, value: i64| {
            let mut more = config.clone();
            more.insert((*name).to_owned(), value);
            more
        };
        all = all.iter().flat_map(|config| values.iter().map(|value| with(config, *value))).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_all_combinations() {
        let all = combinations(&[("A", &[1, 2]), ("B", &[3])]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Config::from([("A".to_owned(), 2), ("B".to_owned(), 3)]));
    }

    #[test]
    fn accesses_are_as_wide_as_rows_and_addresses_allow() {
        assert_eq!(unit_bytes(16, 0, Dtype::F16), 16);
        assert_eq!(unit_bytes(24, 0, Dtype::F16), 8);
        assert_eq!(unit_bytes(16, 2, Dtype::F16), 2);
        assert_eq!(unit_bytes(7, 0, Dtype::E4m3), 1);
    }
}
