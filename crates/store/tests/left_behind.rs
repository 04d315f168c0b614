//! Locks on folders, and what dead processes left in them.

#![allow(clippy::unwrap_used)]

use holdpoint_store::{FolderLock, Scratch, check_writable, sweep, write_new, write_text};
use std::cell::Cell;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Nothing that is waited for takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_write_sweeps_what_dead_processes_left_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".holdpoint-a1b2c3.tmp"), "half a rep").unwrap();
    fs::create_dir_all(folder.path().join(".holdpoint-d4e5f6.tmp/deep")).unwrap();
    fs::write(folder.path().join(".holdpoint-d4e5f6.tmp/deep/tensor"), [0; 9]).unwrap();
    write_text(&folder.path().join("report.json"), "{}").unwrap();
    assert_eq!(names(folder.path()), ["report.json"]);
}

#[test]
fn a_folder_is_swept_before_the_work_that_fills_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".holdpoint-a1b2c3.tmp"), "").unwrap();
    check_writable(&folder.path().join("report.json")).unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn what_a_living_process_or_another_program_has_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let kept =
        [".holdpoint-a1b2c3", ".holdpoint-link.tmp", ".holdpoint-used.tmp", ".tmpABCDEF", "holdpoint-a.tmp"];
    for name in kept.iter().filter(|name| !name.contains("link")) {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("precious"), "").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".holdpoint-link.tmp")).unwrap();
    let used = File::open(folder.path().join(".holdpoint-used.tmp")).unwrap();
    used.lock().unwrap();
    sweep(folder.path());
    assert_eq!(names(folder.path()), kept);
    assert_eq!(names(elsewhere.path()), ["precious"]);
    drop(used);
    sweep(folder.path());
    assert_eq!(names(folder.path()).len(), kept.len() - 1);
}

#[test]
fn a_scratch_folder_outlives_a_sweep_and_goes_with_its_owner() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.path().to_owned();
    fs::write(path.join("tensor"), [1; 9]).unwrap();
    sweep(path.parent().unwrap());
    assert_eq!(names(&path), ["tensor"]);
    drop(scratch);
    assert!(!path.exists());
}

#[test]
fn writers_that_are_swept_all_the_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                sweep(folder.path());
            }
        });
        for at in 0..300 {
            write_text(&folder.path().join(format!("{at}.json")), "{}").unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(folder.path()).len(), 300);
}

#[test]
fn a_new_key_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    write_new(&path, "secret", 0o600).unwrap();
    assert!(write_new(&path, "other", 0o600).unwrap_err().to_string().contains("never overwritten"));
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("secret", 1));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_second_writer_waits_until_the_first_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let first = FolderLock::acquire(folder.path(), PATIENCE, || panic!("nobody is there")).unwrap();
    let (tell, told) = mpsc::channel();
    let second = std::thread::scope(|scope| {
        let second =
            scope.spawn(|| FolderLock::acquire(folder.path(), PATIENCE, move || tell.send(()).unwrap()));
        told.recv_timeout(PATIENCE).unwrap();
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap()
    });
    second.unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_writer_that_waits_in_vain_says_which_folder_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let _first = FolderLock::acquire(folder.path(), PATIENCE, || {}).unwrap();
    let waited = Cell::new(0);
    let error = FolderLock::acquire(folder.path(), Duration::ZERO, || waited.set(1)).unwrap_err();
    assert!(error.is_input());
    for word in [&*folder.path().display().to_string(), "another holdpoint", "choose another folder"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(waited.get(), 0);
}

#[test]
fn a_folder_that_was_replaced_while_it_was_locked_is_locked_anew() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("artifacts");
    let old = FolderLock::acquire(&folder, PATIENCE, || {}).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| FolderLock::acquire(&folder, PATIENCE, move || tell.send(()).unwrap()));
        told.recv_timeout(PATIENCE).unwrap();
        fs::remove_dir(&folder).unwrap();
        drop(old);
        let _second = second.join().unwrap().unwrap();
        assert!(FolderLock::acquire(&folder, Duration::ZERO, || {}).is_err());
    });
}

#[test]
fn a_folder_that_was_made_for_a_lock_goes_where_nothing_was_written() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("artifacts");
    drop(FolderLock::acquire(&folder, PATIENCE, || {}).unwrap());
    assert!(!folder.exists());
    let lock = FolderLock::acquire(&folder, PATIENCE, || {}).unwrap();
    write_text(&folder.join("report.json"), "{}").unwrap();
    drop(lock);
    assert_eq!(names(&folder), ["report.json"]);
}

#[test]
fn a_folder_that_is_swept_while_it_is_made_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                sweep(folder.path());
            }
        });
        // A folder that is swept without pause may be refused in the end, but by a reason that helps.
        let errors = (0..3_000).filter_map(|_| Scratch::new_in(folder.path()).err());
        let vanished = errors.map(|error| error.to_string()).find(|error| error.contains("no such file"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(vanished, None);
    });
}
