//! The programs that `cargo bench` runs, for the harnesses that are libraries of Rust.

use super::{Asked, Bench};
use crate::worker::WorkerError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A benchmark target of a package, built.
#[derive(Debug, PartialEq)]
pub(super) struct BenchTarget {
    program: String,
    /// Its package's folder.
    package: String,
    /// The same, below the suite's.
    folder: String,
}

/// Builds the benchmark targets that the harness's command line names.
pub(super) fn bench_targets(asked: &Asked<'_>) -> Result<Vec<BenchTarget>, WorkerError> {
    let built = asked.run(&asked.command_with(&["--no-run", "--message-format=json"]), "")?;
    let target = |(program, package): (String, String)| BenchTarget {
        folder: asked.below(Path::new(&package)),
        program,
        package,
    };
    Ok(built.lines().filter_map(executable).map(target).collect())
}

impl BenchTarget {
    /// As cargo runs it.
    fn command(&self) -> Vec<String> {
        vec![self.program.clone(), "--bench".to_owned()]
    }

    /// Runs it with an option, and returns what it prints.
    pub(super) fn run(&self, asked: &Asked<'_>, option: &str) -> Result<String, WorkerError> {
        asked.run(&[self.command(), vec![option.to_owned()]].concat(), &self.folder)
    }

    pub(super) fn bench(&self, id: &str) -> Bench {
        Bench {
            id: id.to_owned(),
            command: self.command(),
            folder: self.folder.clone(),
            env: BTreeMap::from([("CARGO_MANIFEST_DIR".to_owned(), self.package.clone())]),
        }
    }
}

/// The executable of a benchmark and its package's folder, from a line of cargo's messages.
fn executable(line: &str) -> Option<(String, String)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let kinds = message.get("target")?.get("kind")?.as_array()?;
    let is_bench = message.get("reason")? == "compiler-artifact" && kinds.iter().any(|kind| kind == "bench");
    let program = message.get("executable")?.as_str().filter(|_| is_bench)?;
    let package = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    Some((program.to_owned(), package.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bench"]},"executable":"/w/target/release/deps/a-1"}"#;
        assert_eq!(executable(line), Some(("/w/target/release/deps/a-1".to_owned(), "/w/a".to_owned())));
        assert_eq!(executable(&line.replace("bench", "lib")), None);
        assert_eq!(executable("not JSON"), None);
    }
}
