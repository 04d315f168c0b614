//! A folder with suites and evidence, and an interruption.

use holdpoint_flow::Watch;
use holdpoint_flow::request::{EvidenceFiles, HistoryChoice, ProfileOn, SuiteChoice};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder that is not the current one.
pub struct Folder {
    dir: TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The suite in a file.
    pub fn suite(&self, name: &str) -> SuiteChoice {
        SuiteChoice::new(&self.path(name).display().to_string(), None)
    }

    /// Evidence in `artifacts`, and no files beside the suite.
    pub fn evidence(&self) -> EvidenceFiles {
        EvidenceFiles {
            artifacts: self.path("artifacts"),
            calibration_dir: self.path("calibration"),
            waivers: None,
            profile_on: ProfileOn::Never,
            history: HistoryChoice::Suite,
            seal_key: None,
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

/// Calls a command off as soon as it can be.
pub struct Interrupter;

impl Watch for Interrupter {
    fn is_interrupted(&self) -> bool {
        true
    }
}
