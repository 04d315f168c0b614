//! Finds the run-time compiler and its headers where CUDA or pip put them.

use crate::error::Unavailable;
use std::path::{Path, PathBuf};

/// A run-time compiler and its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    pub library: PathBuf,
    /// The folder with `cuda_fp16.h`.
    pub include: PathBuf,
}

/// Names of the library, newest first.
const LIBRARIES: &[&str] = &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Looks in `$HOLDPOINT_CUDA`, `$CUDA_HOME`, `$CUDA_PATH`, the usual places of the toolkit, and then in Python's packages.
pub fn search() -> Result<Toolkit, Unavailable> {
    // Python is only started when nothing was found without it.
    let packages = std::iter::once_with(python_packages).flatten().flat_map(|package| parts(&package));
    let found = find_first(roots().into_iter().chain(packages))?;
    found.ok_or_else(|| {
        let detail = "libnvrtc was found neither where CUDA puts it nor in Python's packages: install the CUDA toolkit, \
                      or `pip install nvidia-cuda-nvrtc nvidia-cuda-runtime`, or set HOLDPOINT_CUDA to its folder";
        Unavailable::new("nvrtc_not_found", detail)
    })
}

/// The first folder with a compiler and its headers; if none has both, the problem with the last one that had a compiler.
fn find_first(folders: impl Iterator<Item = PathBuf>) -> Result<Option<Toolkit>, Unavailable> {
    let mut problem = None;
    for folder in folders {
        match find_in(&folder) {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            Err(error) => problem = Some(error),
        }
    }
    problem.map_or(Ok(None), Err)
}

/// Where a toolkit may be: as the environment says, then the usual places.
pub(super) fn roots() -> Vec<PathBuf> {
    let set =
        ["HOLDPOINT_CUDA", "CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    set.chain(["/usr/local/cuda", "/opt/cuda", "/usr"].map(PathBuf::from)).collect()
}

/// Looks under the root of a toolkit, or of a Python package with the same layout.
fn find_in(root: &Path) -> Result<Option<Toolkit>, Unavailable> {
    let folders =
        ["lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
    let libraries =
        folders.iter().flat_map(|folder| LIBRARIES.iter().map(move |name| root.join(folder).join(name)));
    let Some(library) = libraries.into_iter().find(|path| path.exists()) else { return Ok(None) };
    let includes = [
        root.join("include"),
        root.join("targets/x86_64-linux/include"),
        // Packages for CUDA 12 have the compiler and the headers side by side.
        root.join("../cuda_runtime/include"),
    ];
    match includes.into_iter().find(|folder| folder.join("cuda_fp16.h").exists()) {
        Some(include) => Ok(Some(Toolkit { library, include })),
        None => {
            let detail = format!(
                "{} is there, cuda_fp16.h beside it is not: install the toolkit's headers, or `pip install nvidia-cuda-runtime`",
                library.display()
            );
            Err(Unavailable::new("cuda_headers_not_found", detail))
        }
    }
}

/// The folders in Python's package `nvidia`: one per part, or one for all.
fn parts(nvidia: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> =
        std::fs::read_dir(nvidia).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    // Those that hold everything first, of them the newest: cu13 before cuda_nvrtc.
    let rank = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.strip_prefix("cu").and_then(|version| version.parse::<u32>().ok())
    };
    parts.sort_by_key(|path| std::cmp::Reverse(rank(path)));
    parts
}

/// The folders of the package `nvidia`, as the Python on the path knows them.
fn python_packages() -> Vec<PathBuf> {
    let script = "import nvidia; print('\\n'.join(nvidia.__path__))";
    let output = holdpoint_process::command("python3").args(["-c", script]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn a_toolkit_and_packages_of_both_kinds_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let toolkit = dir.path().join("cuda");
        assert_eq!(find_in(&toolkit), Ok(None));
        touch(&toolkit.join("lib64/libnvrtc.so"));
        assert_eq!(find_in(&toolkit).unwrap_err().reason, "cuda_headers_not_found");
        touch(&toolkit.join("include/cuda_fp16.h"));
        assert_eq!(find_in(&toolkit).unwrap().unwrap().include, toolkit.join("include"));

        let packages = dir.path().join("nvidia");
        let find = || find_first(parts(&packages).into_iter());
        assert_eq!(find(), Ok(None));
        touch(&packages.join("cuda_nvrtc/lib/libnvrtc.so.12"));
        touch(&packages.join("cuda_runtime/include/cuda_fp16.h"));
        assert!(find().unwrap().unwrap().library.ends_with("libnvrtc.so.12"));
        touch(&packages.join("cu13/lib/libnvrtc.so.13"));
        touch(&packages.join("cu13/include/cuda_fp16.h"));
        assert!(find().unwrap().unwrap().library.ends_with("cu13/lib/libnvrtc.so.13"));
    }
}
