//! The suite of a command.

use std::ffi::OsString;
use std::path::PathBuf;

/// Which suite.
#[derive(Clone, Debug)]
pub struct SuiteChoice {
    /// That of a built-in suite, or a file.
    pub name: String,
    /// The CUDA device of `cuda` workloads; the suite's, if absent.
    pub device: Option<u32>,
    /// The folder that paths in the suite are relative to; that of its file, if absent.
    pub workdir: Option<PathBuf>,
}

impl SuiteChoice {
    pub fn new(name: &str, device: Option<u32>) -> Self {
        Self { name: name.to_owned(), device, workdir: None }
    }

    /// The flags for another holdpoint that is to use the same suite.
    pub fn flags(&self) -> Vec<OsString> {
        let device = self.device.map(|device| ["--device".into(), device.to_string().into()]);
        let workdir = self.workdir.as_ref().map(|dir| ["--workdir".into(), dir.into()]);
        let suite = ["--suite".into(), self.name.clone().into()];
        suite.into_iter().chain(device.into_iter().flatten()).chain(workdir.into_iter().flatten()).collect()
    }
}
