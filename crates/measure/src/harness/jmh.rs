//! Java's JMH. A turn is one fork of one benchmark with one value of each parameter.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, exactly, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::{Series, jmh};
use holdpoint_model::FileError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const LEFT: &str = "turn.json";
/// Benchmarks of more combinations of parameters than this are cut off.
const COMBINATIONS_MAX: usize = 10_000;

/// All values of each parameter.
type Params = BTreeMap<String, Vec<String>>;

pub(super) struct Jmh;

impl Harness for Jmh {
    fn name(&self) -> &'static str {
        "jmh"
    }

    fn command(&self) -> &'static [&'static str] {
        &["java", "-jar", "target/benchmarks.jar"]
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["jmh"]];
        Some(Trace {
            names: &["pom.xml", "build.gradle", "build.gradle.kts"],
            texts,
            runs: Runs::Built(&["mvn", "--quiet", "package"]),
        })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, _: &Path) -> bool {
        let is_jmh = line.has("org.openjdk.jmh.Main") || line.has_end("benchmarks.jar");
        line.program() == "java" && is_jmh
    }

    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let listed = asked.run(&asked.command_with(&["-lp"]), "")?;
        let mut ids = BTreeSet::new();
        let mut all = Vec::new();
        for (name, params) in parse_list(&listed) {
            for chosen in combinations(&params) {
                let id = jmh::full_name(name, &chosen);
                let given =
                    chosen.iter().flat_map(|(key, value)| ["-p".to_owned(), format!("{key}={value}")]);
                let command = asked.spec.command.iter().cloned().chain(given).collect();
                // A benchmark of several modes is listed as often, and measured in the first.
                if ids.insert(id.clone()) {
                    all.push(Bench::new(id, command));
                }
            }
        }
        Ok(all)
    }

    fn turn(&self, id: &str, samples: u64, out: &Path) -> Vec<String> {
        let name = id.split_once(':').map_or(id, |(name, _)| name);
        let (iterations, left) = (samples.to_string(), out.join(LEFT).display().to_string());
        let warm_up = ["-f", "1", "-wi", "5", "-w", "20ms"];
        let measure = ["-i", &iterations, "-r", "10ms", "-foe", "true", "-rf", "json", "-rff", &left];
        [owned(&warm_up), owned(&measure), vec![exactly(name)]].concat()
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        jmh::read(&read_left(&out.join(LEFT))?)
    }
}

/// Benchmarks, each with the values of its parameters, from lines such as `  param "size" = {10, 100}`.
fn parse_list(text: &str) -> Vec<(&str, Params)> {
    let mut all: Vec<(&str, Params)> = Vec::new();
    for line in text.lines().skip_while(|line| !line.starts_with("Benchmarks:")).skip(1) {
        match (parse_param(line), all.last_mut()) {
            (Some((key, values)), Some((_, params))) => {
                params.insert(key, values);
            }
            _ if line.is_empty() || line.starts_with(' ') => {}
            _ => all.push((line.trim(), Params::new())),
        }
    }
    all
}

fn parse_param(line: &str) -> Option<(String, Vec<String>)> {
    let (key, values) = line.trim().strip_prefix("param \"")?.split_once("\" = {")?;
    let values = values.strip_suffix('}')?.split(", ").map(str::to_owned).collect();
    Some((key.to_owned(), values))
}

/// One value of each parameter, in every combination.
fn combinations(params: &Params) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for (key, values) in params {
        let with = |chosen: &BTreeMap<String, String>| {
            let chosen = chosen.clone();
            values.iter().map(move |value| {
                let mut chosen = chosen.clone();
                chosen.insert(key.clone(), value.clone());
                chosen
            })
        };
        all = all.iter().flat_map(with).take(COMBINATIONS_MAX).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_parameters_is_a_benchmark() {
        let text = "Benchmarks: \norg.Words.count\n  param \"kind\" = {a b, x}\n  param \"words\" = {20, 200}\norg.Words.one\n";
        let listed = parse_list(text);
        assert_eq!(
            listed.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["org.Words.count", "org.Words.one"]
        );
        let names: Vec<String> =
            combinations(&listed[0].1).iter().map(|chosen| jmh::full_name("count", chosen)).collect();
        let expected = [
            "count:kind=a b,words=20",
            "count:kind=a b,words=200",
            "count:kind=x,words=20",
            "count:kind=x,words=200",
        ];
        assert_eq!(names, expected);
        assert_eq!(combinations(&listed[1].1), [BTreeMap::new()]);
        let many = BTreeMap::from(["a", "b"].map(|key| (key.to_owned(), vec!["v".to_owned(); 5_000])));
        assert_eq!(combinations(&many).len(), COMBINATIONS_MAX);
    }

    #[test]
    fn a_benchmark_is_asked_for_without_its_parameters() {
        let words = Jmh.turn("org.Words.count:kind=x", 3, Path::new("/out"));
        assert_eq!(words.last().unwrap(), r"^org\.Words\.count$");
    }
}
