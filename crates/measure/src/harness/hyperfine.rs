//! hyperfine: each command on its command line is a benchmark, and a turn runs it as often as there are samples.

use super::{Asked, Bench, CommandLine, Harness, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::{Series, hyperfine};
use holdpoint_model::FileError;
use std::path::Path;

const LEFT: &str = "turn.json";

pub(super) struct Hyperfine;

impl Harness for Hyperfine {
    fn name(&self) -> &'static str {
        "hyperfine"
    }

    fn is_run_by(&self, line: &CommandLine<'_>, _: &Path) -> bool {
        line.program() == "hyperfine"
    }

    /// Runs each command once: what a scan of parameters makes of it is known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let line = Line::parse(&asked.spec.command);
        let mut all = Vec::new();
        for (number, command) in line.commands.iter().enumerate() {
            let name = line.names.get(number).map(|name| vec!["--command-name".to_owned(), name.clone()]);
            let common = [line.options.clone(), name.unwrap_or_default()].concat();
            let once = |out: &Path| {
                let once = [owned(&["--runs", "1"]), output(out), vec![command.clone()]];
                [common.clone(), line.scans.concat(), once.concat()].concat()
            };
            let found =
                asked.run_into(once, |out| hyperfine::read_parameters(&read_left(&out.join(LEFT))?))?;
            for (id, parameters) in found {
                let chosen = parameters.iter().flat_map(|(key, value)| {
                    let chosen = ["--parameter-list", key.as_str(), value.as_str()];
                    owned(&chosen)
                });
                let words = common.iter().cloned().chain(chosen).chain([command.clone()]).collect();
                all.push(Bench::new(id, words));
            }
        }
        Ok(all)
    }

    fn turn(&self, _: &str, samples: u64, out: &Path) -> Vec<String> {
        let runs = samples.to_string();
        [owned(&["--warmup", "1", "--runs", &runs]), output(out)].concat()
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        hyperfine::read(&read_left(&out.join(LEFT))?)
    }
}

fn output(out: &Path) -> Vec<String> {
    owned(&["--export-json", &out.join(LEFT).display().to_string()])
}

/// hyperfine's command line by its parts.
#[derive(Debug, Default, PartialEq)]
struct Line {
    /// The program and the options that every turn keeps.
    options: Vec<String>,
    /// Each with its words.
    scans: Vec<Vec<String>>,
    names: Vec<String>,
    commands: Vec<String>,
}

/// Options that take words of their own, and how many.
const WITH_WORDS: [(&str, &str, usize); 14] = [
    ("--setup", "-s", 1),
    ("--prepare", "-p", 1),
    ("--cleanup", "-c", 1),
    ("--conclude", "-C", 1),
    ("--shell", "-S", 1),
    ("--time-unit", "-u", 1),
    ("--style", "", 1),
    ("--sort", "", 1),
    ("--input", "", 1),
    ("--output", "", 1),
    ("--reference", "", 1),
    ("--parameter-scan", "-P", 3),
    ("--parameter-step-size", "-D", 1),
    ("--parameter-list", "-L", 2),
];
/// Options that a turn sets itself, or that would write files in each; each takes a word.
const DROPPED: [(&str, &str); 9] = [
    ("--warmup", "-w"),
    ("--runs", "-r"),
    ("--min-runs", "-m"),
    ("--max-runs", "-M"),
    ("--export-json", ""),
    ("--export-csv", ""),
    ("--export-markdown", ""),
    ("--export-asciidoc", ""),
    ("--export-orgmode", ""),
];

impl Line {
    fn parse(command: &[String]) -> Self {
        let mut line = Self::default();
        let mut words = command.iter().cloned();
        line.options.extend(words.next());
        while let Some(word) = words.next() {
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let is = |long: &str, short: &str| option == long || !short.is_empty() && option == short;
            if word == "--" {
                line.commands.extend(words.by_ref());
            } else if is("--command-name", "-n") {
                line.names.extend(joined.or_else(|| words.next()));
            } else if DROPPED.iter().any(|(long, short)| is(long, short)) {
                let _ = joined.or_else(|| words.next());
            } else if let Some((long, _, count)) = WITH_WORDS.iter().find(|(long, short, _)| is(long, short))
            {
                let taken = if joined.is_some() { 0 } else { *count };
                let whole: Vec<String> = std::iter::once(word).chain(words.by_ref().take(taken)).collect();
                if long.starts_with("--parameter-") {
                    line.scans.push(whole);
                } else {
                    line.options.extend(whole);
                }
            } else if word.starts_with('-') {
                line.options.push(word);
            } else {
                line.commands.push(word);
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        owned(text)
    }

    #[test]
    fn commands_are_told_from_options() {
        let line = Line::parse(&words(&[
            "hyperfine",
            "-N",
            "--warmup",
            "3",
            "-r",
            "10",
            "--prepare",
            "sync",
            "sleep 1",
            "-n",
            "nap",
            "--export-csv=all.csv",
            "-L",
            "n",
            "1,2",
            "--shell=bash",
            "sleep {n}",
            "--",
            "-x",
        ]));
        assert_eq!(line.options, words(&["hyperfine", "-N", "--prepare", "sync", "--shell=bash"]));
        assert_eq!(line.commands, words(&["sleep 1", "sleep {n}", "-x"]));
        assert_eq!(line.names, words(&["nap"]));
        assert_eq!(line.scans, [words(&["-L", "n", "1,2"])]);
        assert_eq!(Line::parse(&[]), Line::default());
    }
}
