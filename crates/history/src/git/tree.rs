//! The files of a history in git, and the rule by which two sets of them are joined.
//!
//! Joining takes the files of both. A summary takes the place of its run, and a run that was removed leaves a mark that takes the place of
//! both: so pruning is joined like everything else, and nobody brings back what another has pruned.

use holdpoint_model::RunHash;
use holdpoint_process::git::TreeFile as File;
use std::collections::HashSet;

/// Runs as they were added, named after their hash.
pub const RUNS: &str = "runs/";
/// Runs without their samples, named after the run's hash and their own.
pub const SUMMARIES: &str = "summaries/";
/// Marks of runs that were removed.
pub(crate) const REMOVED: &str = "removed/";
/// Changes that somebody accepted.
pub(crate) const ACCEPTED: &str = "accepted/";

pub const FOLDERS: [&str; 4] = [RUNS, SUMMARIES, REMOVED, ACCEPTED];

/// Hex digits of a hash.
const HASH_CHARS: usize = 64;

pub(crate) fn run_path(run: &RunHash) -> String {
    let run = run.to_string();
    format!("{RUNS}{run:.2}/{run}.json")
}

pub(crate) fn summary_path(run: &RunHash, summary_hash: &str) -> String {
    let run = run.to_string();
    format!("{SUMMARIES}{run:.2}/{run}-{summary_hash}.json")
}

pub(crate) fn removed_path(run: &RunHash) -> String {
    let run = run.to_string();
    format!("{REMOVED}{run:.2}/{run}")
}

/// The run that a file of one of the folders is about.
pub(crate) fn run_of(path: &str, folder: &str) -> Option<RunHash> {
    let name = path.strip_prefix(folder)?.rsplit('/').next()?;
    RunHash::parse(name.get(..HASH_CHARS)?)
}

/// The files that make one set hold another as well.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Joined {
    /// Theirs that are missing.
    pub add: Vec<File>,
    /// Ours that something else takes the place of.
    pub remove: Vec<String>,
    /// Whether all of theirs are kept.
    pub keeps_theirs: bool,
    /// Whether the outcome is theirs.
    pub is_theirs: bool,
}

pub fn join(ours: &[File], theirs: &[File]) -> Joined {
    let both = || ours.iter().chain(theirs).map(|(path, _)| path.as_str());
    let runs_in = |folder: &str| both().filter_map(|path| run_of(path, folder)).collect::<HashSet<_>>();
    let (removed, summarised) = (runs_in(REMOVED), runs_in(SUMMARIES));
    let is_dropped = |path: &str| match (run_of(path, RUNS), run_of(path, SUMMARIES)) {
        (Some(run), _) => removed.contains(&run) || summarised.contains(&run),
        (None, Some(run)) => removed.contains(&run),
        (None, None) => false,
    };
    let paths = |files: &'_ [File]| files.iter().map(|(path, _)| path.clone()).collect::<HashSet<String>>();
    let (our_paths, their_paths) = (paths(ours), paths(theirs));
    let is_missing = |(path, _): &&File| !our_paths.contains(path) && !is_dropped(path);
    let keeps_theirs = !theirs.iter().any(|(path, _)| is_dropped(path));
    let is_only_ours = |(path, _): &File| !is_dropped(path) && !their_paths.contains(path);
    Joined {
        add: theirs.iter().filter(is_missing).cloned().collect(),
        remove: ours.iter().map(|(path, _)| path.clone()).filter(|path| is_dropped(path)).collect(),
        keeps_theirs,
        is_theirs: keeps_theirs && !ours.iter().any(is_only_ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(byte: u8) -> RunHash {
        RunHash([byte; 32])
    }

    fn files(paths: &[String]) -> Vec<File> {
        paths.iter().map(|path| (path.clone(), format!("blob of {path}"))).collect()
    }

    fn outcome(ours: &[File], theirs: &[File]) -> Vec<String> {
        let joined = join(ours, theirs);
        let kept = ours.iter().map(|(path, _)| path).filter(|path| !joined.remove.contains(path));
        let mut paths: Vec<String> = kept.chain(joined.add.iter().map(|(path, _)| path)).cloned().collect();
        paths.sort();
        paths
    }

    #[test]
    fn a_files_run_is_in_its_name() {
        assert_eq!(run_of(&run_path(&run(7)), RUNS), Some(run(7)));
        assert_eq!(run_of(&summary_path(&run(7), "ab"), SUMMARIES), Some(run(7)));
        assert_eq!(run_of(&removed_path(&run(7)), REMOVED), Some(run(7)));
        assert_eq!(run_of("runs/é", RUNS), None);
        assert_eq!(run_of(&run_path(&run(7)), SUMMARIES), None);
    }

    #[test]
    fn joining_does_not_depend_on_the_side_and_brings_nothing_back() {
        let old = files(&[run_path(&run(1)), run_path(&run(2)), run_path(&run(3))]);
        let added = files(&[run_path(&run(1)), run_path(&run(2)), run_path(&run(3)), run_path(&run(4))]);
        let pruned = files(&[summary_path(&run(1), "s"), removed_path(&run(2)), run_path(&run(3))]);
        let wanted =
            [removed_path(&run(2)), run_path(&run(3)), run_path(&run(4)), summary_path(&run(1), "s")];
        assert_eq!(outcome(&added, &pruned), wanted);
        assert_eq!(outcome(&pruned, &added), wanted);
        assert!(join(&old, &pruned).is_theirs && !join(&pruned, &old).keeps_theirs);
        assert!(!join(&added, &pruned).is_theirs);
        // A run that one has summarised is removed by the other.
        let removed = files(&[removed_path(&run(1))]);
        assert_eq!(outcome(&pruned, &removed), outcome(&removed, &pruned));
        assert!(!outcome(&pruned, &removed).contains(&summary_path(&run(1), "s")));
    }
}
