//! A folder with suites, options from flags, and an interruption.

use holdpoint_flow::Watch;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The options that these flags mean.
pub fn options<T: clap::Args>(flags: &[&str]) -> T {
    let command = T::augment_args(clap::Command::new("test").no_binary_name(true));
    T::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap()
}

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

    /// A path as a flag takes it.
    pub fn flag(&self, name: &str) -> String {
        self.path(name).display().to_string()
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
