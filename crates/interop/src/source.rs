//! The input of a reader: the text of one file, or of a folder's files by their paths below it.

use crate::Imported;
use crate::top_level::foreign_head;
use holdpoint_model::FileError;
use holdpoint_model::document::Head;
use holdpoint_model::limits::clean_text;
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

    /// Reads a format of one JSON file. In a folder of such files, each metric's name starts with its file's; other files are ignored.
    pub(crate) fn read_each(
        &self,
        matches: fn(&Head<'_>) -> bool,
        read: fn(&str) -> Result<Imported, FileError>,
    ) -> Result<Imported, FileError> {
        let Self::Folder(files) = self else { return read(self.single().unwrap_or_default()) };
        let mut all = Imported::default();
        let matches = |text: &str| foreign_head(text).is_some_and(|head| matches(&head));
        for (path, text) in files.iter().filter(|(_, text)| matches(text)) {
            let stem = path.strip_suffix(".json").unwrap_or(path);
            let one = read(text).map_err(|error| at_path(path, error))?;
            all.extend(one, |name| format!("{stem}.{name}"));
        }
        Ok(all)
    }
}

/// The error with the path of the file in it.
pub(crate) fn at_path(path: &str, error: FileError) -> FileError {
    match error {
        FileError::Value { place, what } => {
            FileError::Value { place: format!("{}: {place}", clean_text(path)), what }
        }
        other => other,
    }
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        Self::File(text.to_owned())
    }
}
