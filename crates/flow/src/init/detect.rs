//! Proposes a suite from a repository's files: the harness whose benchmarks are there, or its build and a program. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Texts of a repository's files, by their paths from its root.
pub type Files = BTreeMap<String, String>;

/// A suite for a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The suite file.
    pub text: String,
    /// Whether it can be run as it is; else a command in it is a guess that has to be filled in.
    pub is_complete: bool,
    /// Harnesses that were found as well, with the files that show them.
    pub others: Vec<String>,
}

/// A harness is there if a file of such a name has this text in it.
struct Rule {
    kind: &'static str,
    names: &'static [&'static str],
    mark: &'static str,
    runs: Runs,
}

/// How the benchmarks of a harness are run.
enum Runs {
    /// By its own command, which the driver knows.
    ByItself,
    /// The file is a script.
    Script,
    /// The file is compiled into a program.
    Program,
    /// By Java, from an archive.
    Jar,
}

/// In the order of preference.
const RULES: [Rule; 9] = [
    Rule { kind: "criterion", names: &["Cargo.toml"], mark: "criterion", runs: Runs::ByItself },
    Rule { kind: "divan", names: &["Cargo.toml"], mark: "divan", runs: Runs::ByItself },
    Rule { kind: "go", names: &["_test.go"], mark: "func Benchmark", runs: Runs::ByItself },
    Rule {
        kind: "pytest-benchmark",
        names: &["pyproject.toml", "requirements.txt", "setup.cfg", "setup.py", "tox.ini", "Pipfile", ".txt"],
        mark: "pytest-benchmark",
        runs: Runs::ByItself,
    },
    Rule { kind: "pyperf", names: &[".py"], mark: "pyperf.Runner(", runs: Runs::Script },
    Rule {
        kind: "google-benchmark",
        names: &[".cc", ".cpp", ".cxx"],
        mark: "benchmark/benchmark.h",
        runs: Runs::Program,
    },
    Rule { kind: "nvbench", names: &[".cu"], mark: "nvbench/nvbench.cuh", runs: Runs::Program },
    Rule { kind: "catch2", names: &[".cc", ".cpp", ".cxx"], mark: "BENCHMARK(", runs: Runs::Program },
    Rule {
        kind: "jmh",
        names: &["pom.xml", "build.gradle", "build.gradle.kts"],
        mark: "jmh",
        runs: Runs::Jar,
    },
];

/// Names of files that are worth reading.
pub fn is_wanted(name: &str) -> bool {
    let names =
        RULES.iter().flat_map(|rule| rule.names).chain(&["CMakeLists.txt", "Makefile", "package.json"]);
    names.clone().any(|wanted| name.ends_with(wanted))
}

/// The suite that a repository would start with.
pub fn propose(files: &Files, branch: &str) -> Proposal {
    let found: Vec<(&Rule, &str)> =
        RULES.iter().filter_map(|rule| Some((rule, find(files, rule)?))).collect();
    let (text, is_complete) = match found.first() {
        Some((rule, path)) => harness(files, rule, path),
        None => program(files),
    };
    let others = found.iter().skip(1).map(|(rule, path)| format!("{} ({path})", rule.kind)).collect();
    let text = format!("{}{text}{GATE}", head(branch));
    Proposal { text, is_complete, others }
}

fn head(branch: &str) -> String {
    // A name that is not plain could end the comment.
    let is_plain = branch.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let branch = if is_plain { branch } else { "HEAD~1" };
    let gate = format!("holdpoint gate --against {branch}");
    let (calibrate, width) = ("holdpoint calibrate", gate.len());
    format!(
        "# What holdpoint measures in this repository. Commit this file, then\n\
         #   {gate}   is anything slower than there?\n\
         #   {calibrate:width$}   how often would that be a false alarm here, and what is seen?\n"
    )
}

const GATE: &str = "
[gate]
tolerance = \"2%\"    # how much slower a workload may be
budget = 20.0       # seconds per workload, at most; what is decided sooner leaves its time to others
";

/// The first file that shows a harness.
fn find<'a>(files: &'a Files, rule: &Rule) -> Option<&'a str> {
    let shows = |(path, text): &(&String, &String)| {
        let is_named = rule.names.iter().any(|name| path.ends_with(name));
        // Other tools have such a macro as well.
        let is_meant = rule.kind != "catch2" || text.contains("catch2/") || text.contains("catch.hpp");
        is_named && is_meant && text.contains(rule.mark)
    };
    files.iter().find(shows).map(|(path, _)| path.as_str())
}

fn harness(files: &Files, rule: &Rule, path: &str) -> (String, bool) {
    let Rule { kind, .. } = rule;
    let mut text = String::new();
    let (command, is_known) = match rule.runs {
        Runs::ByItself => (None, true),
        Runs::Script => (Some(words(&["python3", path])), true),
        Runs::Program => {
            text += &build(files);
            let program = cmake_program(files, path);
            let is_known = program.is_some();
            (Some(words(&[&program.unwrap_or_else(|| "./build/bench".to_owned())])), is_known)
        }
        Runs::Jar => {
            text += "\n[build]\ncommand = [\"mvn\", \"--quiet\", \"package\"]\n";
            (Some(words(&["java", "-jar", "target/benchmarks.jar"])), true)
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
    let command = cargo_program(files).or_else(|| script(files));
    let is_known = command.is_some();
    let command = command.unwrap_or_else(|| words(&["./build/program", "input"]));
    let remark = if is_known { "" } else { "    # CHANGE: what users wait for" };
    let text = format!(
        "{}\n# Add one for each thing that must stay fast; docs/suites.md lists all keys.\n[[workload]]\nname = \"first\"\ncommand = {command}{remark}\n",
        build(files)
    );
    (text, is_known)
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
        words(&["npm", "ci"])
    } else {
        return String::new();
    };
    format!("\n# How a revision is built, in the root of its checkout.\n[build]\ncommand = {command}\n")
}

/// The program of a Cargo package with a `main.rs`.
fn cargo_program(files: &Files) -> Option<String> {
    let manifest = files.get("Cargo.toml")?;
    let package = manifest.split("[package]").nth(1)?;
    let name = package.lines().find_map(|line| line.trim().strip_prefix("name")?.trim().strip_prefix('='))?;
    let name = name.trim().trim_matches('"');
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    (is_plain && files.contains_key("src/main.rs"))
        .then(|| words(&[&format!("./target/release/{name}"), "--help"]))
}

/// A target or a script that is called `bench`.
fn script(files: &Files) -> Option<String> {
    let has_line = |text: &String, start: &str| text.lines().any(|line| line.starts_with(start));
    if files.get("Makefile").is_some_and(|text| has_line(text, "bench:")) {
        return Some(words(&["make", "--silent", "bench"]));
    }
    let scripts = files.get("package.json")?.split("\"scripts\"").nth(1)?;
    scripts.contains("\"bench\"").then(|| words(&["npm", "run", "--silent", "bench"]))
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
    use holdpoint_model::suite::HarnessKind;

    fn of(files: &[(&str, &str)]) -> Proposal {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let proposal = propose(&files, "main");
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
        assert_eq!(suite(&[("Cargo.toml", cargo)]).harness.unwrap().kind, HarnessKind::Criterion);
        let python = suite(&[("bench/requirements.txt", "pytest-benchmark>=4\n")]).harness.unwrap();
        assert_eq!(python.kind, HarnessKind::PytestBenchmark);
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
        assert_eq!(found.workloads[0].command, ["./target/release/rip", "--help"]);
        let found = suite(&[("Makefile", "all:\n\ttrue\nbench: all\n\t./run\n")]);
        assert_eq!(found.workloads[0].command, ["make", "--silent", "bench"]);
        let found = suite(&[("package.json", r#"{"scripts": {"bench": "node bench.js"}}"#)]);
        assert_eq!(found.workloads[0].command, ["npm", "run", "--silent", "bench"]);
        assert!(!of(&[]).is_complete);
    }

    #[test]
    fn odd_names_do_not_break_the_file() {
        of(&[("a \"b\"\\c.py", "pyperf.Runner()")]);
        of(&[("Cargo.toml", "[package]\nname = \"x\\\"]\\n\"\n"), ("src/main.rs", "")]);
    }
}
