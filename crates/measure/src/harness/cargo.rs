//! The programs that `cargo bench` runs, for the harnesses that are libraries of Rust.

use super::{Asked, Bench, CommandLine, recognise};
use crate::program::WorkerError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A benchmark target of a package, built. In their order: cargo names them as they are built, which differs from one build to the
/// next, and benchmarks of the same name are numbered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BenchTarget {
    /// Its package's folder.
    package: String,
    /// Its name in `Cargo.toml`.
    name: String,
    program: String,
}

/// Whether this runs benchmarks of Cargo, which are divan's if `is_divan`: both are run in the same way.
pub(super) fn runs_benches(line: &CommandLine<'_>, dir: &Path, is_divan: bool) -> bool {
    let manifest = || recognise::read_start(&dir.join("Cargo.toml"));
    let uses_divan = |manifest: String| manifest.contains("divan") && !manifest.contains("criterion");
    line.program() == "cargo" && line.has("bench") && uses_divan(manifest()) == is_divan
}

/// The command line that builds what this one runs.
pub(super) fn build(command: &[String]) -> Vec<String> {
    command.iter().cloned().chain(["--no-run".to_owned()]).collect()
}

/// Where benchmarks of Cargo's are.
pub(super) const FILES: &[&str] = &["**/benches/**", "**/Cargo.toml", "**/Cargo.lock"];

/// Builds the benchmark targets that the harness's command line names.
pub(super) fn bench_targets(asked: &Asked<'_>) -> Result<Vec<BenchTarget>, WorkerError> {
    let built = asked.run(&asked.command_with(&["--no-run", "--message-format=json"]), "")?;
    let mut targets: Vec<BenchTarget> = built.lines().filter_map(target).collect();
    targets.sort();
    Ok(targets)
}

impl BenchTarget {
    /// As cargo runs it.
    fn command(&self) -> Vec<String> {
        vec![self.program.clone(), "--bench".to_owned()]
    }

    fn env(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("CARGO_MANIFEST_DIR".to_owned(), self.package.clone())])
    }

    /// Runs it with an option, and returns what it prints: nothing where it is a program of the user's own beside the benchmarks,
    /// which does not know the option.
    pub(super) fn run(&self, asked: &Asked<'_>, option: &str) -> Result<String, WorkerError> {
        let command = [self.command(), vec![option.to_owned()]].concat();
        let folder = asked.below(Path::new(&self.package));
        asked.run_with(&command, &folder, self.env()).or_else(|error| {
            match recognise::by_content(Path::new(&self.program)) {
                Some(_) => Err(error),
                None => Ok(String::new()),
            }
        })
    }

    pub(super) fn bench(&self, asked: &Asked<'_>, id: &str) -> Bench {
        Bench {
            id: id.to_owned(),
            command: self.command(),
            folder: asked.below(Path::new(&self.package)),
            env: self.env(),
        }
    }
}

/// The target that a line of cargo's messages is about.
fn target(line: &str) -> Option<BenchTarget> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = message.get("target")?;
    let kinds = target.get("kind")?.as_array()?;
    let is_bench = message.get("reason")? == "compiler-artifact" && kinds.iter().any(|kind| kind == "bench");
    let program = message.get("executable")?.as_str().filter(|_| is_bench)?;
    let package = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    Some(BenchTarget {
        package: package.display().to_string(),
        name: target.get("name")?.as_str()?.to_owned(),
        program: program.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bench"],"name":"words"},"executable":"/w/target/release/deps/a-1"}"#;
        let [package, name, program] = ["/w/a", "words", "/w/target/release/deps/a-1"].map(str::to_owned);
        assert_eq!(target(line), Some(BenchTarget { package, name, program }));
        assert_eq!(target(&line.replace("\"bench\"", "\"lib\"")), None);
        assert_eq!(target("not JSON"), None);
    }
}
