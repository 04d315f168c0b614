//! The variables that builds and measured code see: a stated list. Any other may hold a secret, whatever its name.

use crate::secrets::is_secret;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::{Mutex, PoisonError};

/// The variable that names others to pass on, for whoever runs holdpoint: a job, a person.
const PASS: &str = "HOLDPOINT_PASS";

/// Names that a suite passes on.
static OF_SUITES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "NO_COLOR",
    "CI",
    PASS,
    "TMPDIR",
    "TMP",
    "TEMP",
    "CC",
    "CXX",
    "CPP",
    "AR",
    "AS",
    "LD",
    "NM",
    "RANLIB",
    "STRIP",
    "OBJCOPY",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOTMPDIR",
    "GOENV",
    "GOWORK",
    "GOTOOLCHAIN",
    "GOOS",
    "GOARCH",
    "GOAMD64",
    "GOARM",
    "GOARM64",
    "GOMAXPROCS",
    "GOGC",
    "GOMEMLIMIT",
    "GODEBUG",
    "GOEXPERIMENT",
    "GO111MODULE",
    "GOPROXY",
    "GOPRIVATE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOSUMDB",
    "VIRTUAL_ENV",
    "UV_CACHE_DIR",
    "UV_PYTHON",
    "UV_PROJECT_ENVIRONMENT",
    "UV_OFFLINE",
    "PIP_CACHE_DIR",
    "PIP_NO_INDEX",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_CACHE",
    "HF_DATASETS_OFFLINE",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_CACHE",
    "TRANSFORMERS_OFFLINE",
    "GLIBC_TUNABLES",
    "CCACHE_DIR",
    "SCCACHE_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
const BEGINNINGS: &[&str] = &[
    "LC_",
    "XDG_",
    "MAKE",
    "LD_",
    "CC_",
    "CXX_",
    "AR_",
    "PKG_CONFIG",
    "CMAKE_",
    "CTEST_",
    "NIX_CC",
    "NIX_BINTOOLS",
    "NIX_CFLAGS",
    "NIX_LDFLAGS",
    "RUST",
    "CARGO_",
    "CRITERION_",
    "DIVAN_",
    "RAYON_",
    "TOKIO_",
    "CGO_",
    "PYTHON",
    "PYTEST_",
    "CONDA_",
    "NPY_",
    "NUMEXPR_",
    "NUMBA_",
    "NODE_",
    "NPM_CONFIG_",
    "npm_config_",
    "JAVA_",
    "JDK_",
    "_JAVA_",
    "CUDA_",
    "CUBLAS_",
    "CUDNN_",
    "NCCL_",
    "NVCC_",
    "NVIDIA_",
    "HIP_",
    "ROCM_",
    "ROCR_",
    "OMP_",
    "KMP_",
    "GOMP_",
    "MKL_",
    "OPENBLAS_",
    "BLIS_",
    "VECLIB_",
    "MALLOC_",
    "PYTORCH_",
    "TORCH",
    "TRITON_",
    "TENSORRT_",
    "ORT_",
    "XLA_",
    "JAX_",
    "TF_",
    "SLURM_",
    "PERF_",
    "HOLDPOINT_",
];
/// In capitals.
const ENDS: &[&str] = &["FLAGS", "_PATH", "_PROXY", "_HOME", "_ROOT"];
/// Parts of the names of secrets, in capitals.
const SECRET_PARTS: &[&str] = &["TOKEN", "PASS", "SECRET", "CREDENTIAL", "KEY", "AUTH", "JWT", "COOKIE"];

/// Passes these variables on as well, if no secret of holdpoint's or of CI is among them; the first that is one, otherwise.
pub fn pass_on(names: &[String]) -> Result<(), &str> {
    if let Some(secret) = names.iter().find(|name| is_secret(name)) {
        return Err(secret);
    }
    OF_SUITES.lock().unwrap_or_else(PoisonError::into_inner).extend(names.iter().cloned());
    Ok(())
}

/// Whether builds and measured code see a variable: it is on the list, or somebody named it. A name like that of a secret is on the list
/// only in full.
pub fn is_passed_on(name: impl AsRef<OsStr>) -> bool {
    let Some(name) = name.as_ref().to_str() else { return false };
    !is_secret(name) && (NAMES.contains(&name) || is_of_tool(name) || is_named(name))
}

/// Whether a variable's name is like that of a secret and nobody passes it on.
pub fn is_hidden(name: impl AsRef<OsStr>) -> bool {
    let name = name.as_ref();
    is_secret(name) || name.to_str().is_none_or(looks_secret) && !is_passed_on(name)
}

/// The variables that are set and not passed on.
pub fn withheld() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name).filter(|name| !is_passed_on(name));
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn is_of_tool(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_known =
        BEGINNINGS.iter().any(|start| name.starts_with(start)) || ENDS.iter().any(|end| upper.ends_with(end));
    is_known && !looks_secret(name)
}

fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // The name of a setting of git's, which would count settings whose names are gone.
    !upper.starts_with("GIT_CONFIG_KEY_") && SECRET_PARTS.iter().any(|part| upper.contains(part))
}

fn is_named(name: &str) -> bool {
    let named = std::env::var(PASS).unwrap_or_default();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    named.split(|c| !is_of_name(c)).any(|named| named == name)
        || OF_SUITES.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_keep_their_variables_and_nothing_else_does() {
        for name in [
            "PATH",
            "CFLAGS",
            "CUDA_VISIBLE_DEVICES",
            "https_proxy",
            "LD_LIBRARY_PATH",
            "RUSTFLAGS",
            "CI",
            "LC_ALL",
            "CARGO_HOME",
            "GOMAXPROCS",
            "OMP_NUM_THREADS",
            "SLURM_JOB_ID",
            "TOKENIZERS_PARALLELISM",
            "HOLDPOINT_CACHE",
            "HOLDPOINT_PASS",
            "JAVA_HOME",
        ] {
            assert!(is_passed_on(name) && !is_hidden(name), "{name}");
        }
        assert!(!is_passed_on("GIT_CONFIG_KEY_0") && !is_hidden("GIT_CONFIG_KEY_0"), "git's own");
        for name in [
            "SECRET_TOKEN",
            "CI_JOB_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "CARGO_REGISTRIES_OURS_TOKEN",
            "CI_REGISTRY_PASSWORD",
            "CUDA_KEY",
            "NPM_CONFIG__AUTH",
            "SSH_AUTH_SOCK",
            "HF_TOKEN",
            "GOAUTH",
            "SLURM_JWT",
            "HOLDPOINT_SEAL_KEY",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(!is_passed_on(name) && is_hidden(name), "{name}");
        }
        for name in ["ANY_NAME", "CI_PROJECT_DIR", "DATABASE_URL", "GITHUB_OUTPUT"] {
            assert!(!is_passed_on(name), "{name}");
        }
    }

    #[test]
    fn a_suite_passes_on_what_it_names_but_no_secret_of_ours() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(pass_on(&names(&["ONE_OF_OURS", "GITHUB_TOKEN"])), Err("GITHUB_TOKEN"));
        assert!(!is_passed_on("ONE_OF_OURS"));
        pass_on(&names(&["ONE_OF_OURS", "A_TOKEN_OF_A_TEST"])).unwrap();
        assert!(
            is_passed_on("ONE_OF_OURS")
                && is_passed_on("A_TOKEN_OF_A_TEST")
                && !is_hidden("A_TOKEN_OF_A_TEST")
        );
    }

    #[test]
    fn a_measured_program_sees_no_other_variable_and_our_own_tools_do() {
        let seen = |mut command: std::process::Command| {
            let text = command.env("MARK", "1").output().unwrap().stdout;
            let text = String::from_utf8(text).unwrap();
            text.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect::<BTreeSet<_>>()
        };
        let measured = seen(crate::measured("env"));
        assert!(measured.contains("PATH") && measured.contains("MARK"));
        let is_listed = |name: &&String| is_passed_on(name) || *name == "MARK";
        assert_eq!(measured.iter().find(|name| !is_listed(name)), None);
        // Cargo sets more for its tests, such as OUT_DIR or a name of each program.
        assert!(seen(crate::command("env")).len() >= measured.len());
    }
}
