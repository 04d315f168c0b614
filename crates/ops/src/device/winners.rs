//! Tuned configurations on disk, by op, kernel, sizes, element type, device and driver.

use super::device_file::DeviceFile;
use holdpoint_cuda::compile::Config;
use holdpoint_model::protocol::DeviceInfo;
use holdpoint_store::StoreError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The winners known for one device with one driver.
#[derive(Clone, Debug)]
pub struct Winners(DeviceFile<Winner>);

/// The winner for one kernel and one set of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    pub config: Config,
    /// Time measured again after it had won.
    pub p50_us: f64,
    /// Time of the op's default constants.
    pub default_us: f64,
    /// Candidates that were measured and gave right answers.
    pub candidates_count: u32,
}

impl Winners {
    pub fn open(cache_dir: &Path, device: &DeviceInfo) -> Self {
        Self(DeviceFile::open(cache_dir, "autotune", &device.name, device))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub fn get(&self, kernel: &str, bucket: &str) -> Option<&Winner> {
        self.0.get(&key(kernel, bucket))
    }

    /// Stores a winner beside those that other processes have found meanwhile.
    pub fn put(&mut self, kernel: &str, bucket: &str, entry: Winner) -> Result<(), StoreError> {
        self.0.put(key(kernel, bucket), entry)
    }
}

fn key(kernel: &str, bucket: &str) -> String {
    format!("{kernel}|{bucket}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_winner_is_found_again_for_the_same_device_and_driver_only() {
        let dir = tempfile::tempdir().unwrap();
        let device = |driver: &str| DeviceInfo {
            name: "NVIDIA H200".to_owned(),
            compute_capability: "9.0".to_owned(),
            versions: holdpoint_model::machine::CudaVersions {
                driver: driver.to_owned(),
                ..Default::default()
            },
            ..DeviceInfo::default()
        };
        let entry = Winner {
            config: Config::from([("THREADS".to_owned(), 128)]),
            p50_us: 1.5,
            default_us: 2.0,
            candidates_count: 4,
        };
        let mut registry = Winners::open(dir.path(), &device("580.1"));
        assert_eq!(registry.get("tile_pack_fast", "batch=1"), None);
        registry.put("tile_pack_fast", "batch=1", entry.clone()).unwrap();
        let again = Winners::open(dir.path(), &device("580.1"));
        assert_eq!(again.get("tile_pack_fast", "batch=1"), Some(&entry));
        assert_eq!(again.get("tile_pack_fast", "batch=2"), None);
        // Two that were opened before either found anything lose nothing.
        let [mut one, mut other] = ["590", "590"].map(|driver| Winners::open(dir.path(), &device(driver)));
        one.put("tile_pack_fast", "batch=1", entry.clone()).unwrap();
        other.put("tile_pack_fast", "batch=2", entry.clone()).unwrap();
        let both = Winners::open(dir.path(), &device("590"));
        assert_eq!(["batch=1", "batch=2"].map(|at| both.get("tile_pack_fast", at).is_some()), [true; 2]);
        assert_eq!(Winners::open(dir.path(), &device("570")).get("tile_pack_fast", "batch=1"), None);
        std::fs::write(again.path(), "not JSON").unwrap();
        assert_eq!(Winners::open(dir.path(), &device("580.1")).get("tile_pack_fast", "batch=1"), None);
    }
}
