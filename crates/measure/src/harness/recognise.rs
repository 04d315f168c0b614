//! Commands that are harnesses: measured as commands, they show their own time budget and not the benchmarks in them.

use crate::builds::resolve_program;
use holdpoint_model::suite::HarnessKind;
use memchr::memmem;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Text that only executables with this harness have. It is cut, so that this one does not.
const MARKS: [(HarnessKind, &str); 7] = [
    (HarnessKind::Criterion, "Criterion.rs| ERROR: "),
    (HarnessKind::GoogleBenchmark, "[--benchmark_list_|tests="),
    // Linked to its library.
    (HarnessKind::GoogleBenchmark, "9benchmark8internal|25RegisterBenchmarkInternal"),
    (HarnessKind::Go, "testing: warning: no| tests to run"),
    (HarnessKind::Divan, "DIVAN_SAMPLE|_COUNT"),
    // A type that only a `BENCHMARK` brings in: most programs with Catch2 have tests only.
    (HarnessKind::Catch2, "Catch9Benchmark6Detail17|BenchmarkFunction5model"),
    (HarnessKind::Nvbench, "N7nvbench|14benchmark_baseE"),
];
/// Larger executables are not looked into.
const BYTES_MAX: u64 = 512 << 20;

/// Longer scripts and manifests are not looked into.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The harness that a command line in this folder seems to run.
pub fn recognise(command: &[String], dir: &Path) -> Option<HarnessKind> {
    match by_words(command) {
        Some(HarnessKind::Criterion) if uses_divan(dir) => Some(HarnessKind::Divan),
        Some(kind) => Some(kind),
        None => {
            by_script(command, dir).or_else(|| by_content(Path::new(&resolve_program(dir, command.first()?))))
        }
    }
}

/// Whether benchmarks of a package are divan's: `cargo bench` runs Criterion's in the same way.
fn uses_divan(dir: &Path) -> bool {
    let manifest = read_start(&dir.join("Cargo.toml"));
    manifest.contains("divan") && !manifest.contains("criterion")
}

/// A script in Python that runs benchmarks of pyperf.
fn by_script(command: &[String], dir: &Path) -> Option<HarnessKind> {
    let script = command.iter().find(|word| word.ends_with(".py"))?;
    read_start(&dir.join(script)).contains("pyperf.Runner(").then_some(HarnessKind::Pyperf)
}

/// The start of a text; nothing where it cannot be read.
fn read_start(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(TEXT_BYTES_MAX).read_to_string(&mut text);
    }
    text
}

fn by_words(command: &[String]) -> Option<HarnessKind> {
    let program = Path::new(command.first()?).file_name()?.to_str()?;
    let has = |wanted: &str| command.iter().any(|word| word == wanted);
    let begins = |start: &str| command.iter().any(|word| word.starts_with(start));
    let ends = |end: &str| command.iter().any(|word| word.ends_with(end));
    match program {
        "cargo" if has("bench") => Some(HarnessKind::Criterion),
        "hyperfine" => Some(HarnessKind::Hyperfine),
        "java" if has("org.openjdk.jmh.Main") || ends("benchmarks.jar") => Some(HarnessKind::Jmh),
        "go" if has("test") && (begins("-bench") || begins("--bench")) => Some(HarnessKind::Go),
        _ if (program == "pytest" || has("pytest")) && begins("--benchmark-") => {
            Some(HarnessKind::PytestBenchmark)
        }
        _ if program == "pyperf" || program.starts_with("python") && has("pyperf") => {
            Some(HarnessKind::Pyperf)
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
        assert_eq!(words("hyperfine true"), Some(HarnessKind::Hyperfine));
        assert_eq!(words("java -jar target/benchmarks.jar"), Some(HarnessKind::Jmh));
        assert_eq!(words("java -jar server.jar"), None);
        assert_eq!(words("python3 -m pyperf timeit 1+1"), Some(HarnessKind::Pyperf));
    }

    #[test]
    fn harnesses_are_known_by_their_scripts_and_manifests() {
        let dir = tempfile::tempdir().unwrap();
        let kind = |text: &str| {
            let command: Vec<String> = text.split(' ').map(str::to_owned).collect();
            recognise(&command, dir.path())
        };
        assert_eq!(kind("python3 bench.py"), None, "absent");
        fs::write(dir.path().join("bench.py"), "import pyperf\nrunner = pyperf.Runner()\n").unwrap();
        fs::write(dir.path().join("other.py"), "print(1)\n").unwrap();
        assert_eq!(kind("python3 bench.py --fast"), Some(HarnessKind::Pyperf));
        assert_eq!(kind("python3 other.py"), None);
        fs::write(dir.path().join("Cargo.toml"), "[dev-dependencies]\ndivan = \"0.1\"\n").unwrap();
        assert_eq!(kind("cargo bench"), Some(HarnessKind::Divan));
        fs::write(dir.path().join("Cargo.toml"), "[dev-dependencies]\ncriterion = \"0.8\"\n").unwrap();
        assert_eq!(kind("cargo bench"), Some(HarnessKind::Criterion));
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
