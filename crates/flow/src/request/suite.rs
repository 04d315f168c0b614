//! The suite of a command.

use std::path::PathBuf;

/// Which suite.
#[derive(Clone, Debug, PartialEq)]
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
}
