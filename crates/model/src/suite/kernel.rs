//! A kernel of the user's own in place of an op's: its source, how it is compiled, how it is launched.

use super::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A CUDA kernel that takes the arguments of the op's plain kernel (`docs/kernels.md` lists them).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// Its source file, relative to the suite file; of a revision, to the same folder of its checkout.
    pub source: String,
    /// Its name in the source; declared `extern "C" __global__`.
    pub entry: String,
    /// Blocks along x, y, z: one to three numbers or expressions of the op's sizes, such as `"ceil_div(steps, 64)"`.
    pub grid: Vec<Size>,
    /// Threads of a block along x, y, z.
    pub block: Vec<Size>,
    /// Dynamic shared memory.
    #[serde(default, skip_serializing_if = "Size::is_zero")]
    pub shared_bytes: Size,
    #[serde(default)]
    pub compiler: KernelCompiler,
    /// More flags for the compiler, such as `-DTILE=64`, `--use_fast_math` or `-Ikernels/include`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Conditions on the op's sizes without which the kernel cannot be called, such as `"steps % 64 == 0"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Size>,
}

impl KernelSpec {
    /// The first value that makes no sense, whatever the sizes.
    pub fn check(&self) -> Result<(), String> {
        for (name, text) in [("source", &self.source), ("entry", &self.entry)] {
            if text.is_empty() || text.contains(char::is_control) {
                return Err(format!("kernel.{name} {text:?} names nothing"));
            }
        }
        for (name, sizes) in [("grid", &self.grid), ("block", &self.block)] {
            if !(1..=3).contains(&sizes.len()) {
                return Err(format!("kernel.{name} has {} sizes; one to three are wanted", sizes.len()));
            }
        }
        let mut sizes = self.grid.iter().chain(&self.block).chain([&self.shared_bytes]).chain(&self.requires);
        sizes.try_for_each(Size::check).map_err(|error| format!("kernel: {error}"))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelCompiler {
    /// The run-time compiler, in holdpoint's own process.
    #[default]
    Nvrtc,
    /// The toolkit's driver program, which also knows the host's headers.
    Nvcc,
}

impl KernelCompiler {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvrtc => "nvrtc",
            Self::Nvcc => "nvcc",
        }
    }
}
