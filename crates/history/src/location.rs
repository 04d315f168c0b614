//! Where a history lies, as a user writes it.

use crate::backend::Backend;
use crate::error::HistoryError;
use crate::git::Git;
use crate::postgres::PostgreSql;
use crate::sqlite::SqliteFile;
use std::fmt;
use std::path::{Path, PathBuf};

/// Every backend. A further one is a folder and two words here. The first whose scheme a place has is the place's; the last one's is
/// empty, so any other place is a file of SQLite's.
const BACKENDS: &[&dyn Backend] = &[&PostgreSql, &Git, &SqliteFile];

/// The place of a store: a file, the URL of a PostgreSQL server, or a ref of the git repository here.
#[derive(Clone)]
pub struct Location {
    pub(crate) backend: &'static dyn Backend,
    pub(crate) place: PathBuf,
}

impl Location {
    /// Where a history is kept unless another place is named.
    pub const DEFAULT: &str = ".holdpoint/history.db";

    /// A URL (`postgres://…`), a ref (`git:refs/holdpoint/history`), or else a file.
    pub fn parse(text: &str) -> Self {
        let has_scheme =
            |backend: &&&'static dyn Backend| backend.schemes().iter().any(|scheme| text.starts_with(scheme));
        match BACKENDS.iter().find(has_scheme) {
            Some(backend) => Self { backend: *backend, place: text.into() },
            None => Self::file(text),
        }
    }

    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { backend: &SqliteFile, place: path.into() }
    }

    /// As every path in a suite: a file is meant from the suite's folder on.
    pub fn in_folder(self, dir: &Path) -> Self {
        if self.backend.is_file() { Self::file(dir.join(self.place)) } else { self }
    }

    /// Whether it can be joined with a remote's, by [`Location::exchange`].
    pub fn has_remotes(&self) -> bool {
        self.backend.exchange().is_some()
    }

    /// Joins the store with the remote's of the same name and pushes the outcome.
    ///
    /// # Errors
    /// When the remote does not take it. Without remotes there is nothing to do.
    pub fn exchange(&self, remote: &str) -> Result<(), HistoryError> {
        self.backend.exchange().map_or(Ok(()), |exchange| exchange(&self.place, remote))
    }
}

/// Without the password of a URL: it goes into messages and logs.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.backend.show(&self.place))
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_url_a_ref_or_a_file() {
        for (text, is_file, has_remotes) in [
            ("postgresql://h/db", false, false),
            ("git:refs/x", false, true),
            ("a/b.db", true, false),
            ("/git:x/b.db", true, false),
        ] {
            let location = Location::parse(text);
            assert_eq!(
                (location.backend.is_file(), location.has_remotes()),
                (is_file, has_remotes),
                "{text}"
            );
            assert_eq!(location.to_string(), text);
        }
        assert_eq!(Location::parse("a/b.db").in_folder(Path::new("suite")).to_string(), "suite/a/b.db");
        assert_eq!(Location::parse("git:refs/x").in_folder(Path::new("suite")).to_string(), "git:refs/x");
    }

    #[test]
    fn a_password_is_in_no_message() {
        let shown = |url| Location::parse(url).to_string();
        assert_eq!(shown("postgres://ci:se@cret@host:1/db?password=x"), "postgres://ci@host:1/db");
        assert_eq!(shown("postgresql://host/db"), "postgresql://host/db");
    }
}
