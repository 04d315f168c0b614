//! pytest-benchmark.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::{Series, pytest_benchmark};
use holdpoint_model::FileError;
use std::path::Path;

const LEFT: &str = "turn.json";
/// A process that leaves nothing behind and runs benchmarks only.
const QUIET: [&str; 4] = ["-q", "-p", "no:cacheprovider", "--benchmark-only"];
/// The first call may take a thousand times as long as others. Calls before it show how many make a turn, and rounds of a tenth of a
/// millisecond keep the clock's own time out of them.
const WARM: [&str; 3] =
    ["--benchmark-warmup=on", "--benchmark-warmup-iterations=20", "--benchmark-min-time=0.0001"];

pub(super) struct PytestBenchmark;

impl Harness for PytestBenchmark {
    fn name(&self) -> &'static str {
        "pytest-benchmark"
    }

    fn command(&self) -> &'static [&'static str] {
        &["python3", "-m", "pytest"]
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["pytest-benchmark"]];
        Some(Trace {
            names: &[
                "pyproject.toml",
                "requirements.txt",
                "setup.cfg",
                "setup.py",
                "tox.ini",
                "Pipfile",
                ".txt",
            ],
            texts,
            runs: Runs::ByItself,
        })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, _: &Path) -> bool {
        (line.program() == "pytest" || line.has("pytest")) && line.has_start("--benchmark-")
    }

    /// Runs each benchmark as shortly as possible: which tests are benchmarks is known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let short = |out: &Path| [owned(&["--benchmark-warmup=off"]), options(out, 1, "0")].concat();
        let words = |out: &Path| [asked.command_with(&QUIET), short(out)].concat();
        let all = asked.run_into(words, |out| self.read(out, ""))?;
        let command: Vec<String> =
            without_tests(&asked.spec.command, asked.dir).chain(QUIET.map(str::to_owned)).collect();
        Ok(all.into_iter().map(|series| Bench::new(series.name, command.clone())).collect())
    }

    fn turn(&self, id: &str, samples: u64, out: &Path) -> Vec<String> {
        self.turns(&[id], samples, out).unwrap_or_default()
    }

    /// Python and the tests load for half a second, a turn takes a tenth of that.
    fn turns(&self, ids: &[&str], samples: u64, out: &Path) -> Option<Vec<String>> {
        Some([owned(&WARM), options(out, samples, "0.05"), owned(ids)].concat())
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        pytest_benchmark::read(&read_left(&out.join(LEFT))?)
    }
}

/// A command line without the files and folders of tests that it names: pytest would run all of them beside the one test of a turn.
fn without_tests<'a>(command: &'a [String], dir: &'a Path) -> impl Iterator<Item = String> + 'a {
    // Words before it start pytest: an interpreter, a script, `uv run`.
    let is_pytest = |word: &String| Path::new(word).file_stem().is_some_and(|name| name == "pytest");
    let first = command.iter().position(is_pytest).map_or(command.len(), |pytest| pytest + 1);
    let is_tests = move |at: usize, word: &str| {
        // The word after an option may be its value: `-c setup.cfg`.
        let is_free = at >= first && !command[at - 1].starts_with('-');
        let path = word.split("::").next().unwrap_or(word);
        is_free && dir.join(path).exists()
    };
    command.iter().enumerate().filter(move |(at, word)| !is_tests(*at, word)).map(|(_, word)| word.clone())
}

fn options(out: &Path, rounds: u64, seconds: &str) -> Vec<String> {
    vec![
        format!("--benchmark-json={}", out.join(LEFT).display()),
        format!("--benchmark-min-rounds={rounds}"),
        format!("--benchmark-max-time={seconds}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_runs_none_of_the_folders_that_the_command_names() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["bench", "venv", "venv/pytest"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let left = |line: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            without_tests(&command, dir.path()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left("python3 -m pytest bench"), "python3 -m pytest");
        assert_eq!(left("env venv/pytest bench"), "env venv/pytest");
        assert_eq!(left("python3 bench bench"), "python3 bench bench", "who knows what that runs");
        assert_eq!(left("python3 -m pytest bench/../bench bench::test_a -x"), "python3 -m pytest -x");
        assert_eq!(
            left("python3 -m pytest --rootdir bench other"),
            "python3 -m pytest --rootdir bench other"
        );
    }
}
