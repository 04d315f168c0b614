//! Where the commits of a document can be looked at.

use crate::error::FlowError;
use holdpoint_process::git::Repository;
use holdpoint_render::html::Links;
use std::path::Path;

/// By the address that was given, else by the repository here: only if it has the commit, since a document may be from anywhere.
pub fn find(repository: Option<&str>, commit: Option<&str>) -> Result<Links, FlowError> {
    if let Some(url) = repository {
        let what = || format!("--repository {url} is no address such as https://host/owner/name");
        return Links::new(url).ok_or_else(|| FlowError::Input(what()));
    }
    Ok(commit.and_then(links_here).unwrap_or_default())
}

fn links_here(commit: &str) -> Option<Links> {
    let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let here = Repository::around(Path::new("."));
    let is_here = is_hash && here.has(commit).unwrap_or(false);
    Links::of_remote(&here.origin_url().filter(|_| is_here)?)
}
