//! Runs executables of the sides from fresh copies, so that a verdict belongs to a program and not to one file: which pages of
//! memory hold a file's code stays the same from process to process, and can change its speed by percents.
//!
//! A copy lies beside the original, where its libraries are found; the program is told the original's name. Programs that both sides
//! share are run as they are, and so is everything else if one side's cannot be copied.

use super::Sides;
use crate::program::{ChangedCopy, CopiedFile, Copies, Place};
use holdpoint_stats::random::Random;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

/// Larger files are not copied: it would take longer than measuring.
const BYTES_MAX: u64 = 64 << 20;
/// Copying may take this share of the time.
const TIME_SHARE: f64 = 0.2;
/// Programs of the system find their parts by where they lie.
const SYSTEM: [&str; 7] = ["/bin", "/sbin", "/usr", "/lib", "/opt", "/nix", "/snap"];
const MARK: &str = ".holdpoint-copy-";

pub(super) struct Fresh {
    originals: Vec<OsString>,
    copies: Copies,
    copied: Instant,
    copy_s: f64,
    count: u32,
    changed: ChangedCopy,
}

impl Fresh {
    /// The executables in which the sides differ.
    pub(super) fn new(sides: &Sides) -> Self {
        let mut originals = Vec::new();
        for head in &sides.head.workloads {
            let Some(base) = super::find(&sides.base, &head.name) else { continue };
            let programs = [(&sides.base, base), (&sides.head, head)].map(|(suite, spec)| {
                let (command, dir) = match suite.workers.get(spec.worker()) {
                    Some(worker) => (&worker.command, worker.dir.as_ref().or(suite.dir.as_ref())),
                    None => (&spec.task.call()?.command, suite.dir.as_ref()),
                };
                let place = Place { dir: dir.cloned(), ..Place::default() };
                let program = command.first().filter(|program| program.contains('/'))?;
                Some(place.resolve(program))
            });
            if let [Some(base), Some(head)] = programs
                && are_different_executables(&base, &head)
            {
                originals.extend([base, head]);
            }
        }
        originals.sort();
        originals.dedup();
        originals.iter().for_each(|original| remove_left_over(Path::new(original)));
        let changed = ChangedCopy::default();
        Self { originals, copies: Copies::default(), copied: Instant::now(), copy_s: 0.0, count: 0, changed }
    }

    /// The original of a copy that was written to, once all copies are removed.
    pub(super) fn changed_copies(&self) -> ChangedCopy {
        self.changed.clone()
    }

    /// The copies to run, made anew if the last ones have served for long enough.
    pub(super) fn copies(&mut self, random: &mut Random) -> Copies {
        let is_due = self.copied.elapsed().as_secs_f64() * TIME_SHARE >= self.copy_s;
        if !self.originals.is_empty() && (self.count == 0 || is_due) {
            let start = Instant::now();
            random.shuffle(&mut self.originals);
            self.count += 1;
            let copies =
                self.originals.iter().map(|original| Some((original.clone(), copy(original, self.count)?)));
            match copies.collect::<Option<_>>() {
                Some(copies) => self.copies = Copies::new(copies, self.changed.clone()),
                // Both sides or none.
                None => {
                    self.originals.clear();
                    self.copies = Copies::default();
                }
            }
            (self.copied, self.copy_s) = (Instant::now(), start.elapsed().as_secs_f64());
        }
        self.copies.clone()
    }
}

fn are_different_executables(base: &OsString, head: &OsString) -> bool {
    let [Some(base), Some(head)] = [base, head].map(|path| copyable(Path::new(path))) else { return false };
    (base.dev(), base.ino()) != (head.dev(), head.ino())
}

/// The file, if it is an executable in a folder of the user's that may be written to.
fn copyable(path: &Path) -> Option<Metadata> {
    let real = path.canonicalize().ok()?;
    let is_linked = fs::symlink_metadata(path).ok()?.is_symlink();
    if is_linked || SYSTEM.iter().any(|folder| real.starts_with(folder)) {
        return None;
    }
    let mut magic = [0; 4];
    fs::File::open(path).ok()?.read_exact(&mut magic).ok()?;
    let is_writable = rustix::fs::access(path.parent()?, rustix::fs::Access::WRITE_OK).is_ok();
    let file = fs::metadata(path).ok()?;
    (&magic == b"\x7fELF" && is_writable && file.is_file() && file.len() <= BYTES_MAX).then_some(file)
}

/// A copy beside the original; its name has the same length on both sides if theirs have.
fn copy(original: &OsString, count: u32) -> Option<CopiedFile> {
    let original = Path::new(original);
    let mut name = OsString::from(".");
    name.push(original.file_name()?);
    name.push(format!("{MARK}{}-{count:06}", std::process::id()));
    let copy = original.with_file_name(name);
    fs::copy(original, &copy).inspect_err(|_| _ = fs::remove_file(&copy)).ok()?;
    Some(CopiedFile::new(copy))
}

/// Removes copies of comparisons that were killed.
fn remove_left_over(original: &Path) {
    let (Some(folder), Some(name)) = (original.parent(), original.file_name()) else { return };
    let prefix = format!(".{}{MARK}", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let process = file_name.to_str().and_then(|name| name.strip_prefix(&prefix)?.split('-').next());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadySuite;
    use holdpoint_model::Suite;
    use std::path::PathBuf;

    fn sides(base: &Path, head: &Path) -> Sides {
        let side = |dir: &Path| {
            let text =
                "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\ncommand = [\"./prog\"]\n";
            ReadySuite::list(Suite { dir: Some(dir.to_owned()), ..Suite::parse(text).unwrap() }).unwrap()
        };
        Sides { base: side(base), head: side(head), pin: false, measure_same_code: false }
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn executables_of_the_sides_are_copied_anew_and_removed() {
        let (base, head) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for dir in [&base, &head] {
            fs::copy("/bin/true", dir.path().join("prog")).unwrap();
        }
        // Of a process that is gone.
        fs::write(base.path().join(format!(".prog{MARK}4194305-000001")), "").unwrap();
        let mut fresh = Fresh::new(&sides(base.path(), head.path()));
        assert_eq!(names(base.path()), ["prog"]);
        let mut random = Random::new(1);
        let in_use = fresh.copies(&mut random);
        let copies: Vec<PathBuf> = in_use.paths().cloned().collect();
        assert_eq!(copies.len(), 2);
        assert_eq!(copies[0].file_name(), copies[1].file_name(), "neither side's name is longer");
        assert!(copies.iter().all(|copy| fs::metadata(copy).unwrap().len() > 0));
        fresh.copy_s = 0.0;
        let again: Vec<PathBuf> = fresh.copies(&mut random).paths().cloned().collect();
        assert!(copies.iter().all(|copy| copy.exists() && !again.contains(copy)), "a unit still runs them");
        drop(in_use);
        assert_eq!(fresh.changed_copies().get(), None);
        assert!(copies.iter().all(|copy| !copy.exists()));
        let place =
            Place { dir: Some(base.path().to_owned()), copies: fresh.copies.clone(), ..Place::default() };
        assert!(again.contains(&PathBuf::from(place.command("./prog").get_program())));
        drop((fresh, place));
        assert_eq!(
            (names(base.path()), names(head.path())),
            (vec!["prog".to_owned()], vec!["prog".to_owned()])
        );
    }

    #[test]
    fn a_copy_that_somebody_writes_over_is_found_out() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for dir in &dirs {
            fs::copy("/bin/true", dir.path().join("prog")).unwrap();
        }
        let mut fresh = Fresh::new(&sides(dirs[0].path(), dirs[1].path()));
        let copies = fresh.copies(&mut Random::new(1));
        let original = dirs[0].path().join("prog");
        let copy = copies.paths().find(|copy| copy.starts_with(dirs[0].path())).unwrap();
        fs::copy("/bin/false", copy).unwrap();
        let changed = fresh.changed_copies();
        drop((fresh, copies));
        assert_eq!(changed.get(), Some(&original.into_os_string()));
    }

    #[test]
    fn a_file_that_both_sides_share_a_script_and_a_program_of_the_system_are_run_as_they_are() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::copy("/bin/true", dirs[0].path().join("prog")).unwrap();
        let is_copied = |sides: &Sides| !Fresh::new(sides).originals.is_empty();
        assert!(!is_copied(&sides(dirs[0].path(), dirs[0].path())));
        fs::write(dirs[1].path().join("prog"), "#!/bin/sh\n").unwrap();
        assert!(!is_copied(&sides(dirs[0].path(), dirs[1].path())));
        assert!(copyable(Path::new("/bin/true")).is_none() && copyable(Path::new("/nowhere")).is_none());
    }
}
