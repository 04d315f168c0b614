//! Histories with files that cannot be read, or that are too many.

use super::*;
use std::io::Write;
use std::process::Stdio;

/// There are no two sides in these histories.
const JUDGE: Judge = |_| Err("not judged here".to_owned());
const REF: &str = "refs/holdpoint/history";
const REPORT: &str = include_str!("../../../model/tests/data/report-v1.json");

/// A repository whose history holds these files.
fn history_of(files: &[(String, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let done = holdpoint_process::command("git").args(["init", "--quiet"]).arg(dir.path()).status();
    assert!(done.unwrap().success());
    let repository = Repository::open(dir.path(), REF).unwrap();
    let blobs = repository.ask(|git| git.write_blobs(files)).unwrap();
    let tree = repository.ask(|git| git.tree_with(None, &blobs, &[])).unwrap();
    let commit = repository.ask(|git| git.commit_tree(&tree, &[], "runs")).unwrap();
    assert!(repository.ask(|git| git.move_ref(REF, &commit, None)).unwrap());
    dir
}

fn run(text: &str) -> (String, String) {
    (format!("runs/00/{}.json", hash_of(text)), text.to_owned())
}

#[test]
fn bad_files_are_named_and_left_out_and_all_others_are_read() {
    let large = run(&"x".repeat(REPORT.len() + 1));
    let edited = (format!("runs/00/{}.json", "0".repeat(64)), "{}".to_owned());
    let others = [("runs/notes.txt", "?"), ("accepted/bad.json", "{"), ("README.md", "hi")];
    let others = others.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let dir = history_of(&[vec![large.clone(), edited.clone(), run(REPORT)], others.to_vec()].concat());
    let limits = BlobLimits { file_bytes: REPORT.len() as u64, ..LIMITS };
    let store = GitStore::open(REF, Access::Existing, dir.path(), limits, JUDGE).unwrap();
    assert!(!store.list(&SeriesFilter::default()).unwrap().is_empty());
    let why = |path: &str| store.left_out.iter().find(|line| line.starts_with(path)).unwrap();
    assert!(why(&large.0).contains("over the limit"), "{}", why(&large.0));
    assert!(why(&edited.0).contains("its content is not that of its name"));
    others.iter().for_each(|(path, _)| _ = why(path));
    assert_eq!(store.left_out.len(), 5, "{:?}", store.left_out);
}

#[test]
fn a_few_trees_that_list_millions_of_files_are_refused() {
    let dir = history_of(&[run(REPORT)]);
    let repository = Repository::open(dir.path(), REF).unwrap();
    let git = |arguments: &[&str], input: &str| {
        let mut git = holdpoint_process::git::Repository::around(dir.path()).command(&[]);
        let mut child = git.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let mut entry = format!("100644 blob {}", git(&["hash-object", "-w", "--stdin"], "{}"));
    for _ in 0..6 {
        let tree: String = (0..10).map(|name| format!("{entry}\t{name}\n")).collect();
        entry = format!("040000 tree {}", git(&["mktree"], &tree));
    }
    let tree = git(&["mktree"], &format!("{entry}\truns\n"));
    let bomb = repository.ask(|git| git.commit_tree(&tree, &[], "bomb")).unwrap();
    let whole = repository.commit(REF).unwrap();
    assert!(exchange::join(&repository, REF, &bomb).is_err());
    assert_eq!(repository.commit(REF).unwrap(), whole, "the ref is as it was");
    assert!(repository.ask(|git| git.move_ref(REF, &bomb, whole.as_deref())).unwrap());
    let error = GitStore::open(REF, Access::Existing, dir.path(), LIMITS, JUDGE).err().unwrap().to_string();
    assert!(
        error.contains("git:refs/holdpoint/history: ")
            && error.contains("lists more than")
            && error.contains("set the ref back"),
        "{error}"
    );
}

#[test]
fn a_run_that_cannot_be_added_does_not_keep_the_others_out() {
    let refused = |what: &str| Err(HistoryError::Failed { place: "x".to_owned(), what: what.to_owned() });
    let mut added = Vec::new();
    let add = |records: &[u32]| match records.contains(&2) {
        true => refused("2 is bad"),
        false => {
            added.extend_from_slice(records);
            Ok(())
        }
    };
    let left_out = add_possible(&[1, 2, 3], add).unwrap();
    assert_eq!((left_out[0].0, left_out.len(), added), (1, 1, vec![1, 3]));
    assert!(add_possible(&[1, 3], |_| refused("the disk is full")).is_err());
}

#[test]
fn runs_of_the_future_and_changes_accepted_by_nobody_are_left_out() {
    let report: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    let mut later = report.clone();
    later["timestamp_utc"] = "2999-01-01T00:00:00Z".into();
    let accepted = |by: &str| {
        let text = format!(
            "{{\"series\": \"0123456789ab\", \"timestamp_utc\": \"2026-11-18T00:00:00Z\", \"run\": \"{}\", \"by\": \"{by}\", \
             \"why\": \"exact\", \"accepted_at_utc\": \"2026-11-18T00:00:00Z\"}}",
            "0".repeat(64)
        );
        (format!("accepted/{by}.json"), text)
    };
    let later = run(&later.to_string());
    let dir = history_of(&[run(REPORT), later.clone(), accepted("Ada"), accepted("anyone")]);
    let store = GitStore::open(REF, Access::Existing, dir.path(), LIMITS, JUDGE).unwrap();
    let why = |path: &str| store.left_out.iter().find(|line| line.starts_with(path)).unwrap();
    assert!(why(&later.0).contains("one of the clocks is off"), "{}", why(&later.0));
    assert!(why("accepted/anyone").contains("\"anyone\" does not name a person"));
    assert_eq!(store.left_out.len(), 2, "{:?}", store.left_out);
}

#[test]
fn no_more_is_read_at_once_than_all_files_may_have() {
    let runs = [REPORT.to_owned(), format!("{REPORT}\n")].map(|text| run(&text));
    let dir = history_of(&runs);
    let limits = BlobLimits { left_bytes: REPORT.len() as u64 + 1, batch_bytes: 1, ..LIMITS };
    let store = GitStore::open(REF, Access::Existing, dir.path(), limits, JUDGE).unwrap();
    assert_eq!(store.left_out.len(), 1, "{:?}", store.left_out);
    // What was read is known the next time, and takes none of it.
    let again = BlobLimits { left_bytes: REPORT.len() as u64 + 1, ..LIMITS };
    let store = GitStore::open(REF, Access::Existing, dir.path(), again, JUDGE).unwrap();
    assert_eq!(store.left_out, [""; 0]);
}
