//! Places that cannot be written to.

use crate::common::{Here, data};
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn a_folder_below_a_file_is_refused_before_anything_is_measured() {
    let here = Here::new();
    here.write("file", "");
    let words = ["cannot be written: a part of the path is a file, not a folder; choose another path"];
    here.run(&["run", "--suite", "suite.toml", "-o", "file/a/report.json"]).refuses(64, &words);
    here.gate(&["--artifacts", "file/a"]).refuses(64, &words);
    here.gate(&["--baseline-dir", "file/b"]).refuses(64, &words);
    here.run(&["baseline", "record", "--suite", "suite.toml", "--baseline-dir", "file/b"])
        .refuses(64, &words);
    here.run(&["trend", "append", &data("trend-v1.json"), "--dir", "file/t"]).refuses(64, &words);
    assert_eq!(here.files(), ["file", "suite.toml"]);
}

#[test]
fn a_directory_is_not_replaced_by_a_file() {
    let here = Here::new();
    std::fs::create_dir(here.path("folder")).unwrap();
    let words = ["folder: cannot be written: it is a directory; name a file"];
    here.run(&["run", "--suite", "suite.toml", "-o", "folder"]).refuses(64, &words);
    let report = data("apex-cpu-report.json");
    here.run(&["compare", &report, "--baseline", &report, "--summary", "folder"]).refuses(64, &words);
    assert!(here.path("folder").is_dir());
}

#[test]
fn a_read_only_folder_is_an_io_failure_before_anything_is_measured() {
    let here = Here::new();
    let folder = here.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    let words = ["permission denied; check the owner and mode"];
    here.run(&["run", "--suite", "suite.toml", "-o", "locked/report.json"]).refuses(70, &words);
    here.gate(&["--artifacts", "locked"]).refuses(70, &words);
    here.gate(&["--baseline-dir", "locked"]).refuses(70, &words);
    assert_eq!(here.files(), ["suite.toml"]);
}

#[test]
fn a_full_disk_loses_no_report() {
    let here = Here::new();
    let ran = here.run(&["-q", "run", "--suite", "suite.toml", "-o", "/dev/full"]);
    ran.refuses(
        70,
        &["/dev/full: cannot be written: no space left on the device", "; the report was kept in "],
    );
    let kept = ran.stderr.trim_end().rsplit(' ').next().unwrap();
    assert!(kept.starts_with(here.tmp().to_str().unwrap()), "{kept}");
    here.run(&["report", kept]).ends(0).prints(&["pack"]);
    assert_eq!(here.left_over().len(), 1);
}

#[test]
fn a_full_disk_is_told_whatever_was_to_be_written() {
    let here = Here::new();
    let report = data("apex-cpu-report.json");
    for arguments in [
        &["compare", &report, "--baseline", &report, "--summary", "/dev/full"][..],
        &["compare", &report, "--baseline", &report, "--trend-output", "/dev/full"],
        &["baseline", "record", &report, "--baseline", "/dev/full"],
        &["report", &data("report-v1.json"), "--markdown", "/dev/full"],
    ] {
        here.run(arguments).refuses(70, &["/dev/full: cannot be written: no space left on the device"]);
    }
    assert_eq!((here.files(), here.left_over()), (vec!["suite.toml".to_owned()], vec![]));
}

#[test]
fn a_full_disk_behind_stdout_is_told_too() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let report = data("apex-cpu-report.json");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("holdpoint"));
    command.args(["compare", &report, "--baseline", &report]).stdout(full).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("holdpoint: cannot write to stdout: "), "{stderr}");
}

#[test]
fn an_old_file_is_replaced_whole_and_keeps_its_mode() {
    let here = Here::new();
    here.write("report.json", "old");
    std::fs::set_permissions(here.path("report.json"), Permissions::from_mode(0o640)).unwrap();
    here.run(&["run", "--suite", "suite.toml", "-o", "report.json"]).ends(0);
    assert_eq!(here.json("report.json")["status"], "ok");
    let mode = std::fs::metadata(here.path("report.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(here.files(), ["report.json", "report.seal.json", "suite.toml"]);
}
