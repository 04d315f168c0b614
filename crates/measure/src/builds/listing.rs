//! All builds in the user's cache, of whatever repository: listed, and removed on request. Starts no git.

use super::cache::{Cache, Entry, at};
use super::error::BuildError;
use holdpoint_model::{CacheListing, CachedBuild};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The builds in a cache.
pub fn list(dir: &Path) -> Result<CacheListing, BuildError> {
    let mut builds = Vec::new();
    for cache in caches(dir)? {
        builds.extend(cache.complete().map(|entry| describe(&cache, &entry)));
    }
    Ok(listing(dir, builds, Vec::new()))
}

/// Removes builds that nobody uses and that `is_wanted` selects, with what killed builds left.
pub fn clean(dir: &Path, is_wanted: impl Fn(&CachedBuild) -> bool) -> Result<CacheListing, BuildError> {
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for cache in caches(dir)? {
        let _lock = cache.lock_existing()?;
        cache.sweep();
        for entry in cache.complete() {
            let build = describe(&cache, &entry);
            if !build.in_use && is_wanted(&build) {
                entry.remove()?;
                removed.push(build);
            } else {
                kept.push(build);
            }
        }
    }
    Ok(listing(dir, kept, removed))
}

fn listing(dir: &Path, mut builds: Vec<CachedBuild>, removed: Vec<CachedBuild>) -> CacheListing {
    builds.sort_by(|a, b| a.unused_s.total_cmp(&b.unused_s));
    CacheListing { folder: dir.display().to_string(), builds, removed }
}

/// A folder for each repository.
fn caches(dir: &Path) -> Result<Vec<Cache>, BuildError> {
    let folders = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        folders => folders.map_err(at(dir))?,
    };
    let mut roots: Vec<PathBuf> = folders.flatten().map(|folder| folder.path()).collect();
    // Other folders of the cache have no lock in them.
    roots.retain(|root| root.join("lock").is_file());
    roots.sort();
    Ok(roots.into_iter().map(|root| Cache { root }).collect())
}

fn describe(cache: &Cache, entry: &Entry) -> CachedBuild {
    let marker = entry.read_marker();
    let since = |time: Option<SystemTime>| {
        time.and_then(|time| time.elapsed().ok()).unwrap_or_default().as_secs_f64()
    };
    // Its marker is written when it has been built; file systems that do not know when tell of its last use.
    let made = fs::metadata(&entry.marker).and_then(|file| file.created()).ok();
    CachedBuild {
        repository: cache.repository(),
        commit: marker.as_ref().and_then(|marker| marker.commit.clone()),
        command: marker.and_then(|marker| marker.command),
        path: entry.dir.display().to_string(),
        size_bytes: size_bytes(&entry.dir),
        age_s: since(made.or(entry.last_used())),
        unused_s: since(entry.last_used()),
        in_use: entry.is_in_use(),
    }
}

/// Space that a folder takes on the disk.
fn size_bytes(dir: &Path) -> u64 {
    let Ok(folder) = fs::read_dir(dir) else { return 0 };
    let size_of = |file: fs::DirEntry| match file.metadata() {
        Ok(found) if found.is_dir() => size_bytes(&file.path()),
        // Blocks are counted in units of 512 bytes, whatever the file system's own are.
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    folder.flatten().map(size_of).sum()
}
