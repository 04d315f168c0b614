//! The variables that measured code sees.

use holdpoint_process::is_secret;
use std::path::{Path, PathBuf};

/// Files of a GitHub step by which it speaks to the runner, and the folder that they are in.
const STEP_FILES: [&str; 6] =
    ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "RUNNER_TEMP"];

/// Variables of tools, which measured code may see on GitLab: there a secret can have any other name.
const TOOLS: [&str; 28] = [
    "PATH",
    "USER",
    "LOGNAME",
    "HOME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "CC",
    "CXX",
    "JAVA_HOME",
    "AR",
    "AS",
    "NM",
    "RANLIB",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "HOLDPOINT_CUDA",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CI",
    "CI_JOB_URL",
    "CI_COMMIT_TAG",
    "CI_COMMIT_REF_NAME",
    "GITLAB_USER_LOGIN",
    "GITLAB_CI",
];
/// Beginnings of such names.
const TOOL_PREFIXES: [&str; 29] = [
    "LC_",
    "MAKE",
    "LD_",
    "GO",
    "PYTHON",
    "RUST",
    "CARGO_",
    "CMAKE_",
    "CUDA_",
    "CUBLAS_",
    "CUDNN_",
    "NCCL_",
    "NVCC_",
    "NVIDIA_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "RAYON_",
    "PYTORCH_",
    "TORCH_",
    "TRITON_",
    "TF_CPP_",
    "TF_ENABLE_",
    "TF_FORCE_",
    "TF_GPU_",
    "TF_NUM_",
    "TF_XLA_",
    "NPY_",
    "NUMEXPR_",
];
/// Ends of such names.
const TOOL_SUFFIXES: [&str; 3] = ["FLAGS", "_PATH", "_PROXY"];
/// Parts of the names of secrets.
const SECRET_PARTS: [&str; 5] = ["TOKEN", "PASS", "SECRET", "CREDENTIAL", "KEY"];
/// The variable that names others that measured code may see.
const PASS: &str = "HOLDPOINT_PASS";

/// The folders of PATH by their full path only. One that is not there could be made later, by what is measured: it is made now.
pub fn clean_path() -> Vec<PathBuf> {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&given).filter(|folder| folder.is_absolute());
    let made = folders.inspect(|folder| drop(std::fs::create_dir_all(folder)));
    made.filter(|folder| folder.is_dir()).collect()
}

/// All of the variables of measured code.
pub fn inside(
    is_gitlab: bool,
    path: &[PathBuf],
    cache: &Path,
    home: Option<PathBuf>,
) -> Vec<(String, String)> {
    let passed = std::env::var(PASS).unwrap_or_default();
    let passed: Vec<&str> = passed.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_seen = |name: &str| match is_gitlab {
        true => is_tool(name) || passed.contains(&name),
        false => !STEP_FILES.contains(&name) && !is_secret(name),
    };
    let mut env: Vec<(String, String)> = all.filter(|(name, _)| is_seen(name)).collect();
    let mut set = |name: &str, value: String| {
        env.retain(|(old, _)| old != name);
        env.push((name.to_owned(), value));
    };
    let path = std::env::join_paths(path).unwrap_or_default();
    set("PATH", path.to_string_lossy().into_owned());
    set("HOLDPOINT_CACHE", cache.to_string_lossy().into_owned());
    if let Some(home) = home {
        set("HOME", home.to_string_lossy().into_owned());
    }
    env
}

fn is_tool(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_known = TOOLS.contains(&name)
        || TOOL_PREFIXES.iter().any(|start| name.starts_with(start))
        || TOOL_SUFFIXES.iter().any(|end| upper.ends_with(end));
    is_known && !is_secret(name) && !SECRET_PARTS.iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_keep_their_variables_and_nothing_else_does() {
        for name in
            ["PATH", "CFLAGS", "CUDA_VISIBLE_DEVICES", "https_proxy", "LD_LIBRARY_PATH", "RUSTFLAGS", "CI"]
        {
            assert!(is_tool(name), "{name}");
        }
        for name in [
            "CI_JOB_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "CI_REGISTRY_PASSWORD",
            "ANY_NAME",
            "CI_PROJECT_DIR",
            "CUDA_KEY",
            "SSH_AUTH_SOCK",
        ] {
            assert!(!is_tool(name), "{name}");
        }
    }
}
