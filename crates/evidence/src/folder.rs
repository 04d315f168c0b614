//! Files of an evidence folder, named by paths below it. A link that leads out of the folder is refused: its target is not part of
//! the evidence, and may be another file tomorrow.

use crate::EvidenceError;
use std::path::{Component, Path, PathBuf};

/// Whether a path stays below its folder, links aside.
pub(crate) fn stays_below(path: &Path) -> bool {
    !path.as_os_str().is_empty()
        && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// A file in the same folder as another, both named below the evidence folder.
pub(crate) fn sibling(path: &str, name: &str) -> String {
    path.rsplit_once('/').map_or_else(|| name.to_owned(), |(folder, _)| format!("{folder}/{name}"))
}

/// The plain file that a path names below a folder; absent where there is none.
///
/// # Errors
/// When a link on the way leads out of the folder.
pub fn find_file(dir: &Path, path: &str) -> Result<Option<PathBuf>, EvidenceError> {
    let file = dir.join(path);
    if !stays_below(Path::new(path)) || !file.is_file() {
        return Ok(None);
    }
    // A file that is named alone lies here.
    let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let is_inside = match (std::fs::canonicalize(&file), std::fs::canonicalize(here)) {
        (Ok(file), Ok(dir)) => file.starts_with(dir),
        _ => false,
    };
    if is_inside { Ok(Some(file)) } else { Err(EvidenceError::Outside { path: file }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_that_leads_out_is_refused_and_one_that_stays_is_not() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a.json"), "{}").unwrap();
        std::fs::write(outside.path().join("b.json"), "{}").unwrap();
        symlink("a.json", path("inside.json")).unwrap();
        symlink(outside.path().join("b.json"), path("outside.json")).unwrap();
        symlink(outside.path(), path("folder")).unwrap();
        for name in ["a.json", "inside.json"] {
            assert_eq!(find_file(dir.path(), name).unwrap(), Some(path(name)));
        }
        for name in ["outside.json", "folder/b.json"] {
            let error = find_file(dir.path(), name).unwrap_err().to_string();
            assert!(error.contains("leads out of the folder"), "{error}");
        }
        for name in ["gone.json", "../a.json", "", "folder"] {
            assert_eq!(find_file(dir.path(), name).unwrap(), None, "{name}");
        }
    }
}
