//! Where a history lies, as a user writes it.

use std::fmt;
use std::path::PathBuf;

/// The place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite's.
    File(PathBuf),
    /// A URL of a PostgreSQL server.
    Postgres(String),
    /// A ref of the git repository here, whose commits hold the documents.
    Git(String),
}

impl Location {
    /// Where a history is kept unless another place is named.
    pub const DEFAULT: &str = ".holdpoint/history.db";

    /// A URL (`postgres://…`), a ref (`git:refs/holdpoint/history`), or else a file.
    pub fn parse(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Self::Postgres(text.to_owned());
        }
        match text.strip_prefix("git:") {
            Some(name) => Self::Git(name.to_owned()),
            None => Self::File(PathBuf::from(text)),
        }
    }
}

/// Without the password of a URL: it goes into messages and logs.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Git(name) => write!(f, "git:{name}"),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

/// The URL less everything between the user's name and the host, and less its parameters, which may hold a password too.
pub(crate) fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return "postgres".to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}", user.split(':').next().unwrap_or(user)),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_url_a_ref_or_a_file() {
        assert_eq!(Location::parse("postgres://h/db"), Location::Postgres("postgres://h/db".to_owned()));
        assert_eq!(Location::parse("git:refs/x"), Location::Git("refs/x".to_owned()));
        assert_eq!(Location::parse("a/b.db"), Location::File("a/b.db".into()));
    }

    #[test]
    fn a_password_is_in_no_message() {
        let shown = |url| Location::parse(url).to_string();
        assert_eq!(shown("postgres://ci:se@cret@host:1/db?password=x"), "postgres://ci@host:1/db");
        assert_eq!(shown("postgresql://host/db"), "postgresql://host/db");
    }
}
