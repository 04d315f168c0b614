//! Tools that inspect kernels: Nsight Compute and compute-sanitizer. Each starts a workload's worker, which makes one
//! plain call: no timing, no graphs, and no kernel that waits for the host, which would never end where kernels run
//! one at a time.
//!
//! If a tool is missing, refused or silent, the workload is unavailable with a reason and a remedy, never right or
//! fast. A tool's output is read within limits and kept beside the result.

mod drive;
mod find;
mod ncu;
mod process;
mod sanitizer;

pub(crate) use find::counters_permission;
pub use find::{Permission, Tool, find};
pub use ncu::{ProfileResult, ProfileSettings, profile};
pub(crate) use process::capture;
pub use sanitizer::{SANITIZERS, SanitizeSettings, check_sanitizer, sanitize};

use holdpoint_model::profile::Unavailable;
use holdpoint_model::suite::{Task, WORKER_BUILTIN};
use holdpoint_model::{Suite, Workload};
use std::path::{Path, PathBuf};

/// Workloads that can have kernels: all but the built-in ops on the CPU.
pub fn inspectable(suite: &Suite) -> impl Iterator<Item = &Workload> {
    suite.workloads.iter().filter(|spec| spec.task != Task::Op || suite.workers.contains_key(WORKER_BUILTIN))
}

pub(crate) fn no_permission() -> Unavailable {
    unavailable("ncu_no_permission", "RmProfilingAdminOnly is 1 in /proc/driver/nvidia/params".to_owned())
}

/// Adds the remedy to a reason.
fn unavailable(reason: &str, detail: impl Into<Option<String>>) -> Unavailable {
    let remedy = REMEDIES.iter().find(|(code, _)| *code == reason).map(|(_, remedy)| (*remedy).to_owned());
    Unavailable { reason: reason.to_owned(), detail: detail.into(), remedy }
}

/// Remedies by reason code; those for devices are where they are shown.
const REMEDIES: &[(&str, &str)] = &[
    (
        "ncu_not_found",
        "install Nsight Compute (it comes with the CUDA toolkit), put ncu on the PATH, or set HOLDPOINT_NCU to it",
    ),
    (
        "ncu_not_usable",
        "run \"ncu --version\" by hand and follow its message, or set HOLDPOINT_NCU to another one",
    ),
    (
        "ncu_no_permission",
        "run as root or with CAP_SYS_ADMIN (containers: --cap-add SYS_ADMIN), or load the driver's module with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        "ncu_not_supported",
        "this machine shows no counters to ncu, as some containers and virtual machines do; profile on the host, or elsewhere",
    ),
    ("ncu_timed_out", "give it more time with --timeout, or a workload with fewer launches with --kernel"),
    ("no_kernel_profiled", "give the names of the kernels with --kernel REGEX"),
    (
        "counters_not_read",
        "end other profilers on the device (dcgm, nsys, another ncu), or update ncu to the driver's version",
    ),
    ("failed_under_ncu", "it works without ncu; run the command in the log by hand"),
    ("ncu_failed", "read its log, named beside this"),
    (
        "sanitizer_not_found",
        "install the CUDA toolkit, put compute-sanitizer on the PATH, or set HOLDPOINT_SANITIZER to it",
    ),
    (
        "sanitizer_not_usable",
        "run \"compute-sanitizer --version\" by hand and follow its message, or set HOLDPOINT_SANITIZER to another one",
    ),
    (
        "sanitizer_blind",
        "it did not find an error that was planted, so its silence means nothing here; use the version of the driver",
    ),
    (
        "sanitizer_not_supported",
        "this machine does not let compute-sanitizer at the device, as some containers do; run on the host, or elsewhere",
    ),
    ("sanitizer_no_summary", "it did not finish; read its log, named beside this"),
    ("sanitizer_timed_out", "give it more time with --timeout, or check a smaller shape"),
];

/// The folder for the tools' files.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder if necessary.
    pub fn new(path: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(path)?;
        // Tools run in other folders.
        std::path::absolute(path).map(Self)
    }

    /// The path of a workload's file; removes an old file there.
    fn file(&self, workload: &str, ending: &str) -> PathBuf {
        let usable = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
        let stem: String = workload.chars().map(usable).collect();
        let path = self.0.join(format!("{}{ending}", stem.trim_start_matches('.')));
        // There may be none.
        let _ = std::fs::remove_file(&path);
        path
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}
