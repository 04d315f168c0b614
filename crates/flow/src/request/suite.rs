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

/// The file of a repository's own suite.
pub(crate) const OWN_FILE: &str = "perf.toml";

/// The suite of a command that names none: the repository's own, else the built-in ops.
pub fn default_suite() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    // A file above the repository is somebody else's.
    let depth = here.ancestors().take_while(|folder| !folder.join(".git").exists()).count();
    let found = here.ancestors().take(depth + 1).position(|folder| folder.join(OWN_FILE).is_file());
    match found {
        Some(above) => format!("{}{OWN_FILE}", "../".repeat(above)),
        None => "cpu".to_owned(),
    }
}
