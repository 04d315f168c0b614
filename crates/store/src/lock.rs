//! One writer at a time: a lock on the folder itself, which leaves no file. The kernel drops it when the process dies.

use crate::error::StoreError;
use crate::temporary::is_at;
use crate::write::folder_error;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two attempts at a lock.
const LOOK: Duration = Duration::from_millis(50);

/// While this lives, no other holdpoint writes to the folder. A folder that was made for it and stayed empty is removed with it.
#[derive(Debug)]
pub struct FolderLock {
    made: Option<PathBuf>,
    _file: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            // One that is not empty stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl FolderLock {
    /// Makes the folder where there is none and waits, for a limited time, until nobody else writes to it. Where the file
    /// system has no locks, there is no waiting either.
    pub fn acquire(folder: &Path, wait_max: Duration, on_wait: impl FnOnce()) -> Result<Self, StoreError> {
        let (start, mut on_wait) = (Instant::now(), Some(on_wait));
        let made = (!folder.exists()).then(|| folder.to_owned());
        loop {
            let file = open(folder)?;
            match file.try_lock() {
                // It may have been removed, and made anew by others, while we waited.
                Ok(()) if !is_at(&file, &fs::canonicalize(folder).unwrap_or_default()) => {}
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self { made, _file: file }),
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait_max => {
                    return Err(StoreError::Busy { folder: folder.to_owned(), waited_s: wait_max.as_secs() });
                }
                Err(TryLockError::WouldBlock) => {
                    if let Some(on_wait) = on_wait.take() {
                        on_wait();
                    }
                    std::thread::sleep(LOOK);
                }
            }
        }
    }
}

fn open(folder: &Path) -> Result<File, StoreError> {
    fs::create_dir_all(folder)
        .and_then(|()| File::open(folder))
        .map_err(|error| StoreError::write(folder)(folder_error(folder, error)))
}
