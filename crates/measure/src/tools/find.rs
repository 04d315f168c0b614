//! Finds the tools and their versions, and whether GPU counters may be read.

use super::process::{Output, capture};
use super::unavailable;
use holdpoint_model::limits::clean_text;
use holdpoint_model::profile::{ToolInfo, Unavailable};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a tool may take to print its version; on its first start ncu unpacks itself.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Nsight Compute.
    Ncu,
    Sanitizer,
}

impl Tool {
    /// The program, the environment variable with its path, and the prefix of its reason codes.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Ncu => ("ncu", "HOLDPOINT_NCU", "ncu"),
            Self::Sanitizer => ("compute-sanitizer", "HOLDPOINT_SANITIZER", "sanitizer"),
        }
    }
}

pub fn find(tool: Tool) -> Result<ToolInfo, Unavailable> {
    let (program, variable, prefix) = tool.names();
    let not_found = |detail: String| unavailable(&format!("{prefix}_not_found"), detail);
    let path = match std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from) {
        Some(path) if path.is_file() => path,
        Some(path) => {
            return Err(not_found(format!("{variable} is {}, which is no file", path.display())));
        }
        None => candidates(tool)
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| not_found(format!("{program} is neither on the PATH nor where CUDA puts it")))?,
    };
    // Workloads may run in another folder.
    let path = std::path::absolute(&path).unwrap_or(path);
    let name = path.display().to_string();
    let refused = |what: String| {
        unavailable(&format!("{prefix}_not_usable"), format!("{name} --version: {}", clean_text(&what)))
    };
    match capture(&[name.clone(), "--version".to_owned()], "", None, VERSION_TIMEOUT) {
        Ok(Output { status, stdout, .. }) => match version(&stdout) {
            Some(version) if status.success() => {
                Ok(ToolInfo { name: program.to_owned(), version, path: name })
            }
            _ => Err(refused(format!("{status}: {}", stdout.lines().next().unwrap_or("nothing")))),
        },
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Parses `Version 2025.3.1.0 (build 36398880) (public-release)`.
fn version(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Version "))?;
    Some(clean_text(line.split_whitespace().next()?))
}

/// Possible paths, the likeliest first.
fn candidates(tool: Tool) -> Vec<PathBuf> {
    let (program, ..) = tool.names();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join(program)).collect();
    for variable in ["HOLDPOINT_CUDA", "CUDA_HOME", "CUDA_PATH"] {
        found.extend(std::env::var_os(variable).map(|folder| Path::new(&folder).join("bin").join(program)));
    }
    found.push(Path::new("/usr/local/cuda/bin").join(program));
    found.extend(
        newest_first("/usr/local", "cuda-").into_iter().map(|folder| folder.join("bin").join(program)),
    );
    match tool {
        Tool::Ncu => {
            let folders = newest_first("/opt/nvidia/nsight-compute", "");
            found.extend(folders.into_iter().map(|folder| folder.join(program)));
        }
        Tool::Sanitizer => found.push("/usr/local/cuda/compute-sanitizer/compute-sanitizer".into()),
    }
    found
}

/// Folders whose names have this prefix, ordered by the numbers in their names.
fn newest_first(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let numbers = |path: &PathBuf| -> Vec<u32> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|e| e.path())
        .collect();
    found.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    found
}

/// Whether GPU counters may be read, as far as can be known without reading any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Granted,
    /// Only administrators may, and this process has not the rights.
    Refused,
    Unknown,
}

pub(crate) fn counters_permission() -> Permission {
    let Ok(text) = std::fs::read_to_string("/proc/driver/nvidia/params") else { return Permission::Unknown };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    permission(&text, &status)
}

/// Capability number 21 is CAP_SYS_ADMIN, 38 CAP_PERFMON.
fn permission(params: &str, status: &str) -> Permission {
    let value =
        |text: &str, key: &str| text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()));
    let capabilities =
        value(status, "CapEff:").and_then(|hex| u64::from_str_radix(&hex, 16).ok()).unwrap_or(0);
    match value(params, "RmProfilingAdminOnly:").as_deref() {
        Some("0") => Permission::Granted,
        Some("1") if capabilities & (1 << 21 | 1 << 38) != 0 => Permission::Granted,
        Some("1") => Permission::Refused,
        _ => Permission::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_what_the_tools_print() {
        let text = "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\n\
                    Version 2025.3.1.0 (build 36398880) (public-release)\n";
        assert_eq!(version(text).as_deref(), Some("2025.3.1.0"));
        assert_eq!(version("hello\nVersion \n"), None);
    }

    #[test]
    fn counters_are_refused_to_those_without_the_capability() {
        let status = |mask: &str| format!("Name:\tx\nCapEff:\t{mask}\n");
        let (none, all) = (status("0000000000000000"), status("000001ffffffffff"));
        assert_eq!(permission("RmProfilingAdminOnly: 0\n", &none), Permission::Granted);
        assert_eq!(permission("A: 2\nRmProfilingAdminOnly: 1\n", &none), Permission::Refused);
        assert_eq!(permission("RmProfilingAdminOnly: 1\n", &all), Permission::Granted);
        assert_eq!(permission("RmProfilingAdminOnly: 1\n", &status("0000000000200000")), Permission::Granted);
        assert_eq!(permission("", &all), Permission::Unknown);
    }
}
