//! Knowledge about one device with one driver, in a file of the cache: entries by key. Must not be needed for anything but time.

use holdpoint_model::protocol::DeviceInfo;
use holdpoint_store::{FolderLock, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Such a file is written in milliseconds.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct DeviceFile<T> {
    pub path: PathBuf,
    entries: BTreeMap<String, T>,
}

impl<T: Serialize + DeserializeOwned> DeviceFile<T> {
    /// Reads the file in this folder of the cache; one that cannot be read counts as absent, since it only saves time. `device` is its
    /// name, or what tells it from others of the same name.
    pub(crate) fn open(cache_dir: &Path, folder: &str, device: &str, info: &DeviceInfo) -> Self {
        let safe =
            |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let parts: [String; 2] = [safe(device), safe(&info.versions.driver)];
        let path = cache_dir.join(folder).join(format!("{}_{}.json", parts[0], parts[1]));
        Self { entries: read(&path), path }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.entries.get(key)
    }

    /// Stores an entry beside those that other processes have stored meanwhile.
    pub(crate) fn put(&mut self, key: String, entry: T) -> Result<(), StoreError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let _lock = FolderLock::acquire(folder, LOCK_WAIT_MAX, || {})?;
        self.entries.extend(read(&self.path));
        self.entries.insert(key, entry);
        holdpoint_store::write_json(&self.path, &self.entries)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> BTreeMap<String, T> {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap_or_default()).unwrap_or_default()
}
