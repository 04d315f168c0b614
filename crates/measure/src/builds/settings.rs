//! Settings and attributes by which git checks out: filters, and other programs that it starts. Whoever can write to the repository or to
//! the user's settings could have later checkouts of the other side changed, so nothing is checked out once they differ from what they were
//! when the repository was opened. They are not replaced by settings of our own: files of Git LFS or git-crypt need the user's.

use super::checkout::Source;
use super::error::BuildError;
use holdpoint_model::limits::clean_text;
use holdpoint_model::pattern::matches;
use holdpoint_process::git::{self, Repository};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Keys that have no say in a checkout, or that git and Git LFS write when they check out.
const HARMLESS: [&str; 10] = [
    "branch.*",
    "gc.*",
    "gui.*",
    "maintenance.*",
    "user.*",
    "lfs.repositoryformatversion",
    "lfs.*.access",
    "lfs.*.locksverify",
    "submodule.*.active",
    "submodule.*.url",
];

/// Values by key, and contents by the name of a file.
#[derive(Debug, Default)]
pub(super) struct Settings(BTreeMap<String, Vec<u8>>);

impl Settings {
    pub(super) fn read(repository: &Repository) -> Result<Self, BuildError> {
        let listed = repository.run(&["config", "--list", "-z"])?;
        let mut settings = BTreeMap::<String, Vec<u8>>::new();
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let key = entry.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let key = String::from_utf8_lossy(key).into_owned();
            if !HARMLESS.iter().any(|pattern| matches(pattern, &key)) {
                settings.entry(key).or_default().extend([entry, b"\0"].concat());
            }
        }
        for path in [Some(repository.common_dir()?.join("info/attributes")), users_attributes(repository)?] {
            if let Some((path, content)) =
                path.and_then(|path| Some((path.clone(), std::fs::read(path).ok()?)))
            {
                settings.insert(path.display().to_string(), content);
            }
        }
        Ok(Settings(settings))
    }
}

impl Source {
    /// Fails if git would check out otherwise than when the repository was opened.
    pub(super) fn check_settings(&self) -> Result<(), BuildError> {
        let (now, before) = (Settings::read(&self.repository)?.0, &self.settings.0);
        let mut keys = now.keys().chain(before.keys());
        match keys.find(|key| now.get(*key) != before.get(*key)) {
            None => Ok(()),
            Some(key) => {
                Err(BuildError::Settings { root: self.repository.dir().to_owned(), what: clean_text(key) })
            }
        }
    }
}

/// The file with the user's attributes for all repositories.
fn users_attributes(repository: &Repository) -> Result<Option<PathBuf>, BuildError> {
    let output =
        git::output(&mut repository.command(&["config", "--type=path", "--get", "core.attributesFile"]))?;
    if output.status.success() {
        return Ok(Some(repository.dir().join(git::text(&output.stdout))));
    }
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(folder("HOME")?.join(".config"));
    Ok(folder("XDG_CONFIG_HOME").or_else(home).map(|folder| folder.join("git/attributes")))
}
