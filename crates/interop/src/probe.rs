//! A first look at files whose format is not known yet. Each file's top level is read once, however many formats are tried.

use crate::Source;
use crate::top_level::{head, is_own};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, Kind};
use std::collections::BTreeMap;

pub struct Probe<'a> {
    source: &'a Source,
    /// The top levels of the files that are JSON and none of ours.
    heads: Vec<Head<'a>>,
    /// The top level of a single file of ours.
    own: Option<Head<'a>>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        let heads: Vec<Head<'a>> = match source {
            Source::File(text) => head(text).into_iter().collect(),
            Source::Folder(files) => files.values().filter_map(|text| head(text)).collect(),
        };
        let (mut own, heads): (Vec<Head<'a>>, _) = heads.into_iter().partition(is_own);
        Self { source, heads, own: own.pop().filter(|_| source.single().is_some()) }
    }

    /// The kind of a single file of ours, of a version that is known.
    pub(crate) fn own_kind(&self) -> Result<Option<Kind>, FileError> {
        let single = self.own.iter().chain(self.source.single().and(self.heads.first())).next();
        single.map_or(Ok(()), Head::check_version)?;
        Ok(self.own.as_ref().and_then(Head::kind))
    }

    /// The text, where it is a single file.
    pub(crate) fn single(&self) -> Option<&'a str> {
        self.source.single()
    }

    /// The text, where it is a single file and not JSON: looking at its lines takes as long as reading it.
    pub(crate) fn plain_text(&self) -> Option<&'a str> {
        self.single().filter(|_| self.heads.is_empty() && self.own.is_none())
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
