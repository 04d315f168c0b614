//! The copy of the checkout that is measured, and the checkout without its way to the forge.

use super::{internal, mounts};
use crate::ci::gate::remove_all;
use crate::error::FlowError;
use holdpoint_ci::guard::Sha;
use holdpoint_process::git::{self, Repository};
use std::fs;
use std::path::{Path, PathBuf};

/// A repository of its own, which reads the objects of the checkout and has none of its settings.
pub fn copy(here: &Path, head: &Sha, checkout: &Path) -> Result<(), FlowError> {
    let original = Repository::around(here);
    let objects = original.git_path("objects")?;
    fs::create_dir_all(checkout).map_err(|error| internal(checkout, &error))?;
    let format = if head.as_str().len() == 64 { "sha256" } else { "sha1" };
    git_in(checkout, &["init", "--quiet", "--template=", &format!("--object-format={format}")])?;
    let own = checkout.join(".git");
    holdpoint_store::write_text(&own.join("objects/info/alternates"), &format!("{}\n", objects.display()))?;
    if let Some(bytes) = original.git_path("shallow").ok().and_then(|path| fs::read(path).ok()) {
        holdpoint_store::write_binary(&own.join("shallow"), &bytes)?;
    }
    if let Some(url) = original.origin_url() {
        git_in(checkout, &["config", "remote.origin.url", &without_login(&url)])?;
    }
    git_in(checkout, &["checkout", "--quiet", "--detach", head.as_str()])
}

fn git_in(checkout: &Path, arguments: &[&str]) -> Result<(), FlowError> {
    let mut git = Repository::around(checkout).command(arguments);
    let done = git::output(git.env("GIT_LFS_SKIP_SMUDGE", "1"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(FlowError::Input(format!("the checkout cannot be copied: {}", git::complaint(&done)))),
    }
}

/// Removes what the forge put into the checkout's settings to reach it: submodules may lie beside it.
pub(crate) fn forget_credentials(here: &Path) -> Result<(), FlowError> {
    let repository = Repository::around(here);
    let url = repository.origin_url().map(|url| without_login(&url));
    let beside = PathBuf::from(format!("{}.tmp", here.display()));
    for entry in fs::read_dir(&beside).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".gitlab-runner") {
            remove_all(&entry.path())?;
        }
    }
    let mut files = Vec::new();
    mounts::walk(&here.join(".git"), &mut |path, metadata| {
        if metadata.is_file() && path.file_name().is_some_and(|name| name == "config") {
            files.push(path.to_owned());
        }
    });
    for file in files {
        let file = file.to_string_lossy().into_owned();
        let listed =
            repository.line(&["config", "--file", &file, "--name-only", "--list"]).unwrap_or_default();
        let kinds = ["remote.", "include.", "includeif.", "http.", "credential.", "url."];
        for name in listed.lines().filter(|name| kinds.iter().any(|kind| name.starts_with(kind))) {
            let _ = repository.ask(&["config", "--file", &file, "--unset-all", name]);
        }
    }
    if let Some(url) = url {
        let _ = repository.ask(&["config", "remote.origin.url", &url]);
    }
    Ok(())
}

/// An address without user and password.
fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((login, _)) => format!("{scheme}://{}", &rest[login.len() + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_without_its_login() {
        for (url, clean) in [
            (
                "https://gitlab-ci-token:s3cret@gitlab.example.org/o/r.git",
                "https://gitlab.example.org/o/r.git",
            ),
            ("https://github.com/o/r", "https://github.com/o/r"),
            ("https://u:a@b@host/x@y", "https://host/x@y"),
            ("git@github.com:o/r.git", "git@github.com:o/r.git"),
            ("file:///a/b@c", "file:///a/b@c"),
        ] {
            assert_eq!(without_login(url), clean);
        }
    }
}
