//! Proposes a suite from a repository's files: the harness whose benchmarks are there, or its build and a program. Pure.

use holdpoint_measure::harness::{self, Harness, Runs, Trace};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Texts of a repository's files, by their paths from its root.
pub type Files = BTreeMap<String, String>;

/// A suite for a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// The suite file.
    pub text: String,
    /// Whether it can be run as it is; else a command in it is a guess that has to be filled in.
    pub is_complete: bool,
    /// Harnesses that were found as well, with the files that show them.
    pub others: Vec<String>,
}

/// Files that builds and programs are known by, beside those of the harnesses.
const BUILDS: [&str; 4] = ["CMakeLists.txt", "Makefile", "package.json", "package-lock.json"];

/// Names of files that are worth reading.
pub fn is_wanted(name: &str) -> bool {
    let traces = harness::all().filter_map(Harness::trace);
    traces.flat_map(|trace| trace.names).chain(&BUILDS).any(|wanted| name.ends_with(wanted))
}

/// The suite that a repository would start with.
pub fn propose(files: &Files) -> Proposal {
    let found: Vec<DetectedHarness<'_>> = harness::all().filter_map(|harness| find(files, harness)).collect();
    let (text, is_complete) = match found.first() {
        Some(found) => suite_of(files, found),
        None => program(files),
    };
    let others = found.iter().skip(1).map(|found| format!("{} ({})", found.kind, found.path)).collect();
    let text = format!("{HEAD}{text}{GATE}");
    Proposal { text, is_complete, others }
}

const HEAD: &str = "\
# What holdpoint measures in this repository. Commit this file, then
#   holdpoint gate        is your change slower than the default branch?
#   holdpoint calibrate   how often would that be a false alarm here, and what is seen?
";

const GATE: &str = "
[gate]
tolerance = \"2%\"    # how much slower a workload may be
budget = 20.0       # seconds per workload, at most; what is decided sooner leaves its time to others
";

/// A harness, and the first file that shows that it is there.
struct DetectedHarness<'a> {
    kind: &'static str,
    runs: Runs,
    path: &'a str,
}

fn find<'a>(files: &'a Files, harness: &dyn Harness) -> Option<DetectedHarness<'a>> {
    let Trace { names, texts, runs } = harness.trace()?;
    let shows = |(path, text): &(&String, &String)| {
        names.iter().any(|name| path.ends_with(name))
            && texts.iter().all(|group| group.iter().any(|mark| text.contains(mark)))
    };
    let (path, _) = files.iter().find(shows)?;
    Some(DetectedHarness { kind: harness.name(), runs, path })
}

fn suite_of(files: &Files, found: &DetectedHarness<'_>) -> (String, bool) {
    let DetectedHarness { kind, path, runs } = found;
    let mut text = String::new();
    let (command, is_known) = match runs {
        Runs::ByItself => (None, true),
        Runs::Script => (Some(words(&["python3", path])), true),
        Runs::Program => {
            text += &build(files);
            let program = cmake_program(files, path);
            let is_known = program.is_some();
            (Some(words(&[&program.unwrap_or_else(|| "./build/bench".to_owned())])), is_known)
        }
        Runs::Built(command) => {
            let _ = writeln!(text, "\n[build]\ncommand = {}", words(command));
            (None, true)
        }
    };
    let _ = writeln!(
        text,
        "\n# Each of its benchmarks is a workload (found: {path}).\n[harness]\nkind = \"{kind}\""
    );
    if let Some(command) = command {
        let remark = if is_known { "" } else { "    # CHANGE: the program that was built from this file" };
        let _ = writeln!(text, "command = {command}{remark}");
    }
    (text, is_known)
}

/// A repository without benchmarks: how it is built, and a program to begin with.
fn program(files: &Files) -> (String, bool) {
    let found = cargo_program(files)
        .or_else(|| script(files))
        .or_else(|| cmake_bench(files))
        .or_else(|| python_script(files));
    let is_known = found.is_some();
    let Program { name, command, env } = found.unwrap_or_else(|| Program {
        name: "first".to_owned(),
        command: words(&["./build/program", "input"]),
        env: String::new(),
    });
    let remark = if is_known { "" } else { "    # CHANGE: a command that users wait for" };
    let text = format!(
        "{}\n# Add one for each thing that must stay fast; docs/suites.md lists all keys.\n[[workload]]\nname = \"{name}\"\ncommand = {command}{remark}\n{env}",
        build(files)
    );
    (text, is_known)
}

/// A first workload.
struct Program {
    name: String,
    /// As TOML has it.
    command: String,
    /// A line of the suite, or nothing.
    env: String,
}

impl Program {
    fn new(name: &str, line: &[&str]) -> Self {
        Self { name: name.to_owned(), command: words(line), env: String::new() }
    }
}

/// How a revision is built; nothing where no build is known.
fn build(files: &Files) -> String {
    let cmake = "cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --parallel";
    let command = if files.contains_key("Cargo.toml") {
        words(&["cargo", "build", "--release"])
    } else if files.contains_key("CMakeLists.txt") {
        words(&["sh", "-c", cmake])
    } else if files.contains_key("Makefile") {
        words(&["make"])
    } else if files.contains_key("package.json") {
        // Without dependencies there is nothing to install, and `ci` wants a lock file.
        let has_dependencies = files["package.json"].contains("ependencies\"");
        match (files.contains_key("package-lock.json"), has_dependencies) {
            (true, _) => words(&["npm", "ci"]),
            (false, true) => words(&["npm", "install"]),
            (false, false) => return String::new(),
        }
    } else {
        return String::new();
    };
    format!("\n# How a revision is built, in the root of its checkout.\n[build]\ncommand = {command}\n")
}

/// The program of a Cargo package with a `main.rs`.
fn cargo_program(files: &Files) -> Option<Program> {
    let manifest = files.get("Cargo.toml")?;
    let package = manifest.split("[package]").nth(1)?;
    let name = package.lines().find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='))?;
    let name = name.trim().trim_matches('"');
    (is_plain(name) && files.contains_key("src/main.rs"))
        .then(|| Program::new(name, &[&format!("./target/release/{name}"), "--help"]))
}

/// A name that means itself in TOML, in a shell and as a workload.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// A target or a script that is called `bench`.
fn script(files: &Files) -> Option<Program> {
    let has_line = |text: &String, start: &str| text.lines().any(|line| line.starts_with(start));
    if files.get("Makefile").is_some_and(|text| has_line(text, "bench:")) {
        return Some(Program::new("bench", &["make", "--silent", "bench"]));
    }
    let scripts = files.get("package.json")?.split("\"scripts\"").nth(1)?;
    scripts.contains("\"bench\"").then(|| Program::new("bench", &["npm", "run", "--silent", "bench"]))
}

/// A program of CMake's whose name says that it is a benchmark.
fn cmake_bench(files: &Files) -> Option<Program> {
    files.iter().filter(|(path, _)| path.ends_with("CMakeLists.txt")).find_map(|(path, text)| {
        let folder = path.strip_suffix("CMakeLists.txt")?;
        let calls = text.split("add_executable(").skip(1);
        let mut names = calls.filter_map(|rest| rest.split([')', ' ', '\n']).find(|word| !word.is_empty()));
        let name = names.find(|name| is_plain(name) && name.contains("bench"))?;
        Some(Program::new(name, &[&format!("./build/{folder}{name}")]))
    })
}

/// A script of a Python project whose name says that it is a benchmark, run with the sources of its own checkout.
fn python_script(files: &Files) -> Option<Program> {
    let is_python = ["pyproject.toml", "setup.py", "setup.cfg"].iter().any(|name| files.contains_key(*name));
    let stem = |path: &str| path.rsplit('/').next()?.strip_suffix(".py").map(str::to_owned);
    let (path, name) = files.keys().filter(|_| is_python).find_map(|path| {
        let name = stem(path).filter(|name| is_plain(name) && name.contains("bench"))?;
        path.split('/').all(|part| is_plain(part.trim_end_matches(".py"))).then_some((path, name))
    })?;
    let has_src = files.keys().any(|path| path.starts_with("src/"));
    let sources = if has_src { "src" } else { "." };
    let env = format!("env = {{ PYTHONPATH = \"{sources}\" }}    # not a version that is installed\n");
    Some(Program { env, ..Program::new(&name, &["python3", path]) })
}

/// Where CMake puts the program that this source belongs to.
fn cmake_program(files: &Files, source: &str) -> Option<String> {
    let source = source.rsplit('/').next()?;
    files.iter().filter(|(path, _)| path.ends_with("CMakeLists.txt")).find_map(|(path, text)| {
        let folder = path.strip_suffix("CMakeLists.txt")?;
        let calls = text.split("add_executable(").skip(1).filter_map(|rest| rest.split(')').next());
        let names = calls.filter_map(|call| {
            let mut words = call.split_whitespace();
            let name = words.next()?;
            words.any(|word| word.ends_with(source)).then_some(name)
        });
        let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        names.into_iter().find(is_plain).map(|name| format!("./build/{folder}{name}"))
    })
}

/// A command line as TOML has it.
fn words(words: &[&str]) -> String {
    let quoted: Vec<String> =
        words.iter().map(|word| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("[{}]", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::Suite;

    fn of(files: &[(&str, &str)]) -> Proposal {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let proposal = propose(&files);
        Suite::parse_named(&proposal.text, "perf")
            .unwrap_or_else(|error| panic!("{error}\n{}", proposal.text));
        proposal
    }

    fn suite(files: &[(&str, &str)]) -> Suite {
        Suite::parse_named(&of(files).text, "perf").unwrap()
    }

    #[test]
    fn harnesses_are_found_by_their_files() {
        let cargo = "[package]\nname = \"a\"\n[dev-dependencies]\ncriterion = \"0.8\"\n";
        let found = of(&[("crates/a/Cargo.toml", cargo), ("x_test.go", "func BenchmarkA(b *testing.B)")]);
        assert_eq!(found.others, ["go (x_test.go)"]);
        assert!(found.is_complete);
        assert_eq!(suite(&[("Cargo.toml", cargo)]).harness.unwrap().kind.as_str(), "criterion");
        let python = suite(&[("bench/requirements.txt", "pytest-benchmark>=4\n")]).harness.unwrap();
        assert_eq!(python.kind.as_str(), "pytest-benchmark");
    }

    #[test]
    fn programs_of_benchmarks_are_found_in_cmakes_files() {
        let source = ("bench/sort.cpp", "#include <benchmark/benchmark.h>");
        let cmake = ("bench/CMakeLists.txt", "add_executable(sort_bench\n  util.cpp sort.cpp)");
        let found = suite(&[source, cmake, ("CMakeLists.txt", "add_subdirectory(bench)")]);
        assert_eq!(found.harness.unwrap().command, ["./build/bench/sort_bench"]);
        assert!(found.build.unwrap().command[2].starts_with("cmake -B build"));
        let unknown = of(&[source, ("Makefile", "all:\n")]);
        assert!(!unknown.is_complete && unknown.text.contains("# CHANGE"), "{}", unknown.text);
    }

    #[test]
    fn a_repository_without_benchmarks_starts_with_a_program() {
        let cargo = "[package]\nname = \"rip\"\nversion = \"1.0.0\"\n";
        let found = suite(&[("Cargo.toml", cargo), ("src/main.rs", "")]);
        assert_eq!(found.workloads[0].task.command().unwrap().command, ["./target/release/rip", "--help"]);
        let found = suite(&[("Makefile", "all:\n\ttrue\nbench: all\n\t./run\n")]);
        assert_eq!(found.workloads[0].task.command().unwrap().command, ["make", "--silent", "bench"]);
        let found = suite(&[("package.json", r#"{"scripts": {"bench": "node bench.js"}}"#)]);
        assert_eq!(found.workloads[0].task.command().unwrap().command, ["npm", "run", "--silent", "bench"]);
        assert!(!of(&[]).is_complete);
        let cmake = "add_executable(demo main.c)\nadd_executable(\n  bench_sum bench_sum.c)\n";
        let found = suite(&[("CMakeLists.txt", cmake)]);
        assert_eq!(
            (found.workloads[0].name.as_str(), found.workloads[0].task.command().unwrap().command.as_slice()),
            ("bench_sum", &["./build/bench_sum".to_owned()][..])
        );
        let python =
            [("pyproject.toml", "[project]\n"), ("benchmarks/bench_f.py", ""), ("src/demo/__init__.py", "")];
        let found = suite(&python);
        assert_eq!(found.workloads[0].task.command().unwrap().command, ["python3", "benchmarks/bench_f.py"]);
        assert_eq!(found.workloads[0].task.command().unwrap().env["PYTHONPATH"], "src");
        assert!(!of(&python[1..]).is_complete, "a script of something else");
    }

    #[test]
    fn npm_installs_what_there_is_to_install() {
        let build = |files: &[(&str, &str)]| suite(files).build.map(|build| build.command.join(" "));
        let plain = ("package.json", r#"{"scripts": {"bench": "node bench.js"}}"#);
        let needs = ("package.json", r#"{"scripts": {"bench": "x"}, "devDependencies": {"y": "1"}}"#);
        assert_eq!(build(&[plain]), None);
        assert_eq!(build(&[needs]).as_deref(), Some("npm install"));
        assert_eq!(build(&[needs, ("package-lock.json", "")]).as_deref(), Some("npm ci"));
    }

    #[test]
    fn odd_names_do_not_break_the_file() {
        of(&[("a \"b\"\\c.py", "pyperf.Runner()")]);
        of(&[("Cargo.toml", "[package]\nname = \"x\\\"]\\n\"\n"), ("src/main.rs", "")]);
    }
}
