//! C++'s Catch2. Its report has no samples, so a process gives one: their mean.

use super::{Asked, Bench, Harness, Runs, Trace, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::Series;
use holdpoint_interop::catch2::{self, Benchmark};
use holdpoint_model::FileError;
use std::collections::BTreeSet;
use std::path::Path;

const LEFT: &str = "turn.xml";
/// Hidden test cases too if they hold benchmarks.
const ALL: &str = "*,[!benchmark]";

pub(super) struct Catch2;

impl Harness for Catch2 {
    fn name(&self) -> &'static str {
        "catch2"
    }

    /// Other tools have such a macro as well.
    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["BENCHMARK("], &["catch2/", "catch.hpp"]];
        Some(Trace { names: &[".cc", ".cpp", ".cxx"], texts, runs: Runs::Program })
    }

    /// A type that only a `BENCHMARK` brings in: most programs with Catch2 have tests only.
    fn marks(&self) -> &'static [&'static str] {
        &["Catch9Benchmark6Detail17|BenchmarkFunction5model"]
    }

    /// Runs every test case: which ones hold benchmarks is known by then only. A command line that names some narrows this down,
    /// as conditions next to each other must all hold.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let short = ["--benchmark-samples", "1", "--benchmark-warmup-time", "0"];
        let words = |out: &Path| [asked.command_with(&short), owned(&[ALL]), options(out)].concat();
        let found = asked.run_into(words, |out| catch2::read_places(&read_left(&out.join(LEFT))?))?;
        let mut names = BTreeSet::new();
        let new = |found: &Benchmark| names.insert(found.full_name());
        let bench = |found: Benchmark| {
            Bench::new(found.full_name(), [asked.command_with(&[]), choose(&found.place)].concat())
        };
        Ok(found.into_iter().filter(new).map(bench).collect())
    }

    fn turn(&self, _: &str, _: u64, out: &Path) -> Vec<String> {
        // Few: one disturbed sample spoils the mean of all.
        let short = owned(&["--benchmark-samples", "10", "--benchmark-warmup-time", "5"]);
        [short, options(out)].concat()
    }

    /// A process spends two seconds on its clock, and runs all benchmarks of a test case anyway.
    fn turns(&self, _: &[&str], samples: u64, out: &Path) -> Option<Vec<String>> {
        Some(self.turn("", samples, out))
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        catch2::read(&read_left(&out.join(LEFT))?)
    }

    fn has_one_sample(&self) -> bool {
        true
    }
}

fn options(out: &Path) -> Vec<String> {
    let left = out.join(LEFT).display().to_string();
    owned(&["--benchmark-no-analysis", "--reporter", "xml", "--out", &left])
}

/// Words that choose a test case and the sections in it. There is no choosing among the benchmarks of one.
fn choose(place: &[String]) -> Vec<String> {
    let (case, sections) = place.split_first().map_or(("", place), |(case, rest)| (case.as_str(), rest));
    let mut words = vec![escape(case)];
    for section in sections {
        words.extend(["--section".to_owned(), section.clone()]);
    }
    words
}

/// A test case's name as its own pattern.
fn escape(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if r#"\,[]*"~"#.contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_case_is_chosen_by_its_whole_name_and_sections_by_theirs() {
        let place = ["words, [all]", "inner, first", "second"].map(str::to_owned);
        let words = [r"words\, \[all\]", "--section", "inner, first", "--section", "second"];
        assert_eq!(choose(&place), words);
        assert_eq!(choose(&[]), [""]);
    }
}
