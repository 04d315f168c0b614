//! Files on a real disk: what is read, what is refused, what is left behind.

#![allow(clippy::unwrap_used)]

use holdpoint_model::{Report, Trend};
use holdpoint_store::*;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use tempfile::TempDir;

const SUITE: &str = "schema_version = 1\nname = \"mine\"\n[[workload]]\nname = \"ls\"\ncommand = [\"ls\"]\n";

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[track_caller]
fn assert_error(error: &StoreError, is_input: bool, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} should contain {word:?}");
    }
    assert!(!text.contains('\n'), "{text:?} should be one line");
    assert_eq!(error.is_input(), is_input, "{text}");
}

#[test]
fn a_written_file_is_read_back_and_its_folders_are_made() {
    let folder = folder();
    let path = folder.path().join("a/b/suite.toml");
    write_text(&path, SUITE).unwrap();
    assert_eq!(read_text(&path).unwrap(), SUITE);
    assert_eq!(read_suite(&path).unwrap().name, "mine");
    assert_eq!(names(path.parent().unwrap()), ["suite.toml"]);
}

#[test]
fn a_missing_file_is_bad_input_and_is_named() {
    let folder = folder();
    let path = folder.path().join("nowhere/report.json");
    assert_error(
        &read_document::<Report>(&path).unwrap_err(),
        true,
        &["nowhere/report.json", "no such file"],
    );
}

#[test]
fn a_dash_is_a_path_like_any_other() {
    assert_error(&read_text(Path::new("-")).unwrap_err(), true, &["-: cannot be read", "no such file"]);
}

#[test]
fn a_directory_is_neither_read_nor_replaced() {
    let folder = folder();
    let path = folder.path().join("taken");
    fs::create_dir(&path).unwrap();
    assert_error(&read_text(&path).unwrap_err(), true, &["it is a directory"]);
    assert_error(&write_text(&path, "text").unwrap_err(), true, &["it is a directory"]);
    assert_eq!(names(folder.path()), ["taken"]);
}

#[test]
fn a_path_below_a_file_is_refused_and_the_file_is_untouched() {
    let folder = folder();
    fs::write(folder.path().join("file"), "old").unwrap();
    let path = folder.path().join("file/sub/report.json");
    assert_error(&write_text(&path, "new").unwrap_err(), true, &["cannot be written", "not a folder"]);
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "old");
    assert_eq!(names(folder.path()), ["file"]);
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_keeps_its_old_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("report.json");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let outcome = write_text(&path, "new");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let Err(error) = outcome else {
        eprintln!("skipped: this user may write to read-only folders (root?)");
        return;
    };
    assert_error(&error, false, &["permission denied"]);
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("old", 1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_io_failure_and_a_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt;
    let error = write_text(Path::new("/dev/full"), "text").unwrap_err();
    assert_error(&error, false, &["/dev/full", "no space left"]);
    assert!(matches!(error, StoreError::Write { source, .. } if source.kind() == ErrorKind::StorageFull));
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_the_mode_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    write_text(&link, "new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
    write_text(&ours, "x").unwrap();
    fs::write(&plain, "x").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}

#[test]
fn a_huge_file_is_refused_by_its_size_without_reading_it() {
    let folder = folder();
    let path = folder.path().join("huge.json");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = read_current(&path).unwrap_err();
    assert_error(&error, true, &["1099511627776 bytes", "at most 536870912"]);
}

#[test]
fn bytes_that_are_no_text_are_named_by_their_offset() {
    let folder = folder();
    let path = folder.path().join("report.json");
    fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
    assert_error(&read_baseline(&path).unwrap_err(), true, &["report.json", "not UTF-8", "offset 7"]);
}

#[test]
fn what_is_wrong_inside_a_file_is_told_with_the_files_name() {
    let folder = folder();
    let path = folder.path().join("x.json");
    for (text, words) in [
        ("{\"schema_version\": 1, \"metrics\": {", ["x.json", "EOF while parsing"]),
        ("{\"schema_version\": 99, \"metrics\": {}}", ["x.json", "schema_version is 99"]),
        ("{\"hello\": 1}", ["x.json", "top-level keys are hello"]),
        ("", ["x.json", "EOF while parsing"]),
    ] {
        fs::write(&path, text).unwrap();
        for error in [
            read_document::<Report>(&path).unwrap_err(),
            read_current(&path).unwrap_err(),
            read_baseline(&path).unwrap_err(),
            read_document::<Trend>(&path).unwrap_err(),
        ] {
            assert_error(&error, true, &words);
        }
    }
    fs::write(&path, "name = ").unwrap();
    let error = read_suite(&path).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("x.json: TOML parse error at line 1"), "{error}");
}

#[test]
fn a_value_without_a_json_form_leaves_nothing_behind() {
    let folder = folder();
    let path = folder.path().join("x.json");
    let value = std::collections::HashMap::from([((1, 2), 3)]);
    assert_error(&write_json(&path, &value).unwrap_err(), false, &["x.json", "key must be a string"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_reader_beside_a_writer_sees_only_whole_files() {
    let folder = folder();
    let path = folder.path().join("x.txt");
    let texts = ["a".repeat(200_000), "b".repeat(300_000)];
    write_text(&path, &texts[0]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..20).for_each(|i| write_text(&path, &texts[i % 2]).unwrap()));
        while !writer.is_finished() {
            assert!(texts.contains(&read_text(&path).unwrap()));
        }
    });
    assert_eq!(names(folder.path()), ["x.txt"]);
}
