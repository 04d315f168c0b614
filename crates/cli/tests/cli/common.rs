//! A folder to run the binary in, and what came of it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// As fast as a suite can be, with one op and one program.
pub const TINY: &str = "
schema_version = 1
name = \"tiny\"
[measure]
rounds_min = 6
rounds_max = 6
round_ms = 0.2
time_budget_ms = 10
warmup_ms_max = 20
[[workload]]
name = \"pack\"
op = \"tile_pack\"
shape = [1, 4, 32, 32]
params = { tile_size = 8, indices = [0, 5, 9] }
[[workload]]
name = \"true\"
command = [\"true\"]
";

/// A folder with the suite in it.
pub struct Here {
    dir: TempDir,
    tmp: TempDir,
    cache: TempDir,
}

/// Variables by which tests tell stand-ins and builds what to do.
pub const PASSED: &str = "BUILDS NAP PAUSE WRONG SEEN FAKE WORKER PAGE LOGS ARGS";

/// How a command ended and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Here {
    pub fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        let here = Self { dir: folder(), tmp: folder(), cache: folder() };
        here.write("suite.toml", TINY);
        here
    }

    /// The binary, in this folder, with folders of its own for temporary files and for builds.
    pub fn command(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("holdpoint");
        command
            .current_dir(self.dir.path())
            .env("TMPDIR", self.tmp.path())
            .env("HOLDPOINT_CACHE", self.cache.path())
            .env("HOLDPOINT_PASS", PASSED)
            .env_remove("COLUMNS")
            .env_remove("CI")
            .args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Runs the gate on the tiny suite, with one run behind a baseline, which is judged by its limit alone: whatever the noise here.
    pub fn gate(&self, arguments: &[&str]) -> Ran {
        let has_rule = ["--against", "--policy", "--threshold"].iter().any(|rule| arguments.contains(rule));
        let policy: &[&str] = if has_rule { &[] } else { &["--policy", "allowed-max"] };
        self.run(&[&["gate", "--suite", "suite.toml", "--runs", "1"], policy, arguments].concat())
    }

    /// The one baseline that was recorded.
    pub fn baseline(&self) -> String {
        let mut all = self.files().into_iter().filter(|name| name.starts_with(".holdpoint/baselines/"));
        let found = all.next().unwrap();
        assert_eq!(all.next(), None);
        found
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where builds are kept.
    pub fn cache(&self) -> &Path {
        self.cache.path()
    }

    pub fn tmp(&self) -> &Path {
        self.tmp.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Changes a JSON file.
    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.json(name);
        change(&mut value);
        self.write(name, &value.to_string());
    }

    /// Sets the time of every metric of the recorded baseline.
    pub fn edit_times(&self, value_ms: f64) {
        self.edit(&self.baseline(), |baseline| {
            for metric in baseline["metrics"].as_object_mut().unwrap().values_mut() {
                scale(metric, value_ms / metric["value_ms"].as_f64().unwrap());
            }
        });
    }

    /// Every file below this folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(self.dir.path(), "", &mut names);
        names.sort();
        names
    }

    /// Files left in the folder for temporary files.
    pub fn left_over(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(self.tmp.path(), "", &mut names);
        names
    }
}

/// How a command ended, whoever started it.
pub fn ran(output: std::process::Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Ran { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn collect(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), names);
        } else {
            names.push(name);
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn prints(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stdout.contains(word), "stdout should contain {word:?}: {self:#?}");
        }
        self
    }

    #[track_caller]
    pub fn notes(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stderr.contains(word), "stderr should contain {word:?}: {self:#?}");
        }
        self
    }

    /// Nothing on stdout, and on stderr one line.
    #[track_caller]
    pub fn refuses(&self, code: i32, words: &[&str]) -> &Self {
        self.ends(code).notes(words);
        assert_eq!(self.stdout, "", "{self:#?}");
        assert!(self.stderr.starts_with("holdpoint: "), "{self:#?}");
        // Below it, perhaps the place in a file.
        assert!(self.stderr.lines().skip(1).all(|line| line.starts_with("  | ")), "{self:#?}");
        self
    }
}

/// Makes a report's workload one sample of this time, and all summaries that of it.
pub fn set_time(report: &mut Value, workload: &str, time_ms: f64) {
    let measured = &mut report["benchmarks"][workload];
    let calls = measured["samples"]["calls_per_sample"].as_f64().unwrap();
    let elapsed_ns = (time_ms * 1e6 * calls).round();
    let is_ms = elapsed_ns / calls / 1e6;
    let mut round = measured["samples"]["rounds"][0].clone();
    round["elapsed_ns"] = vec![elapsed_ns as u64].into();
    round.as_object_mut().unwrap().remove("cpu_ns");
    measured["samples"]["rounds"] = vec![round].into();
    for key in ["p50_ms", "p95_ms", "p99_ms", "mean_ms", "min_ms"] {
        measured[key] = is_ms.into();
    }
    for key in ["cpu_p50_ms", "slow_stretches", "p50_interval_ms", "cv"] {
        measured.as_object_mut().unwrap().remove(key);
    }
    report["metrics"][format!("{workload}_p50_ms")] = is_ms.into();
}

/// A file of the originals, as it is.
pub fn data(name: &str) -> String {
    format!("{}/../model/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The keys of an object, sorted.
pub fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Multiplies the value of a baseline's metric, with that of each run.
pub fn scale(metric: &mut Value, factor: f64) {
    let times = |value: &Value| Value::from(value.as_f64().unwrap() * factor);
    metric["value_ms"] = times(&metric["value_ms"]);
    if let Some(runs) = metric.get_mut("runs_ms").and_then(Value::as_array_mut) {
        runs.iter_mut().for_each(|run| *run = times(run));
    }
}
