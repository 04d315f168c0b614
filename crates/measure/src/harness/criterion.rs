//! Rust's Criterion, driven through its own executables.

use super::{Asked, Bench, Harness, exactly, recognise};
use crate::worker::WorkerError;
use holdpoint_interop::{Series, criterion};
use holdpoint_model::FileError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Criterion takes no fewer samples.
const SAMPLES_LEAST: u64 = 10;

pub(super) struct Criterion;

impl Harness for Criterion {
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let no_env = BTreeMap::new();
        let built = asked.run(&asked.command_with(&["--no-run", "--message-format=json"]), "", &no_env)?;
        let mut programs: Vec<Executable> = built.lines().filter_map(executable).collect();
        // Cargo names them in the order in which they were built, which differs from one build to the next. Benchmarks of the same
        // name are numbered in the order of this list.
        programs.sort();
        let mut all = Vec::new();
        for Executable { package, program, .. } in programs {
            let folder = asked.below(Path::new(&package));
            let command = vec![program, "--bench".to_owned()];
            let list = [command.clone(), vec!["--list".to_owned()]].concat();
            let env = BTreeMap::from([("CARGO_MANIFEST_DIR".to_owned(), package)]);
            let listed = match asked.run(&list, &folder, &env) {
                Ok(listed) => listed,
                // A program of the user's own beside the benchmarks, which does not know the option.
                Err(_) if recognise::by_content(Path::new(&command[0])).is_none() => continue,
                Err(error) => return Err(error),
            };
            for id in parse_list(&listed) {
                all.push(Bench {
                    id: id.to_owned(),
                    command: command.clone(),
                    folder: folder.clone(),
                    env: env.clone(),
                });
            }
        }
        Ok(all)
    }

    fn turn(&self, id: &str, samples: u64, _: &Path) -> Vec<String> {
        // Resampling is for its own report, which nobody reads.
        let options =
            ["--noplot", "--warm-up-time", "0.02", "--measurement-time", "0.04", "--nresamples", "2"];
        let samples = samples.max(SAMPLES_LEAST).to_string();
        let chosen = ["--sample-size".to_owned(), samples, exactly(id)];
        options.iter().map(|word| (*word).to_owned()).chain(chosen).collect()
    }

    /// Settings of a group in the code go before the command line's; only this option goes before them.
    fn quick_turn(&self, id: &str, _: &Path) -> Option<Vec<String>> {
        let options = ["--noplot", "--quick", "--nresamples", "2"].map(str::to_owned);
        Some(options.into_iter().chain([exactly(id)]).collect())
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        match holdpoint_store::read_source(out) {
            Ok(holdpoint_interop::Source::Folder(files)) => criterion::read(&files),
            Ok(holdpoint_interop::Source::File(_)) => Ok(Vec::new()),
            Err(error) => {
                Err(FileError::Unknown { wanted: "a folder of Criterion", what: error.to_string() })
            }
        }
    }
}

/// What cargo tells about the executable of a benchmark.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Executable {
    /// Its package's folder.
    package: String,
    /// The benchmark's name in `Cargo.toml`.
    target: String,
    program: String,
}

/// The executable that a line of cargo's messages is about.
fn executable(line: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = message.get("target")?;
    let kinds = target.get("kind")?.as_array()?;
    let is_bench = message.get("reason")? == "compiler-artifact" && kinds.iter().any(|kind| kind == "bench");
    let program = message.get("executable")?.as_str().filter(|_| is_bench)?;
    let package = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    Some(Executable {
        package: package.display().to_string(),
        target: target.get("name")?.as_str()?.to_owned(),
        program: program.to_owned(),
    })
}

/// The benchmarks of one executable; none of one that uses Rust's own harness, whose list ends with a count.
fn parse_list(text: &str) -> Vec<&str> {
    let counts = |line: &str| line.contains(" tests, ") || line.contains(" test, ");
    if text.lines().last().is_some_and(counts) {
        return Vec::new();
    }
    text.lines()
        .filter_map(|line| line.strip_suffix(": benchmark").or_else(|| line.strip_suffix(": bench")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_criterions_own_lists_count() {
        assert_eq!(parse_list("fib 20: benchmark\ngroup/a: bench\n"), ["fib 20", "group/a"]);
        assert!(parse_list("a: benchmark\n\n0 tests, 1 benchmark\n").is_empty());
        assert!(parse_list("").is_empty());
    }

    #[test]
    fn executables_are_found_among_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bench"],"name":"words"},"executable":"/w/target/release/deps/a-1"}"#;
        let [package, target, program] = ["/w/a", "words", "/w/target/release/deps/a-1"].map(str::to_owned);
        assert_eq!(executable(line), Some(Executable { package, target, program }));
        assert_eq!(executable(&line.replace("\"bench\"", "\"lib\"")), None);
        assert_eq!(executable("not JSON"), None);
    }
}
