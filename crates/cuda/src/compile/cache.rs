//! Cache of machine code on disk, keyed by what it was compiled from.

use super::{Source, hex};
use holdpoint_store::StoreError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Bytes of the hash at the head of a file: one that was cut short or changed is compiled anew.
const HASH_BYTES: usize = 32;

pub fn kernels_dir(cache_dir: &Path) -> PathBuf {
    cache_dir.join("kernels")
}

pub(super) struct Cache {
    dir: PathBuf,
    driver: String,
}

impl Cache {
    pub(super) fn new(dir: &Path, driver: &str) -> Self {
        Self { dir: kernels_dir(dir), driver: driver.to_owned() }
    }

    /// Hash over source, headers, options (which name the architecture) and driver.
    pub(super) fn key(&self, source: &Source, options: &[String]) -> String {
        let headers = source.headers.iter().map(|(_, text)| *text);
        let options = options.iter().map(String::as_str);
        hash_parts([source.text, &*self.driver].into_iter().chain(headers).chain(options))
    }

    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.path(key)).ok()?;
        let (hash, cubin) = bytes.split_at_checked(HASH_BYTES)?;
        (*hash == *Sha256::digest(cubin)).then(|| cubin.to_vec())
    }

    pub(super) fn put(&self, key: &str, cubin: &[u8]) -> Result<(), StoreError> {
        let mut bytes = Sha256::digest(cubin).to_vec();
        bytes.extend_from_slice(cubin);
        holdpoint_store::write_binary(&self.path(key), &bytes)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.cubin"))
    }
}

/// Hash over texts, each preceded by its length.
pub(super) fn hash_parts<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str) -> Source {
        Source { name: "a", text, headers: &[] }
    }

    #[test]
    fn cached_code_comes_back_unless_it_was_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path(), "580");
        let key = cache.key(&source("source"), &["-DA=1".to_owned()]);
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"code").unwrap();
        assert_eq!(cache.get(&key).as_deref(), Some(&b"code"[..]));
        let path = cache.path(&key);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(&key), None);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn source_options_and_driver_tell_code_apart() {
        let dir = Path::new("unused");
        let key = |driver: &str, text: &'static str, option: &str| {
            Cache::new(dir, driver).key(&source(text), &[option.to_owned()])
        };
        let all = [
            key("1", "a", "x"),
            key("2", "a", "x"),
            key("1", "b", "x"),
            key("1", "a", "y"),
            key("1", "ax", ""),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one));
        }
    }
}
