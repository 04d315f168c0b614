//! A first look at files whose format is not known yet. Each file's top level is read once, however many formats are tried.

use crate::Source;
use crate::source::is_own;
use holdpoint_model::document::Head;
use std::collections::BTreeMap;

pub struct Probe<'a> {
    source: &'a Source,
    /// The top levels of the files that are JSON and none of ours.
    heads: Vec<Head<'a>>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        let heads = match source {
            Source::File(text) => foreign_head(text).into_iter().collect(),
            Source::Folder(files) => files.values().filter_map(|text| foreign_head(text)).collect(),
        };
        Self { source, heads }
    }

    /// The text, where it is a single file.
    pub(crate) fn single(&self) -> Option<&'a str> {
        self.source.single()
    }

    /// The files of a folder by their paths; none of a single file.
    pub(crate) fn folder(&self) -> Option<&'a BTreeMap<String, String>> {
        match self.source {
            Source::File(_) => None,
            Source::Folder(files) => Some(files),
        }
    }

    /// Whether the file, or any of the folder, is JSON with such a top level.
    pub(crate) fn any_head(&self, matches: fn(&Head<'_>) -> bool) -> bool {
        self.heads.iter().any(matches)
    }

    /// Whether the file, or any of the folder that is named so, has such a text.
    pub(crate) fn any_text(&self, extension: &str, matches: fn(&str) -> bool) -> bool {
        match self.source {
            Source::File(text) => matches(text),
            Source::Folder(files) => {
                files.iter().any(|(path, text)| path.ends_with(extension) && matches(text))
            }
        }
    }
}

/// The top level of a JSON file of another tool; of a file with a JSON object on each line, that of the first.
pub(crate) fn foreign_head(text: &str) -> Option<Head<'_>> {
    let first_line = || Head::parse(text.trim_start().lines().next().unwrap_or_default());
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let head = Head::parse(text).or_else(|_| first_line()).ok()?;
    (!is_own(&head)).then_some(head)
}
