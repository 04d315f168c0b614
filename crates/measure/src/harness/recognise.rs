//! Commands that are harnesses: measured as commands, they show their own time budget and not the benchmarks in them.

use crate::builds::resolve_program;
use holdpoint_model::suite::HarnessKind;
use memchr::memmem;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Text that only executables with this harness have. It is cut, so that this one does not.
const MARKS: [(HarnessKind, &str); 4] = [
    (HarnessKind::Criterion, "Criterion.rs| ERROR: "),
    (HarnessKind::GoogleBenchmark, "[--benchmark_list_|tests="),
    // Linked to its library.
    (HarnessKind::GoogleBenchmark, "9benchmark8internal|25RegisterBenchmarkInternal"),
    (HarnessKind::Go, "testing: warning: no| tests to run"),
];
/// Larger executables are not looked into.
const BYTES_MAX: u64 = 512 << 20;

/// The harness that a command line in this folder seems to run.
pub fn recognise(command: &[String], dir: &Path) -> Option<HarnessKind> {
    by_words(command).or_else(|| by_content(Path::new(&resolve_program(dir, command.first()?))))
}

fn by_words(command: &[String]) -> Option<HarnessKind> {
    let program = Path::new(command.first()?).file_name()?.to_str()?;
    let has = |wanted: &str| command.iter().any(|word| word == wanted);
    let begins = |start: &str| command.iter().any(|word| word.starts_with(start));
    match program {
        "cargo" if has("bench") => Some(HarnessKind::Criterion),
        "go" if has("test") && (begins("-bench") || begins("--bench")) => Some(HarnessKind::Go),
        _ if (program == "pytest" || has("pytest")) && begins("--benchmark-") => {
            Some(HarnessKind::PytestBenchmark)
        }
        _ => None,
    }
}

pub(super) fn by_content(program: &Path) -> Option<HarnessKind> {
    let mut start = [0; 4];
    File::open(program).ok()?.read_exact(&mut start).ok()?;
    if start != *b"\x7fELF" || program.metadata().ok()?.len() > BYTES_MAX {
        return None;
    }
    let content = fs::read(program).ok()?;
    let has = |mark: &str| memmem::find(&content, mark.replace('|', "").as_bytes()).is_some();
    MARKS.iter().find(|(_, mark)| has(mark)).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<HarnessKind> {
        by_words(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn harnesses_are_known_by_their_words() {
        assert_eq!(words("cargo bench -p a"), Some(HarnessKind::Criterion));
        assert_eq!(words("/usr/bin/python3 -m pytest --benchmark-only"), Some(HarnessKind::PytestBenchmark));
        assert_eq!(words("pytest tests"), None, "its tests are measured");
        assert_eq!(words("go test -bench=. ./..."), Some(HarnessKind::Go));
        assert_eq!(words("go test ./..."), None);
    }

    #[test]
    fn harnesses_are_known_by_their_text_and_this_program_is_none() {
        let dir = tempfile::tempdir().unwrap();
        for (kind, mark) in MARKS {
            let program = dir.path().join("bench");
            let text = mark.replace('|', "");
            fs::write(&program, format!("\x7fELF and other things {text} and more")).unwrap();
            assert_eq!(by_content(&program), Some(kind));
            fs::write(&program, format!("a script about {text}")).unwrap();
            assert_eq!(by_content(&program), None);
        }
        assert_eq!(by_content(&std::env::current_exe().unwrap()), None);
        assert_eq!(by_content(&dir.path().join("absent")), None);
    }
}
