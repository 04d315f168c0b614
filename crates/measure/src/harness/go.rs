//! `go test -bench`, with each package's test program built once.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, exactly};
use crate::program::WorkerError;
use holdpoint_interop::{Series, go_test};
use holdpoint_model::{FailureCause, FileError};
use std::collections::BTreeMap;
use std::path::Path;

/// Below the suite's folder, where test programs are built.
const PROGRAMS: &str = ".holdpoint/go";

pub(super) struct Go;

impl Harness for Go {
    fn name(&self) -> &'static str {
        "go"
    }

    fn command(&self) -> &'static [&'static str] {
        &["go", "test", "./..."]
    }

    fn files(&self) -> &'static [&'static str] {
        &["**/*_test.go", "**/go.mod", "**/go.sum"]
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["func Benchmark"]];
        Some(Trace { names: &["_test.go"], texts, runs: Runs::ByItself })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, _: &Path) -> bool {
        let is_bench = line.has_start("-bench") || line.has_start("--bench");
        line.program() == "go" && line.has("test") && is_bench
    }

    fn marks(&self) -> &'static [&'static str] {
        &["testing: warning: no| tests to run"]
    }

    /// Runs each benchmark once: those inside others are known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let (packages, flags): (Vec<&String>, Vec<&String>) =
            asked.spec.command.iter().skip(2).partition(|word| !word.starts_with('-'));
        let words = |words: &[&str], rest: &[&String]| -> Vec<String> {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .chain(rest.iter().map(|word| (*word).clone()))
                .collect()
        };
        let go = asked.spec.command.first().map_or("go", String::as_str);
        let listed = asked.run(&words(&[go, "list", "-f", "{{.ImportPath}} {{.Dir}}"], &packages), "")?;
        let mut all = Vec::new();
        for (number, line) in listed.lines().enumerate() {
            let Some((package, dir)) = line.split_once(' ') else { continue };
            let program = asked.dir.join(PROGRAMS).join(format!("{number}.test")).display().to_string();
            let mut build = words(&[go, "test", "-c", "-o", &program], &flags);
            build.push(package.to_owned());
            // A package without tests makes no program, and leaves an earlier one's.
            let _ = std::fs::remove_file(&program);
            asked.run(&build, "")?;
            if !Path::new(&program).exists() {
                continue;
            }
            let command = [words(&[&program, "-test.run=^$"], &[]), run_flags(&flags)?].concat();
            let folder = asked.below(Path::new(dir));
            let once = words(&["-test.bench=.", "-test.benchtime=1x"], &[]);
            let found = go_test::read(&asked.run(&[command.clone(), once].concat(), &folder)?);
            let bench = |series: Series| Bench {
                id: series.name,
                command: command.clone(),
                folder: folder.clone(),
                env: BTreeMap::new(),
            };
            all.extend(found.into_iter().map(bench));
        }
        Ok(all)
    }

    fn turn(&self, id: &str, samples: u64, _: &Path) -> Vec<String> {
        let pattern: Vec<String> = id.split('/').map(exactly).collect();
        vec![
            format!("-test.bench={}", pattern.join("/")),
            "-test.benchtime=2ms".to_owned(),
            format!("-test.count={samples}"),
        ]
    }

    fn read(&self, _: &Path, stdout: &str) -> Result<Vec<Series>, FileError> {
        Ok(go_test::read(stdout))
    }
}

/// Flags of `go test` that are the built program's, not the compiler's.
fn run_flags(flags: &[&String]) -> Result<Vec<String>, WorkerError> {
    let of_program = |flag: &str| flag == "short" || flag.starts_with("cpu=");
    let names = flags.iter().map(|flag| flag.trim_start_matches('-')).filter(|flag| of_program(flag));
    names
        .map(|flag| match flag.contains(',') {
            true => {
                let what = format!("-{flag} would mix the times of several numbers of CPUs; name one");
                Err(WorkerError::new(FailureCause::WorkerError, what))
            }
            false => Ok(format!("-test.{flag}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_program_reach_it() {
        let run_flags = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            run_flags(&flags.iter().collect::<Vec<_>>()).map_err(|error| error.detail)
        };
        let reaching = run_flags(&["-cpu=1", "-tags=a,b", "--short", "-race", "-shortest"]).unwrap();
        assert_eq!(reaching, ["-test.cpu=1", "-test.short"]);
        let why = run_flags(&["-cpu=1,2"]).unwrap_err();
        assert_eq!(why, "-cpu=1,2 would mix the times of several numbers of CPUs; name one");
    }
}
