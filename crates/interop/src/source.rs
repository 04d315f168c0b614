//! The input of a reader: the text of one file, or of a folder's files by their paths below it.

use crate::Imported;
use holdpoint_model::document::Head;
use holdpoint_model::limits::clean_text;
use holdpoint_model::{FileError, Kind};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    File(String),
    /// By their paths below the folder.
    Folder(BTreeMap<String, String>),
}

impl Source {
    pub fn single(&self) -> Option<&str> {
        match self {
            Self::File(text) => Some(text),
            Self::Folder(_) => None,
        }
    }

    /// Whether the file, or any of the folder, is JSON with such a top level.
    pub(crate) fn any_head(&self, matches: fn(&Head<'_>) -> bool) -> bool {
        let matches = |text: &String| Head::parse(text).is_ok_and(|head| !is_own(&head) && matches(&head));
        match self {
            Self::File(text) => matches(text),
            Self::Folder(files) => files.values().any(matches),
        }
    }

    /// Reads a format of one JSON file. In a folder of such files, each metric's name starts with its file's; other files are ignored.
    pub(crate) fn read_each(
        &self,
        matches: fn(&Head<'_>) -> bool,
        read: fn(&str) -> Result<Imported, FileError>,
    ) -> Result<Imported, FileError> {
        let Self::Folder(files) = self else { return read(self.single().unwrap_or_default()) };
        let mut all = Imported::default();
        let matches = |text: &str| Head::parse(text).is_ok_and(|head| !is_own(&head) && matches(&head));
        for (path, text) in files.iter().filter(|(_, text)| matches(text)) {
            let stem = path.strip_suffix(".json").unwrap_or(path);
            let one = read(text).map_err(|error| match error {
                FileError::Value { place, what } => {
                    FileError::Value { place: format!("{}: {place}", clean_text(path)), what }
                }
                other => other,
            })?;
            let named = |name: String| format!("{stem}.{name}");
            all.current.metrics.extend(one.current.metrics.into_iter().map(|(k, v)| (named(k), v)));
            all.current.unmeasured.extend(one.current.unmeasured.into_iter().map(|(k, v)| (named(k), v)));
            all.samples_ms.extend(one.samples_ms.into_iter().map(|(k, v)| (named(k), v)));
            all.is_baseline |= one.is_baseline;
            all.current.suite = one.current.suite;
            all.current.timestamp_utc = all.current.timestamp_utc.max(one.current.timestamp_utc);
            all.current.status = match (all.current.status, one.current.status) {
                (Some(bad), _) if bad != "ok" => Some(bad),
                (first, next) => next.or(first),
            };
        }
        Ok(all)
    }
}

/// Whether a file is a document of ours. A check is not recognisable, as its keys are cudadent42's.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    head.kind().is_some_and(|kind| kind != Kind::Check)
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        Self::File(text.to_owned())
    }
}
