//! Moving a ref, and joining it with a remote's. Only [`exchange`] uses the network.

use super::place;
use super::plumbing::Repository;
use super::tree;
use crate::error::HistoryError;
use std::path::Path;

/// Tries to move a ref that others move as well: each takes milliseconds, and a remote's a second or so.
const TRIES: usize = 50;

/// Joins the ref with the remote's of the same name, and pushes the outcome; again if somebody else was first.
pub fn exchange(name: &str, remote: &str, dir: &Path) -> Result<(), HistoryError> {
    let repository = Repository::open(dir, name)?;
    let mut refused = String::new();
    for _ in 0..TRIES {
        let theirs = repository.ask(|git| git.fetch_ref(remote, name))?;
        if let Some(theirs) = &theirs {
            join(&repository, name, theirs)?;
        }
        let Some(ours) = repository.commit(name)? else { return Ok(()) };
        match repository.ask(|git| git.push_ref(remote, &ours, name, theirs.as_deref()))? {
            None => return Ok(()),
            Some(why) => refused = why,
        }
    }
    Err(HistoryError::Unfinished { place: place(name), what: format!("{remote} did not take it: {refused}") })
}

/// Makes the ref hold the files of another commit as well.
pub fn join(repository: &Repository, name: &str, theirs: &str) -> Result<(), HistoryError> {
    // Before the ref is moved to it: what it lists may be too much to be read again.
    let their_files = repository.files(theirs)?;
    change(repository, name, |ours| match ours {
        None => Ok(Some(theirs.to_owned())),
        Some(ours) if repository.ask(|git| git.is_ancestor(theirs, ours))? => Ok(None),
        Some(ours) if repository.ask(|git| git.is_ancestor(ours, theirs))? => Ok(Some(theirs.to_owned())),
        Some(ours) => {
            let joined = tree::join(&repository.files(ours)?, &their_files);
            // A commit whose files were pruned is not kept as a parent, or it would keep them.
            let parents: &[&str] = match (joined.remove.is_empty(), joined.keeps_theirs) {
                _ if joined.is_theirs => return Ok(Some(theirs.to_owned())),
                (true, false) if joined.add.is_empty() => return Ok(None),
                (true, true) => &[ours, theirs],
                (true, false) => &[ours],
                (false, true) => &[theirs],
                (false, false) => &[],
            };
            let tree = repository.ask(|git| git.tree_with(Some(ours), &joined.add, &joined.remove))?;
            repository.ask(|git| git.commit_tree(&tree, parents, "Join histories")).map(Some)
        }
    })
}

/// Moves the ref to the commit that `next` makes of its commit, unless that is `None`; again if another process moved it meanwhile.
pub fn change(
    repository: &Repository,
    name: &str,
    mut next: impl FnMut(Option<&str>) -> Result<Option<String>, HistoryError>,
) -> Result<(), HistoryError> {
    for _ in 0..TRIES {
        let ours = repository.commit(name)?;
        let Some(commit) = next(ours.as_deref())? else { return Ok(()) };
        if repository.ask(|git| git.move_ref(name, &commit, ours.as_deref()))? {
            return Ok(());
        }
    }
    let what = "other processes move it all the time; try again".to_owned();
    Err(HistoryError::Unfinished { place: place(name), what })
}
