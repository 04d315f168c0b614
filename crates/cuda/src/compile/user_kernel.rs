//! Users' kernels: compiled from files by NVRTC or nvcc, and kept by source, flags, compiler and architecture.

use super::cache::hash_parts;
use super::{Compiler, Config};
use crate::dtype::Dtype;
use crate::error::{CudaError, Unavailable};
use holdpoint_model::FailureCause;
use holdpoint_model::suite::{KernelCompiler, KernelSpec};
use holdpoint_store::Scratch;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Limits on a source with everything it includes.
const BYTES_MAX: u64 = 16 << 20;
const FILES_MAX: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum UserKernelError {
    /// The compiler is not on this machine.
    #[error(transparent)]
    Missing(#[from] Unavailable),
    /// It does not compile, or cannot be read.
    #[error(transparent)]
    Failed(#[from] CudaError),
}

#[derive(Debug, Default, PartialEq)]
struct SourceFiles {
    /// Paths and texts, the source first.
    texts: Vec<(PathBuf, String)>,
    /// Whether an include cannot be resolved from the text, so that the result must not be kept.
    is_open: bool,
}

impl SourceFiles {
    /// Reads a source and follows its `#include`s, whether or not the compiler will: too many files cost a compilation, too few a
    /// wrong answer. Headers that are found nowhere are the compiler's own.
    fn read(source: &Path, folders: &[PathBuf]) -> Result<Self, CudaError> {
        let mut files = Self::default();
        let mut bytes_count = 0;
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![source.to_owned()]);
        while let Some(path) = waiting.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            bytes_count += std::fs::metadata(&path).map_err(|error| failed(&path, &error))?.len();
            if bytes_count > BYTES_MAX || seen.len() > FILES_MAX {
                return Err(failed(&path, "it includes more than 16 MiB or 1000 files"));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
            for line in text.lines() {
                let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
                let Some(rest) = rest.trim_start().strip_prefix("include") else { continue };
                let rest = rest.trim_start();
                let (name, beside) = match rest.chars().next() {
                    Some('"') => (rest[1..].split('"').next(), path.parent()),
                    Some('<') => (rest[1..].split('>').next(), None),
                    _ => {
                        files.is_open = true;
                        continue;
                    }
                };
                let Some(name) = name else { continue };
                let places = beside.into_iter().chain(folders.iter().map(PathBuf::as_path));
                waiting.extend(places.map(|folder| folder.join(name)).find(|file| file.is_file()));
            }
            files.texts.push((path, text));
        }
        Ok(files)
    }
}

/// Header folders named in the flags.
fn include_folders(flags: &[String]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut is_next = false;
    for flag in flags {
        let prefixes = ["-I", "--include-path=", "-isystem="];
        match prefixes.iter().find_map(|prefix| flag.strip_prefix(prefix)) {
            _ if is_next => folders.push(PathBuf::from(flag)),
            Some("") | None => {}
            Some(folder) => folders.push(PathBuf::from(folder)),
        }
        is_next = ["-I", "--include-path", "-isystem"].contains(&flag.as_str());
    }
    folders
}

/// Everything that decides the result, but for the compiler and the files.
fn options(spec: &KernelSpec, dtype: Dtype, config: &Config, arch: &str) -> Vec<String> {
    let arch = match spec.compiler {
        KernelCompiler::Nvrtc => format!("--gpu-architecture={arch}"),
        KernelCompiler::Nvcc => format!("-arch={arch}"),
    };
    let mut options = vec![arch, format!("-D{}", dtype.macro_name())];
    if !spec.flags.iter().any(|flag| flag.contains("-std=")) {
        options.push("-std=c++17".to_owned());
    }
    options.extend(config.iter().map(|(name, value)| format!("-D{name}={value}")));
    options.extend(spec.flags.iter().cloned());
    options
}

impl Compiler {
    /// Machine code of a user's kernel for an architecture: compiled, or kept from a compilation of the same source, included files,
    /// flags, compiler and architecture.
    pub fn user_cubin(
        &self,
        spec: &KernelSpec,
        dtype: Dtype,
        config: &Config,
        arch: &str,
    ) -> Result<Vec<u8>, UserKernelError> {
        let source = Path::new(&spec.source);
        let options = options(spec, dtype, config, arch);
        let files = SourceFiles::read(source, &include_folders(&spec.flags))?;
        let version = match spec.compiler {
            KernelCompiler::Nvrtc => self.nvrtc.as_ref().map_err(Clone::clone)?.version.clone(),
            KernelCompiler::Nvcc => nvcc_version(&find_nvcc()?)?,
        };
        let texts =
            files.texts.iter().flat_map(|(path, text)| [path.to_str().unwrap_or_default(), text.as_str()]);
        let parts = [spec.compiler.name(), version.as_str()].into_iter().chain(texts);
        let key = hash_parts(parts.chain(options.iter().map(String::as_str)));
        if let Some(cubin) = self.cache.get(&key).filter(|_| !files.is_open) {
            return Ok(cubin);
        }
        let cubin = match spec.compiler {
            KernelCompiler::Nvrtc => {
                let nvrtc = self.nvrtc.as_ref().map_err(Clone::clone)?;
                let text = files.texts.first().map_or("", |(_, text)| text);
                let mut options = options;
                if let Some(folder) = source.parent() {
                    let is_here = folder.as_os_str().is_empty();
                    options.push(format!("-I{}", if is_here { Path::new(".") } else { folder }.display()));
                }
                nvrtc.compile(&spec.source, text, &[], &options)?.cubin
            }
            KernelCompiler::Nvcc => nvcc(source, &options)?,
        };
        if !files.is_open {
            // What cannot be kept is compiled again next time.
            let _ = self.cache.put(&key, &cubin);
        }
        Ok(cubin)
    }
}

/// Looks in the toolkit's folders, then on the path.
fn find_nvcc() -> Result<PathBuf, Unavailable> {
    let on_path = std::env::var_os("PATH");
    let folders = on_path.iter().flat_map(std::env::split_paths);
    super::search::roots()
        .into_iter()
        .map(|root| root.join("bin"))
        .chain(folders)
        .map(|folder| folder.join("nvcc"))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let detail = "nvcc was found neither where CUDA puts it nor on the path: install the CUDA toolkit, set CUDA_HOME to its \
                          folder, or leave `compiler = \"nvcc\"` out, so that NVRTC compiles";
            Unavailable::new("nvcc_not_found", detail)
        })
}

fn nvcc_version(nvcc: &Path) -> Result<String, CudaError> {
    let output = holdpoint_process::command(nvcc).arg("--version").output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(failed(nvcc, format!("--version ended with {}", output.status))),
        Err(error) => Err(failed(nvcc, error)),
    }
}

fn nvcc(source: &Path, options: &[String]) -> Result<Vec<u8>, CudaError> {
    let nvcc = find_nvcc().map_err(|error| CudaError::new(FailureCause::NotStarted, error.detail))?;
    let dir = Scratch::new().map_err(|error| failed(source, error))?;
    let cubin = dir.path().join("kernel.cubin");
    let mut command = holdpoint_process::command(nvcc);
    command.arg("-cubin").args(options).arg("-o").arg(&cubin).arg(source);
    let output = command.output().map_err(|error| failed(source, error))?;
    if !output.status.success() {
        let log = [output.stderr, output.stdout].concat();
        let log = String::from_utf8_lossy(&log);
        let reason = super::nvrtc::first_error(&log);
        return Err(failed(source, format!("does not compile ({}): {reason}", output.status)));
    }
    std::fs::read(&cubin).map_err(|error| failed(source, error))
}

fn failed(file: &Path, what: impl Display) -> CudaError {
    CudaError::new(FailureCause::CompileFailed, format!("{}: {what}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_part_of_a_source() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        std::fs::write(at("a.cu"), "#include \"b.cuh\"\n  #  include <c.cuh>\n#include <cuda_fp16.h>\n")
            .unwrap();
        std::fs::write(at("b.cuh"), "#include \"b.cuh\"\n").unwrap();
        std::fs::write(at("deep/c.cuh"), "int c;\n").unwrap();
        let folders = include_folders(&[format!("-I{}", at("deep").display())]);
        let files = SourceFiles::read(&at("a.cu"), &folders).unwrap();
        let mut paths: Vec<_> = files.texts.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(paths[0], at("a.cu"));
        paths.sort();
        assert_eq!(paths, [at("a.cu"), at("b.cuh"), at("deep/c.cuh")]);
        assert!(!files.is_open);
        std::fs::write(at("b.cuh"), "#include WHICH\n").unwrap();
        assert!(SourceFiles::read(&at("a.cu"), &folders).unwrap().is_open);
        let error = SourceFiles::read(&at("none.cu"), &[]).unwrap_err();
        assert!(error.detail.contains("none.cu"), "{error}");
    }

    #[test]
    fn a_source_is_compiled_once_for_each_set_of_flags_files_and_architecture() {
        let dir = tempfile::tempdir().unwrap();
        let compiler = Compiler::new(dir.path(), "none");
        if compiler.version().is_none() {
            eprintln!("skipped: no NVRTC (set HOLDPOINT_CUDA to its folder)");
            return;
        }
        let source = dir.path().join("mine.cu");
        let text =
            "#include \"by.cuh\"\nextern \"C\" __global__ void mine(float* x) { x[threadIdx.x] = BY * N; }\n";
        std::fs::write(&source, text).unwrap();
        std::fs::write(dir.path().join("by.cuh"), "#define BY 2\n").unwrap();
        let spec = |n: u32| KernelSpec {
            source: source.display().to_string(),
            entry: "mine".to_owned(),
            flags: vec![format!("-DN={n}")],
            ..KernelSpec::default()
        };
        let cubin =
            |n: u32, arch: &str| compiler.user_cubin(&spec(n), Dtype::F32, &Config::new(), arch).unwrap();
        let kept = || std::fs::read_dir(super::super::kernels_dir(dir.path())).unwrap().count();
        let first = cubin(1, "sm_90a");
        assert_eq!((cubin(1, "sm_90a") == first, kept()), (true, 1));
        assert_eq!((cubin(3, "sm_90a") == first, kept()), (false, 2));
        assert_eq!((cubin(1, "sm_80") == first, kept()), (false, 3));
        std::fs::write(dir.path().join("by.cuh"), "#define BY 5\n").unwrap();
        assert_eq!((cubin(1, "sm_90a") == first, kept()), (false, 4));
        std::fs::write(dir.path().join("by.cuh"), "#define BY oops\n").unwrap();
        let error =
            compiler.user_cubin(&spec(1), Dtype::F32, &Config::new(), "sm_90a").err().unwrap().to_string();
        assert!(error.contains("mine.cu(2): error") && error.contains("oops"), "{error}");
    }

    #[test]
    fn the_examples_compile_and_hold_every_kernel_that_they_launch() {
        let dir = tempfile::tempdir().unwrap();
        let compiler = Compiler::new(dir.path(), "none");
        if compiler.version().is_none() {
            eprintln!("skipped: no NVRTC (set HOLDPOINT_CUDA to its folder)");
            return;
        }
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for suite in ["split-k/split_k.toml", "kernel-forms/forms.toml"] {
            let path = examples.join(suite);
            let suite = holdpoint_model::Suite::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            for spec in suite.workloads.into_iter().filter_map(|workload| workload.task.kernel().cloned()) {
                if spec.file_kind() != holdpoint_model::suite::KernelFileKind::Source {
                    continue;
                }
                let source = path.with_file_name(&spec.source).display().to_string();
                let spec = KernelSpec { source, ..spec };
                let cubin = compiler.user_cubin(&spec, Dtype::F16, &Config::new(), "sm_90a").unwrap();
                for launch in spec.launches() {
                    let section = format!(".text.{}\0", launch.entry);
                    let is_there = cubin.windows(section.len()).any(|bytes| bytes == section.as_bytes());
                    assert!(is_there, "{}: no {}", spec.source, launch.entry);
                }
            }
        }
    }

    #[test]
    fn folders_are_named_in_one_flag_or_two() {
        let flags = ["-Ione", "-I", "two", "--include-path=three", "-DI=4"].map(str::to_owned);
        assert_eq!(include_folders(&flags), ["one", "two", "three"].map(PathBuf::from));
    }
}
