//! Commands that are harnesses: measured as commands, they show their own time budget and not the benchmarks in them.

use super::{Harness, all};
use crate::program::resolve_program;
use memchr::memmem;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Larger executables are not looked into.
const BYTES_MAX: u64 = 512 << 20;

/// Longer scripts and manifests are not looked into.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The harness that a command line in this folder seems to run.
pub fn recognise(command: &[String], dir: &Path) -> Option<&'static dyn Harness> {
    let line = CommandLine(command);
    all()
        .find(|harness| harness.is_run_by(&line, dir))
        .or_else(|| by_content(Path::new(&resolve_program(dir, command.first()?))))
}

/// A command line, and questions about its words.
pub struct CommandLine<'a>(&'a [String]);

impl CommandLine<'_> {
    /// The name of its program.
    pub(super) fn program(&self) -> &str {
        let name = self.0.first().and_then(|program| Path::new(program).file_name()?.to_str());
        name.unwrap_or_default()
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|other| other == word)
    }

    pub(super) fn has_start(&self, start: &str) -> bool {
        self.0.iter().any(|word| word.starts_with(start))
    }

    pub(super) fn has_end(&self, end: &str) -> bool {
        self.0.iter().any(|word| word.ends_with(end))
    }

    /// Whether Python runs this module, or the program of that name.
    pub(super) fn runs_module(&self, name: &str) -> bool {
        self.program() == name || self.program().starts_with("python") && self.has(name)
    }

    /// The start of the first script in Python that it names.
    pub(super) fn script(&self, dir: &Path) -> String {
        let script = self.0.iter().find(|word| word.ends_with(".py"));
        script.map(|script| read_start(&dir.join(script))).unwrap_or_default()
    }
}

/// The start of a text; nothing where it cannot be read.
pub(super) fn read_start(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(TEXT_BYTES_MAX).read_to_string(&mut text);
    }
    text
}

/// The harness that an executable was linked with.
pub(super) fn by_content(program: &Path) -> Option<&'static dyn Harness> {
    let mut start = [0; 4];
    File::open(program).ok()?.read_exact(&mut start).ok()?;
    if start != *b"\x7fELF" || program.metadata().ok()?.len() > BYTES_MAX {
        return None;
    }
    let content = fs::read(program).ok()?;
    let has = |mark: &str| memmem::find(&content, mark.replace('|', "").as_bytes()).is_some();
    all().find(|harness| harness.marks().iter().any(|mark| has(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_in(text: &str, dir: &Path) -> Option<&'static str> {
        let command: Vec<String> = text.split(' ').map(str::to_owned).collect();
        recognise(&command, dir).map(Harness::name)
    }

    #[test]
    fn harnesses_are_known_by_their_words() {
        let dir = tempfile::tempdir().unwrap();
        let words = |text: &str| kind_in(text, dir.path());
        assert_eq!(words("cargo bench -p a"), Some("criterion"));
        assert_eq!(words("/usr/bin/python3 -m pytest --benchmark-only"), Some("pytest-benchmark"));
        assert_eq!(words("pytest tests"), None, "its tests are measured");
        assert_eq!(words("go test -bench=. ./..."), Some("go"));
        assert_eq!(words("go test ./..."), None);
        assert_eq!(words("hyperfine true"), Some("hyperfine"));
        assert_eq!(words("java -jar target/benchmarks.jar"), Some("jmh"));
        assert_eq!(words("java -jar server.jar"), None);
        assert_eq!(words("python3 -m pyperf timeit 1+1"), Some("pyperf"));
        assert_eq!(words("asv run --quick"), Some("asv"));
    }

    #[test]
    fn harnesses_are_known_by_their_scripts_and_manifests() {
        let dir = tempfile::tempdir().unwrap();
        let kind = |text: &str| kind_in(text, dir.path());
        assert_eq!(kind("python3 bench.py"), None, "absent");
        fs::write(dir.path().join("bench.py"), "import pyperf\nrunner = pyperf.Runner()\n").unwrap();
        fs::write(dir.path().join("other.py"), "print(1)\n").unwrap();
        assert_eq!(kind("python3 bench.py --fast"), Some("pyperf"));
        assert_eq!(kind("python3 other.py"), None);
        fs::write(dir.path().join("Cargo.toml"), "[dev-dependencies]\ndivan = \"0.1\"\n").unwrap();
        assert_eq!(kind("cargo bench"), Some("divan"));
        fs::write(dir.path().join("Cargo.toml"), "[dev-dependencies]\ncriterion = \"0.8\"\n").unwrap();
        assert_eq!(kind("cargo bench"), Some("criterion"));
    }

    #[test]
    fn harnesses_are_known_by_their_text_and_this_program_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let marks = all().flat_map(|harness| harness.marks().iter().map(|mark| (harness.name(), *mark)));
        for (kind, mark) in marks {
            let program = dir.path().join("bench");
            let text = mark.replace('|', "");
            fs::write(&program, format!("\x7fELF and other things {text} and more")).unwrap();
            assert_eq!(by_content(&program).map(Harness::name), Some(kind));
            fs::write(&program, format!("a script about {text}")).unwrap();
            assert!(by_content(&program).is_none());
        }
        assert!(by_content(&std::env::current_exe().unwrap()).is_none());
        assert!(by_content(&dir.path().join("absent")).is_none());
    }
}
