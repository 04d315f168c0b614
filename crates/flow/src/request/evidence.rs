//! Where a gate leaves its evidence, and what it reads beside the suite.

use holdpoint_history::Location;
use std::path::PathBuf;

/// The folder of the evidence, and the files that a gate reads beside the suite.
#[derive(Clone, Debug)]
pub struct EvidenceFiles {
    pub artifacts: PathBuf,
    /// The folder with the outcomes of `calibrate`.
    pub calibration_dir: PathBuf,
    pub waivers: Option<PathBuf>,
    pub profile_on: ProfileOn,
    pub history: HistoryChoice,
    /// The key that signs the seal; that of the environment, if absent.
    pub seal_key: Option<PathBuf>,
}

/// The history that a command adds what it measures to.
#[derive(Clone, Debug, Default)]
pub enum HistoryChoice {
    /// The suite's, if it names one.
    #[default]
    Suite,
    At(Location),
    /// None, whatever the suite says: that of a change is not to be believed.
    None,
}

/// When a gate looks into kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileOn {
    Never,
    /// At the kernels of workloads that regressed.
    Regression,
}
