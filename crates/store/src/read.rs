//! Reading: bounded, as text, with the file's name in every error.

use crate::error::StoreError;
use holdpoint_interop::{Imported, Source};
use holdpoint_model::document::{self, AnyDocument, Document, FileError};
use holdpoint_model::limits::{ARTIFACT_BYTES_MAX, FILE_BYTES_MAX};
use holdpoint_model::{Baseline, Current, ReleasePolicy, Suite, Waivers};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Most files of a folder: a benchmark that keeps ten files for each of a thousand workloads.
const FOLDER_FILES_MAX: usize = 10_000;

/// Reads a whole text file. Every path is a path: `-` is a file of that name.
pub fn read_text(path: &Path) -> Result<String, StoreError> {
    let file = File::open(path).map_err(StoreError::read(path))?;
    String::from_utf8(read_bytes(&file, path)?).map_err(|error| StoreError::NotText {
        path: path.to_owned(),
        offset_bytes: error.utf8_error().valid_up_to(),
    })
}

/// Reads a whole file of any content, at most [`FILE_BYTES_MAX`].
pub fn read_binary(path: &Path) -> Result<Vec<u8>, StoreError> {
    let file = File::open(path).map_err(StoreError::read(path))?;
    read_bytes(&file, path)
}

/// Reads a file piece by piece, whatever its content, and returns its size: engines are too large to hold in memory.
///
/// # Errors
/// When there is no such file, it is a directory, or larger than [`ARTIFACT_BYTES_MAX`].
pub fn read_chunks(path: &Path, mut on_chunk: impl FnMut(&[u8])) -> Result<u64, StoreError> {
    let mut file = File::open(path).map_err(StoreError::read(path))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut size_bytes = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(size_bytes),
            Ok(read) => {
                size_bytes += read as u64;
                if size_bytes > ARTIFACT_BYTES_MAX {
                    let (path, limit_bytes) = (path.to_owned(), ARTIFACT_BYTES_MAX);
                    return Err(StoreError::TooLarge { path, size_bytes: None, limit_bytes });
                }
                on_chunk(&chunk[..read]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(StoreError::read(path)(error)),
        }
    }
}

/// Reads what is left of an open file, whether or not the file system knows its size.
pub(crate) fn read_bytes(file: &File, path: &Path) -> Result<Vec<u8>, StoreError> {
    let metadata = file.metadata().map_err(StoreError::read(path))?;
    if metadata.is_dir() {
        return Err(StoreError::read(path)(io::Error::from(ErrorKind::IsADirectory)));
    }
    let too_large = |size_bytes| {
        Err(StoreError::TooLarge { path: path.to_owned(), size_bytes, limit_bytes: FILE_BYTES_MAX })
    };
    if metadata.len() > FILE_BYTES_MAX {
        return too_large(Some(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(StoreError::read(path))?;
    // A pipe has no size, and a file may grow between the look at its size and the end of reading.
    if bytes.len() as u64 > FILE_BYTES_MAX { too_large(None) } else { Ok(bytes) }
}

fn read_with<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, FileError>) -> Result<T, StoreError> {
    parse(&read_text(path)?).map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

pub fn read_document<T: Document>(path: &Path) -> Result<T, StoreError> {
    read_with(path, document::read)
}

pub fn read_any(path: &Path) -> Result<AnyDocument, StoreError> {
    read_with(path, document::read_any)
}

/// Reads whatever can be compared with a baseline: a report of ours, or a file or folder of another tool.
pub fn read_current(path: &Path) -> Result<Current, StoreError> {
    let source = read_source(path)?;
    holdpoint_interop::read_current(&source)
        .map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

/// Reads a file or folder of another tool, with its samples.
pub fn read_imported(path: &Path) -> Result<Imported, StoreError> {
    let source = read_source(path)?;
    holdpoint_interop::import(&source).map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

/// Reads a baseline, or anything that [`read_current`] reads, whose values then become one.
pub fn read_baseline(path: &Path) -> Result<Baseline, StoreError> {
    let source = read_source(path)?;
    holdpoint_interop::read_baseline(&source)
        .map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

/// Reads a file, or the text files of a folder and those below it, as readers of other tools' formats take them.
pub fn read_source(path: &Path) -> Result<Source, StoreError> {
    if !path.is_dir() {
        return Ok(Source::File(without_mark(read_text(path)?)));
    }
    let mut files = BTreeMap::new();
    let (mut folders, mut size_bytes) = (vec![path.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for name in list_names(&folder)? {
            let file = folder.join(name);
            let found = file.symlink_metadata().map_err(StoreError::read(&file))?;
            if found.is_dir() {
                folders.push(file);
            } else if found.is_file() {
                size_bytes += found.len();
                if files.len() == FOLDER_FILES_MAX || size_bytes > FILE_BYTES_MAX {
                    let (path, limit_bytes) = (path.to_owned(), FILE_BYTES_MAX);
                    return Err(StoreError::TooLarge { path, size_bytes: Some(size_bytes), limit_bytes });
                }
                let below = file.strip_prefix(path).unwrap_or(&file).display().to_string();
                match read_text(&file) {
                    Ok(text) => drop(files.insert(below, without_mark(text))),
                    Err(StoreError::NotText { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(Source::Folder(files))
}

/// The text without the byte order mark that some editors put before it.
fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    text
}

pub fn read_suite(path: &Path) -> Result<Suite, StoreError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Suite::parse_named(&read_text(path)?, &name)
        .map_err(|source| StoreError::Toml { path: path.to_owned(), source })
}

pub fn read_waivers(path: &Path) -> Result<Waivers, StoreError> {
    Waivers::parse(&read_text(path)?).map_err(|source| StoreError::Toml { path: path.to_owned(), source })
}

pub fn read_release_policy(path: &Path) -> Result<ReleasePolicy, StoreError> {
    ReleasePolicy::parse(&read_text(path)?)
        .map_err(|source| StoreError::Toml { path: path.to_owned(), source })
}

/// The names in a folder, in order; none where there is no folder.
pub fn list_names(dir: &Path) -> Result<Vec<String>, StoreError> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(dir).map_err(StoreError::read(dir))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<String>, _>>().map_err(StoreError::read(dir))?;
    names.sort_unstable();
    Ok(names)
}
