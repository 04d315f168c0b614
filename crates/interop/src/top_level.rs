//! The top level of JSON files: whose they are.

use holdpoint_model::Kind;
use holdpoint_model::document::Head;

/// Whether a file is a document of ours. A check is not recognisable, as its keys are cudadent42's.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    head.kind().is_some_and(|kind| kind != Kind::Check)
}

/// The top level of a JSON file of another tool.
pub(crate) fn foreign_head(text: &str) -> Option<Head<'_>> {
    head(text).filter(|head| !is_own(head))
}

/// The top level of a JSON file; of a file with a JSON object on each line, that of the first.
pub(crate) fn head(text: &str) -> Option<Head<'_>> {
    let first_line = || Head::parse(text.trim_start().lines().next().unwrap_or_default());
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    Head::parse(text).or_else(|_| first_line()).ok()
}
