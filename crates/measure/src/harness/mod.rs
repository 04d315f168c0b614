//! Benchmark harnesses: which benchmarks they have, and a turn of one of them.
//!
//! A turn is a process of the harness that runs one benchmark, made short by the harness's own options. Its samples are read from
//! what it writes for machines. Where starting takes longer than measuring, a process runs a turn of several benchmarks.

mod asv;
mod cargo;
mod catch2;
mod criterion;
mod divan;
mod go;
mod google_benchmark;
mod hyperfine;
mod jmh;
mod nvbench;
mod pace;
mod pyperf;
mod pytest_benchmark;
mod recognise;
mod turn;

pub(crate) use pace::{Pace, decide_pace, pace_of, set_pace};
pub use recognise::{CommandLine, recognise};
pub(crate) use turn::Turn;

use crate::program::{Place, WorkerError, execute};
use holdpoint_interop::Series;
use holdpoint_model::limits::NAME_CHARS_MAX;
use holdpoint_model::suite::{
    BenchTask, BuildSpec, CommandTask, HarnessFrom, HarnessKind, HarnessSpec, Task,
};
use holdpoint_model::toml_file::{TomlError, invalid};
use holdpoint_model::{FailureCause, FileError, Suite, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// Every harness, in the order in which `init` prefers them. A further one is a file and two words here.
const HARNESSES: &[&dyn Harness] = &[
    &criterion::Criterion,
    &divan::Divan,
    &go::Go,
    &pytest_benchmark::PytestBenchmark,
    &asv::Asv,
    &pyperf::Pyperf,
    &google_benchmark::GoogleBenchmark,
    &nvbench::Nvbench,
    &catch2::Catch2,
    &jmh::Jmh,
    &hyperfine::Hyperfine,
];

/// How long asking for benchmarks may take: a harness may have to be linked, or run once.
const LIST_MAX: Duration = Duration::from_secs(1800);

/// One kind of harness: how it is built, recognised and driven.
pub trait Harness: Sync {
    /// As suites name it.
    fn name(&self) -> &'static str;

    /// Program and arguments that run the benchmarks where a suite names none; empty where it has to.
    fn command(&self) -> &'static [&'static str] {
        &[]
    }

    /// The command line that builds the benchmarks and runs none, where it follows from the one that runs them.
    fn build(&self, _command: &[String]) -> Option<Vec<String>> {
        None
    }

    /// Where the benchmarks are by convention, with git's wildcards.
    fn files(&self) -> &'static [&'static str] {
        &[]
    }

    /// How a repository shows that it has such benchmarks.
    fn trace(&self) -> Option<Trace> {
        None
    }

    /// Whether this command line, in this folder, seems to run it.
    fn is_run_by(&self, _line: &CommandLine<'_>, _dir: &Path) -> bool {
        false
    }

    /// Texts of which an executable with this harness has one, and others have none. Each is cut by a bar, so that ours does not.
    fn marks(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its benchmarks, with the command line that runs them.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError>;

    /// The options of a turn of at least so many samples, which leaves its files in `out`.
    fn turn(&self, id: &str, samples: u64, out: &Path) -> Vec<String>;

    /// The options of a turn in the harness's own quick mode, where it has one: short whatever the benchmark's settings are, and of
    /// few samples.
    fn quick_turn(&self, _id: &str, _out: &Path) -> Option<Vec<String>> {
        None
    }

    /// The options of a turn that older versions of the harness take, where they take others.
    fn older_turn(&self, _id: &str, _samples: u64) -> Option<Vec<String>> {
        None
    }

    /// The options of a process that runs a turn of each of several benchmarks of the same command line, if that saves time.
    fn turns(&self, _ids: &[&str], _samples: u64, _out: &Path) -> Option<Vec<String>> {
        None
    }

    /// The variable that tells a turn where to leave its files, if options cannot.
    fn folder_variable(&self) -> Option<&'static str> {
        None
    }

    /// The times that a turn left in `out` or printed. A series without a name is of the benchmark that was asked for.
    fn read(&self, out: &Path, stdout: &str) -> Result<Vec<Series>, FileError>;

    /// Whether a process gives one number only, so that each sample takes a process of its own.
    fn has_one_sample(&self) -> bool {
        false
    }
}

/// Files in which a repository shows that it has benchmarks of a harness.
pub struct Trace {
    /// Ends of their names.
    pub names: &'static [&'static str],
    /// Texts that one of them has, each of one of these groups.
    pub texts: &'static [&'static [&'static str]],
    pub runs: Runs,
}

/// How benchmarks are run that a repository shows.
pub enum Runs {
    /// By the harness's own command.
    ByItself,
    /// By that, once this has built them.
    Built(&'static [&'static str]),
    /// The file is a script.
    Script,
    /// The file is compiled into a program.
    Program,
}

/// Every harness, in the order in which `init` prefers them.
pub fn all() -> impl Iterator<Item = &'static dyn Harness> {
    HARNESSES.iter().copied()
}

fn find(kind: &HarnessKind) -> Option<&'static dyn Harness> {
    all().find(|harness| harness.name() == kind.as_str())
}

/// The harness of a benchmark, which [`expand`] has found.
fn of(bench: &BenchTask) -> &'static dyn Harness {
    find(&bench.kind).unwrap_or(HARNESSES[0])
}

/// A suite with what follows from the kind of its harness: how it is run and built, and where its benchmarks are.
pub fn complete(mut suite: Suite) -> Result<Suite, TomlError> {
    let Some(spec) = &mut suite.harness else { return Ok(suite) };
    let Some(harness) = find(&spec.kind) else {
        let names: Vec<&str> = all().map(Harness::name).collect();
        let kind = spec.kind.as_str();
        return invalid("harness", format!("kind {kind:?} is not known; choose from {}", names.join(", ")));
    };
    if spec.command.is_empty() {
        spec.command = owned(harness.command());
    }
    if spec.command.is_empty() {
        return invalid("harness", "needs `command`: the program that runs the benchmarks");
    }
    if spec.harness_files.is_empty() {
        spec.harness_files = owned(harness.files());
    }
    if spec.harness_from == HarnessFrom::Head && spec.harness_files.is_empty() {
        let what = "`harness_from` needs `harness_files`: where the benchmarks are, such as [\"bench\"]";
        return invalid("harness", what);
    }
    let build = harness.build(&spec.command).map(BuildSpec::new);
    suite.build = suite.build.or(build);
    Ok(suite)
}

/// Whether each sample of this benchmark takes a process of its own.
pub(crate) fn has_one_sample(bench: &BenchTask) -> bool {
    of(bench).has_one_sample()
}

/// A benchmark as its harness lists it.
pub struct Bench {
    id: String,
    command: Vec<String>,
    /// Below the suite's folder.
    folder: String,
    env: BTreeMap<String, String>,
}

impl Bench {
    /// One that runs in the suite's folder.
    fn new(id: String, command: Vec<String>) -> Self {
        Self { id, command, folder: String::new(), env: BTreeMap::new() }
    }
}

/// A harness that is asked for its benchmarks.
pub struct Asked<'a> {
    spec: &'a HarnessSpec,
    dir: &'a Path,
}

impl Asked<'_> {
    /// Runs a command line in a folder below the suite's, and returns what it prints.
    fn run(&self, command: &[String], folder: &str) -> Result<String, WorkerError> {
        self.run_with(command, folder, BTreeMap::new())
    }

    /// The same, with these variables.
    fn run_with(
        &self,
        command: &[String],
        folder: &str,
        env: BTreeMap<String, String>,
    ) -> Result<String, WorkerError> {
        let place = Place { dir: Some(self.dir.join(folder)), ..Place::default() };
        let task = CommandTask { env, ..CommandTask::default() };
        let finished = execute(command, &task, &place, LIST_MAX, Stdio::piped())?;
        Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
    }

    /// Runs a command line that writes to a folder, which `words` add to it, and reads what it left there.
    fn run_into<T>(
        &self,
        words: impl FnOnce(&Path) -> Vec<String>,
        read: impl FnOnce(&Path) -> Result<T, FileError>,
    ) -> Result<T, WorkerError> {
        let failed = |what: String| WorkerError::new(FailureCause::WorkerError, what);
        let out = TempDir::new().map_err(|error| failed(error.to_string()))?;
        self.run(&words(out.path()), "")?;
        read(out.path()).map_err(|error| failed(error.to_string()))
    }

    /// Its command line and these words.
    fn command_with(&self, words: &[&str]) -> Vec<String> {
        [self.spec.command.clone(), owned(words)].concat()
    }

    /// A folder below the suite's, as its name from there.
    fn below(&self, folder: &Path) -> String {
        let [folder, dir] =
            [folder, self.dir].map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        folder.strip_prefix(&dir).map_or(folder.display().to_string(), |below| below.display().to_string())
    }
}

/// A suite with the benchmarks of its harness as workloads; as it is where it has none.
pub(crate) fn expand(suite: Suite) -> Result<Suite, WorkerError> {
    let Some(spec) = suite.harness.clone() else { return Ok(suite) };
    let only = suite.only.clone();
    let dir = suite.dir.clone().unwrap_or_else(|| ".".into());
    let failed =
        |what: String| WorkerError::new(FailureCause::WorkerError, format!("{}: {what}", spec.kind.as_str()));
    let harness = find(&spec.kind).ok_or_else(|| failed("is not known here".to_owned()))?;
    let found = harness.list(&Asked { spec: &spec, dir: &dir }).map_err(|error| WorkerError {
        detail: format!("{}: {}", spec.kind.as_str(), error.detail),
        ..error
    })?;
    let mut names: BTreeSet<String> = suite.workloads.iter().map(|workload| workload.name.clone()).collect();
    let mut workloads = Vec::new();
    for bench in found.into_iter().filter(|bench| spec.wants(&bench.id)) {
        let name = new_name(&bench.folder, &bench.id, &mut names);
        let Bench { id, command, folder, env } = bench;
        let call = CommandTask { command, env, ..CommandTask::default() };
        let task = BenchTask { kind: spec.kind.clone(), id, folder, call };
        workloads.push(Workload::new(&name, Task::Benchmark(Box::new(task)), "benchmark"));
    }
    workloads.retain(|workload| only.as_ref().is_none_or(|wanted| workload.name == *wanted));
    if workloads.is_empty() {
        return Err(failed(match &only {
            Some(name) => format!("it has no benchmark {name:?}"),
            None if spec.only.is_empty() => "it has no benchmarks".to_owned(),
            None => format!("it has no benchmark whose name contains {}", spec.only.join(" or ")),
        }));
    }
    suite.with_benches(workloads).map_err(|error| failed(error.to_string()))
}

/// These words as a command line has them.
fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A benchmark's name as a workload has it, and no other does. Packages may have benchmarks of the same name.
fn new_name(folder: &str, id: &str, names: &mut BTreeSet<String>) -> String {
    // Folders of ours, and those outside the suite's, say nothing about a benchmark.
    let is_ours = folder.starts_with(".holdpoint/");
    let folder = if is_ours || Path::new(folder).is_absolute() { "" } else { folder };
    let id = [folder, id.trim()].join(if folder.is_empty() { "" } else { "/" });
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let plain: String = id.chars().map(plain).take(NAME_CHARS_MAX - 4).collect();
    let plain = if plain.is_empty() { "_".to_owned() } else { plain };
    let numbered = (2..).map(|n: u32| format!("{plain}_{n}"));
    let name = std::iter::once(plain.clone()).chain(numbered).find(|name| !names.contains(name));
    let name = name.unwrap_or(plain);
    names.insert(name.clone());
    name
}

/// Whether older versions of its harness take other options.
pub(crate) fn has_older_form(bench: &BenchTask) -> bool {
    of(bench).older_turn(&bench.id, 1).is_some()
}

/// Whether a process can run turns of both benchmarks.
pub(crate) fn share_a_process(bench: &BenchTask, beside: &BenchTask) -> bool {
    (&bench.kind, &bench.folder, &bench.call) == (&beside.kind, &beside.folder, &beside.call)
        && of(bench).turns(&[&bench.id, &beside.id], 1, Path::new("")).is_some()
}

/// The text of a file that a turn left.
fn read_left(path: &Path) -> Result<String, FileError> {
    holdpoint_store::read_text(path)
        .map_err(|error| FileError::Unknown { wanted: "a turn of a harness", what: error.to_string() })
}

/// A regular expression that matches this text alone.
fn exactly(text: &str) -> String {
    let mut pattern = String::from("^");
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_benchmarks_become_names_of_workloads() {
        let mut names = BTreeSet::new();
        assert_eq!(new_name("", "fib 20/recursive", &mut names), "fib_20_recursive");
        assert_eq!(new_name("/elsewhere", "fib_20.recursive", &mut names), "fib_20_recursive_2");
        assert_eq!(new_name("crates/parser", "fib", &mut names), "crates_parser_fib");
        assert_eq!(new_name("", "", &mut names), "_");
        assert!(new_name("", &"ä".repeat(1000), &mut names).len() <= NAME_CHARS_MAX);
    }

    #[test]
    fn a_benchmark_is_asked_for_by_its_whole_name() {
        assert_eq!(exactly("a/b (1.5)"), r"^a/b \(1\.5\)$");
    }
}
