//! A kernel of the user's own in place of an op's: where its code is, how it is compiled, how it is launched.

use super::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of all workspaces of a kernel, at most.
const WORKSPACE_BYTES_MAX: u64 = 1 << 36;
const LAUNCHES_MAX: usize = 64;

/// A CUDA kernel, or several that are launched one after the other, for an op of holdpoint's or one that the suite declares
/// (`docs/kernels.md`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// Its file, relative to the suite file; of a revision, to the same folder of its checkout. A source is compiled; `.cubin`, `.fatbin` and
    /// `.ptx` are loaded as they are; of a library, `.so`, the function `entry` makes the launches.
    pub source: String,
    /// Its name in the source, declared `extern "C" __global__`; of a library, the C function
    /// `int entry(void *stream, void *const *tensors, const long long *sizes, const char *dtype)`. Absent where `launch` lists several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// Blocks along x, y, z: one to three numbers or expressions of the op's sizes, such as `"ceil_div(steps, 64)"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<Size>,
    /// Threads of a block along x, y, z.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<Size>,
    /// Dynamic shared memory.
    #[serde(default, skip_serializing_if = "Size::is_zero")]
    pub shared_bytes: Size,
    /// Blocks of a cluster along x, y, z.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<Size>,
    /// Whether all blocks run at the same time and may wait for each other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cooperative: bool,
    /// Its arguments, where they are not those of the op's plain kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<KernelArgument>,
    /// Several launches in this order, in place of the one above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch: Vec<LaunchSpec>,
    /// Buffers that the launches share, which hold nothing of use before the first and after the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<WorkspaceSpec>,
    #[serde(default)]
    pub compiler: KernelCompiler,
    /// More flags for the compiler, such as `-DTILE=64`, `--use_fast_math` or `-Ikernels/include`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Conditions on the op's sizes without which the kernel cannot be called, such as `"steps % 64 == 0"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Size>,
}

/// One of several launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchSpec {
    /// The kernel's name.
    pub entry: String,
    /// Blocks along x, y, z.
    pub grid: Vec<Size>,
    /// Threads of a block along x, y, z.
    pub block: Vec<Size>,
    /// Dynamic shared memory.
    #[serde(default, skip_serializing_if = "Size::is_zero")]
    pub shared_bytes: Size,
    /// Blocks of a cluster along x, y, z.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<Size>,
    /// Whether all blocks run at the same time and may wait for each other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cooperative: bool,
    /// Its arguments, where they are not those of the op's plain kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<KernelArgument>,
}

/// A buffer for launches to share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSpec {
    /// The name by which arguments refer to it.
    pub name: String,
    /// Its size: a number or an expression of the op's sizes.
    pub bytes: Size,
    /// Whether it is zero before the first call, as counters must be; otherwise it holds NaN.
    #[serde(default, skip_serializing_if = "is_false")]
    pub zero: bool,
}

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KernelArgument {
    /// The address of a tensor or a workspace by its name; `*` for all arguments of the op's plain kernel; else a whole number, of 4 or 8
    /// bytes as the kernel declares: an expression of the op's sizes.
    Text(String),
    /// A whole number.
    Number(u64),
    /// A 32-bit float.
    Float(FloatArgument),
    /// One over the root of a size, as a 32-bit float.
    Rsqrt(RsqrtArgument),
    /// A tensor map, as TMA takes it.
    Map(MapArgument),
}

/// `{ float = 0.5 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloatArgument {
    pub float: f64,
}

/// `{ rsqrt = "head_dim" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RsqrtArgument {
    pub rsqrt: Size,
}

/// `{ map = "k", sizes = ["batch * heads", "steps", "head_dim"], tile = [1, 64, 64], swizzle_bytes = 128 }`: a `CUtensorMap` in the
/// kernel's `__grid_constant__` parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapArgument {
    /// The tensor or workspace.
    pub map: String,
    /// Its sizes, one to five, the last varies fastest.
    pub sizes: Vec<Size>,
    /// The part that is fetched at once, likewise.
    pub tile: Vec<Size>,
    /// 0, 32, 64 or 128.
    #[serde(default)]
    pub swizzle_bytes: u32,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The form of a kernel's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFileKind {
    /// Compiled here.
    Source,
    /// Machine code or PTX, loaded as it is.
    Binary,
    /// A shared library whose function launches.
    Library,
}

impl KernelSpec {
    pub fn file_kind(&self) -> KernelFileKind {
        let name = self.source.rsplit(['/', '\\']).next().unwrap_or_default();
        // Versions follow the ending of a library: `libmine.so.3`.
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("cubin" | "fatbin" | "ptx") => KernelFileKind::Binary,
            Some("so") => KernelFileKind::Library,
            _ if name.contains(".so.") => KernelFileKind::Library,
            _ => KernelFileKind::Source,
        }
    }

    /// Its launches in order; of a library none.
    pub fn launches(&self) -> Vec<LaunchSpec> {
        if self.file_kind() == KernelFileKind::Library {
            return Vec::new();
        }
        if !self.launch.is_empty() {
            return self.launch.clone();
        }
        vec![LaunchSpec {
            entry: self.entry.clone(),
            grid: self.grid.clone(),
            block: self.block.clone(),
            shared_bytes: self.shared_bytes.clone(),
            cluster: self.cluster.clone(),
            cooperative: self.cooperative,
            arguments: self.arguments.clone(),
        }]
    }

    /// The name that reports give it.
    pub fn name(&self) -> String {
        let entries: Vec<String> = self.launches().into_iter().map(|launch| launch.entry).collect();
        if entries.is_empty() { self.entry.clone() } else { entries.join(" + ") }
    }

    /// The first value that makes no sense, whatever the sizes.
    pub fn check(&self) -> Result<(), String> {
        check_name("kernel.source", &self.source)?;
        let has_one = !self.entry.is_empty() || !self.grid.is_empty() || !self.block.is_empty();
        let has_more = !self.shared_bytes.is_zero() || !self.cluster.is_empty() || !self.arguments.is_empty();
        if !self.launch.is_empty() && (has_one || has_more || self.cooperative) {
            return Err("kernel: entry, grid, block and the like stand in each [[workload.kernel.launch]], not beside them".to_owned());
        }
        if self.launch.len() > LAUNCHES_MAX {
            return Err(format!("kernel: {} launches, at most {LAUNCHES_MAX}", self.launch.len()));
        }
        if self.file_kind() == KernelFileKind::Library {
            check_name("kernel.entry", &self.entry)?;
            if !self.grid.is_empty() || !self.block.is_empty() || has_more || !self.launch.is_empty() {
                return Err("kernel: a library makes its launches itself: grid, block, arguments and launch make no sense".to_owned());
            }
        }
        let mut sizes: Vec<&Size> = self.requires.iter().collect();
        for (at, workspace) in self.workspace.iter().enumerate() {
            check_name("kernel.workspace.name", &workspace.name)?;
            if self.workspace[..at].iter().any(|other| other.name == workspace.name) {
                return Err(format!("kernel: two workspaces are called {:?}", workspace.name));
            }
            sizes.push(&workspace.bytes);
        }
        sizes.into_iter().try_for_each(Size::check).map_err(|error| format!("kernel: {error}"))?;
        self.launches().iter().try_for_each(LaunchSpec::check)
    }

    /// Bytes of each workspace, for these sizes.
    pub fn workspace_bytes(&self, names: &[(&str, u64)]) -> Result<Vec<u64>, String> {
        let mut all = Vec::new();
        for WorkspaceSpec { name, bytes, .. } in &self.workspace {
            let bytes = bytes.value(names)?;
            if bytes == 0 || bytes > WORKSPACE_BYTES_MAX {
                return Err(format!(
                    "workspace {name:?} of {bytes} bytes; 1 to {WORKSPACE_BYTES_MAX} can be had"
                ));
            }
            all.push(bytes);
        }
        Ok(all)
    }
}

impl LaunchSpec {
    fn check(&self) -> Result<(), String> {
        check_name("kernel.entry", &self.entry)?;
        for (name, sizes) in [("grid", &self.grid), ("block", &self.block)] {
            if !(1..=3).contains(&sizes.len()) {
                return Err(format!("kernel.{name} has {} sizes; one to three are wanted", sizes.len()));
            }
        }
        if self.cluster.len() > 3 {
            return Err(format!("kernel.cluster has {} sizes; one to three are wanted", self.cluster.len()));
        }
        let mut sizes: Vec<&Size> = self.grid.iter().chain(&self.block).chain(&self.cluster).collect();
        sizes.push(&self.shared_bytes);
        for argument in &self.arguments {
            match argument {
                KernelArgument::Text(text) if text.is_empty() => {
                    return Err("kernel: an argument without a name".to_owned());
                }
                KernelArgument::Text(text) if text == "*" => {}
                KernelArgument::Text(text) => {
                    Size::Text(text.clone()).check().map_err(|error| format!("kernel: {error}"))?
                }
                KernelArgument::Number(_) => {}
                KernelArgument::Float(FloatArgument { float }) if !float.is_finite() => {
                    return Err(format!("kernel: an argument of {float}"));
                }
                KernelArgument::Float(_) => {}
                KernelArgument::Rsqrt(RsqrtArgument { rsqrt }) => sizes.push(rsqrt),
                KernelArgument::Map(map) => {
                    map.check()?;
                    sizes.extend(map.sizes.iter().chain(&map.tile));
                }
            }
        }
        sizes.into_iter().try_for_each(Size::check).map_err(|error| format!("kernel: {error}"))
    }
}

impl MapArgument {
    fn check(&self) -> Result<(), String> {
        let (sizes, tile) = (self.sizes.len(), self.tile.len());
        if !(1..=5).contains(&sizes) || sizes != tile {
            return Err(format!(
                "kernel: a map of {:?} with {sizes} sizes and {tile} of its tile; one to five, as many of each",
                self.map
            ));
        }
        match self.swizzle_bytes {
            0 | 32 | 64 | 128 => Ok(()),
            bytes => Err(format!(
                "kernel: a map of {:?} swizzled over {bytes} bytes; 0, 32, 64 or 128 is wanted",
                self.map
            )),
        }
    }
}

fn check_name(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err(format!("{what} {text:?} names nothing"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KernelSpec, String> {
        let spec: KernelSpec = toml::from_str(text).map_err(|error| error.to_string())?;
        spec.check().map(|()| spec)
    }

    const SPLIT: &str = r#"
        source = "split.cu"
        workspace = [{ name = "partial", bytes = "4 * batch * heads * steps * head_dim" }, { name = "done", bytes = 4, zero = true }]
        [[launch]]
        entry = "partial"
        grid = ["ceil_div(steps, 64)", 4]
        block = [128]
        shared_bytes = 100_000
        cluster = [2]
        arguments = ["*", "partial", "steps / 4", { rsqrt = "head_dim" }, { float = 0.5 }, 7]
        [[launch]]
        entry = "reduce"
        grid = ["steps"]
        block = [32]
        cooperative = true
        arguments = [{ map = "partial", sizes = ["steps", "head_dim"], tile = [64, 32], swizzle_bytes = 128 }, "out"]
    "#;

    #[test]
    fn a_sequence_of_launches_with_workspaces_is_read() {
        let spec = parse(SPLIT).unwrap();
        let launches = spec.launches();
        assert_eq!((launches.len(), spec.name()), (2, "partial + reduce".to_owned()));
        assert_eq!(launches[0].arguments[1], KernelArgument::Text("partial".to_owned()));
        assert_eq!(launches[0].arguments[4], KernelArgument::Float(FloatArgument { float: 0.5 }));
        assert!(
            launches[1].cooperative
                && matches!(&launches[1].arguments[0], KernelArgument::Map(map) if map.tile.len() == 2)
        );
        let names = [("batch", 1), ("heads", 2), ("steps", 8), ("head_dim", 4)];
        assert_eq!(spec.workspace_bytes(&names), Ok(vec![256, 4]));
        assert!(
            spec.workspace_bytes(&[("batch", 0), ("heads", 2), ("steps", 8), ("head_dim", 4)])
                .unwrap_err()
                .contains("partial")
        );
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(parse(&text).unwrap(), spec);
    }

    #[test]
    fn the_ending_of_a_file_says_what_it_is() {
        let kind = |source: &str| {
            parse(&format!("source = {source:?}\nentry = \"go\"\ngrid = [1]\nblock = [1]"))
                .unwrap()
                .file_kind()
        };
        assert_eq!(
            (kind("a.cu"), kind("b.d/a.cubin"), kind("a.fatbin")),
            (KernelFileKind::Source, KernelFileKind::Binary, KernelFileKind::Binary)
        );
        let library = parse("source = \"build/libmine.so.3\"\nentry = \"go\"").unwrap();
        assert_eq!((library.file_kind(), library.launches()), (KernelFileKind::Library, vec![]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, word) in [
            ("source = \"\"\nentry = \"a\"\ngrid = [1]\nblock = [1]", "kernel.source"),
            ("source = \"a.cu\"\ngrid = [1]\nblock = [1]", "kernel.entry"),
            ("source = \"a.cu\"\nentry = \"a\"\nblock = [1]", "kernel.grid has 0"),
            (
                "source = \"a.cu\"\nentry = \"a\"\ngrid = [1]\nblock = [1]\ncluster = [1, 1, 1, 1]",
                "kernel.cluster has 4",
            ),
            ("source = \"a.so\"\nentry = \"a\"\ngrid = [1]\nblock = [1]", "a library makes its launches"),
            ("source = \"a.so\"", "kernel.entry"),
            (
                "source = \"a.cu\"\nentry = \"a\"\n[[launch]]\nentry = \"b\"\ngrid = [1]\nblock = [1]",
                "stand in each",
            ),
            ("source = \"a.cu\"\n[[launch]]\nentry = \"b\"\ngrid = []\nblock = [1]", "kernel.grid has 0"),
            (
                "source = \"a.cu\"\nentry = \"a\"\ngrid = [1]\nblock = [1]\narguments = [{ map = \"q\", sizes = [1], tile = [1, 1] }]",
                "one to five",
            ),
            (
                "source = \"a.cu\"\nentry = \"a\"\ngrid = [1]\nblock = [1]\narguments = [{ map = \"q\", sizes = [1], tile = [1], swizzle_bytes = 5 }]",
                "over 5 bytes",
            ),
            (
                "source = \"a.cu\"\nentry = \"a\"\ngrid = [1]\nblock = [1]\narguments = [\"q +\"]",
                "it ends where",
            ),
            (
                "source = \"a.cu\"\nentry = \"a\"\ngrid = [1]\nblock = [1]\nworkspace = [{ name = \"w\", bytes = 1 }, { name = \"w\", bytes = 2 }]",
                "two workspaces",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
