//! The folders that are mounted around measured code.

use super::super::event::variable;
use rustix::fs::{Access, access};
use rustix::process::getuid;
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Folders that are held, shut and hidden.
pub(crate) type Mounts = (Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>);

/// The program of GitHub's runner that starts steps.
const RUNNER: &str = "Runner.Worker";
/// Processes between it and this one at most.
const ANCESTORS_MAX: usize = 16;

/// Whatever lies in a folder that is shut is shut, but for what is open. Each folder on the way is held: it can be neither renamed nor
/// removed.
pub fn plan(open: &[PathBuf], shut: Vec<PathBuf>, hidden: Vec<PathBuf>) -> Mounts {
    let real = |path: &PathBuf| path.canonicalize().ok();
    let open: BTreeSet<PathBuf> = open.iter().filter_map(real).collect();
    let mut shut: BTreeSet<PathBuf> =
        shut.iter().filter_map(real).filter(|path| path != Path::new("/")).collect();
    let is_way = |path: &&Path| *path != Path::new("/");
    let held: BTreeSet<PathBuf> = open
        .iter()
        .chain(&shut)
        .flat_map(|path| path.ancestors().filter(is_way))
        .map(Path::to_owned)
        .collect();
    let is_inside = |path: &Path, folders: &BTreeSet<PathBuf>| {
        folders.iter().any(|folder| path != folder && path.starts_with(folder))
    };
    let more: Vec<PathBuf> =
        held.iter().filter(|path| is_inside(path, &shut) && !open.contains(*path)).cloned().collect();
    shut.extend(more);
    // What is mounted below them, too.
    for at in mounted() {
        let is_open = open.contains(&at) || is_inside(&at, &open);
        if !is_open && is_inside(&at, &shut) {
            shut.insert(at);
        }
    }
    (held.into_iter().collect(), shut.into_iter().collect(), hidden)
}

/// Where something is mounted.
fn mounted() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(|line| Some(unescape(line.split(' ').nth(4)?))).collect()
}

/// A path of the kernel's, in which odd characters are octal.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// The folder of GitHub's runner, if it started this job.
pub(crate) fn runner_folder() -> Option<PathBuf> {
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS_MAX {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of a program may have any character, and ends with the last bracket.
        pid = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        if program.file_name().is_some_and(|name| name == RUNNER) {
            return Some(program.parent()?.parent()?.to_owned());
        }
    }
    None
}

/// Credentials of the runner, and sockets by which it, or the user's systemd, can be told to run something.
pub fn hidden(runner: Option<&Path>) -> Vec<PathBuf> {
    let temp = PathBuf::from(variable("TMPDIR"));
    let temp = if temp.as_os_str().is_empty() { PathBuf::from("/tmp") } else { temp };
    let beginning = |folder: &Path, starts: &[&str]| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_meant = |name: &str| starts.iter().any(|start| name.starts_with(start));
        entries
            .filter(|entry| is_meant(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect()
    };
    let mut all = runner.map_or_else(Vec::new, |runner| beginning(runner, &[".credentials"]));
    all.extend(beginning(&temp, &["dotnet-diagnostic-", "clr-debug-pipe-"]));
    let of_user = PathBuf::from(format!("/run/user/{}", getuid().as_raw()));
    all.extend(of_user.is_dir().then_some(of_user));
    all
}

/// Whether this user may write to a folder.
pub fn is_writable(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK).is_ok()
}

/// Everything below a folder, itself included; links are seen and not followed.
pub fn walk(path: &Path, see: &mut dyn FnMut(&Path, &Metadata)) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    see(path, &metadata);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            walk(&entry.path(), see);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_what_is_open_is_held_and_shut() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (open, other) = (root.join("work/temp/open"), root.join("work/other"));
        for folder in [&open, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        let (held, shut, _) = plan(std::slice::from_ref(&open), vec![root.join("work")], Vec::new());
        assert!(held.contains(&open) && held.contains(&root) && !held.contains(&PathBuf::from("/")));
        assert!(shut.contains(&root.join("work")) && shut.contains(&root.join("work/temp")));
        assert!(!shut.contains(&open) && !shut.contains(&root));
    }

    #[test]
    fn a_mount_with_a_space_in_its_path_is_found() {
        assert_eq!(unescape("/mnt/a\\040b\\134c"), PathBuf::from("/mnt/a b\\c"));
        assert_eq!(unescape("/plain\\x"), PathBuf::from("/plain\\x"));
    }
}
