//! GitHub Actions on this machine: jobs in order, steps in bash, outputs, artifacts, and the three actions the workflows use.

use crate::expression::{fill, holds, word};
use crate::github::github;
use crate::program::write_program;
use crate::repository::Origin;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// `gh`, as far as the workflows use it: answers from files, and keeps what it was told.
const GH: &str = r#"#!/bin/sh
case "$*" in
"api repos/octo-org/kernels/pulls/42") exec cat "$GH_ANSWERS/pull.json" ;;
"api repos/octo-org/kernels/collaborators/mona/permission") exec cat "$GH_ANSWERS/permission.json" ;;
*) echo "gh: $*: 404" >&2; exit 1 ;;
esac
"#;

/// What came of a job.
#[derive(Debug, Default)]
pub struct Job {
    /// `success`, `failure` or `skipped`.
    pub result: String,
    pub outputs: Map<String, Value>,
    /// What its steps printed.
    pub log: String,
}

/// A run of a workflow.
pub struct Run {
    pub jobs: BTreeMap<String, Job>,
    /// Names and folders of artifacts.
    pub artifacts: PathBuf,
    /// The checks that were set, by GitHub's API.
    pub checks: Vec<Value>,
    /// The pull requests that were opened.
    pub proposals: Vec<Value>,
    /// The comments on the pull request.
    pub comments: Vec<String>,
    _dir: TempDir,
}

/// What starts a run.
pub struct Event<'a> {
    pub name: &'a str,
    pub payload: Value,
    /// `GITHUB_SHA`.
    pub sha: &'a str,
    /// The repository's variables.
    pub vars: Value,
    /// What GitHub says of the pull request and of the author's permission.
    pub answers: [Value; 2],
    /// What an earlier run has left.
    pub evidence: Option<PathBuf>,
}

impl<'a> Event<'a> {
    /// In a repository without variables.
    pub fn new(name: &'a str, payload: Value, sha: &'a str) -> Self {
        Self { name, payload, sha, vars: json!({}), answers: [Value::Null, Value::Null], evidence: None }
    }
}

/// Runs every job of a workflow whose time comes.
pub fn run(workflow: &Value, event: &Event, origin: &Origin) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let (server, written) = github("octo-org/kernels", event.answers[0].clone());
    let machine = Machine { dir: dir.path(), event, origin, api: &server.url };
    machine.set_up();
    let jobs = workflow["jobs"].as_object().unwrap();
    let mut done: BTreeMap<String, Job> = BTreeMap::new();
    while done.len() < jobs.len() {
        let is_ready = |job: &Value| needs(job).iter().all(|need| done.contains_key(need));
        let ready = jobs.iter().find(|(name, job)| !done.contains_key(*name) && is_ready(job));
        let (name, job) = ready.expect("jobs need each other in no circle");
        let result = machine.job(name, job, &done);
        done.insert(name.clone(), result);
    }
    let comments = written.comments.lock().unwrap().iter().map(|comment| word(&comment["body"])).collect();
    let (checks, proposals) =
        (written.checks.lock().unwrap().clone(), written.proposals.lock().unwrap().clone());
    Run { jobs: done, artifacts: dir.path().join("artifacts"), checks, proposals, comments, _dir: dir }
}

fn needs(job: &Value) -> Vec<String> {
    match &job["needs"] {
        Value::Null => Vec::new(),
        Value::String(one) => vec![one.clone()],
        many => many.as_array().unwrap().iter().map(word).collect(),
    }
}

struct Machine<'a> {
    dir: &'a Path,
    event: &'a Event<'a>,
    origin: &'a Origin,
    /// Where GitHub's API is.
    api: &'a str,
}

impl Machine<'_> {
    fn set_up(&self) {
        for folder in ["artifacts", "answers", "gh"] {
            fs::create_dir(self.dir.join(folder)).unwrap();
        }
        fs::write(self.dir.join("event.json"), self.event.payload.to_string()).unwrap();
        for (name, answer) in ["pull.json", "permission.json"].iter().zip(&self.event.answers) {
            fs::write(self.dir.join("answers").join(name), answer.to_string()).unwrap();
        }
        for folder in ["runner/bin", "runner/externals"] {
            fs::create_dir_all(self.dir.join(folder)).unwrap();
        }
        write_program(&self.dir.join("runner/bin/Runner.Worker"), fs::read("/bin/bash").unwrap());
        fs::write(self.dir.join("runner/externals/node"), "").unwrap();
        fs::write(self.dir.join("runner/.credentials"), "secret").unwrap();
        write_program(&self.dir.join("gh/gh"), GH);
    }

    /// What the steps of a job run has not been touched by what one of them has measured.
    fn is_as_it_was(&self, home: &Path) {
        let names = |dir: &Path| -> Vec<String> {
            let entries = fs::read_dir(dir).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let bin = home.join("bin");
        let installed = names(&bin);
        if !installed.is_empty() {
            assert_eq!(installed, ["holdpoint"]);
            let same = fs::read(bin.join("holdpoint")).unwrap()
                == fs::read(env!("CARGO_BIN_EXE_holdpoint")).unwrap();
            assert!(same, "holdpoint is the one that was installed");
        }
        assert_eq!(names(&self.dir.join("runner/externals")), ["node"]);
        assert_eq!(fs::read_to_string(self.dir.join("runner/externals/node")).unwrap(), "");
        let all = names(home).into_iter().chain(names(home.parent().unwrap()));
        assert_eq!(all.filter(|name| name.ends_with(".away")).count(), 0);
        assert!(!home.join("not/there").exists() || names(&home.join("not/there")).is_empty());
        assert!(!home.join("temp/artifacts/link").is_symlink(), "nothing is uploaded by way of a link");
        let decision = fs::read_to_string(home.join("temp/artifacts/ci.json")).unwrap_or_default();
        assert!(!decision.contains("forged"), "{decision}");
        assert!(!home.join("temp/artifacts/stolen").exists(), "the runner's credentials are not readable");
        for file in names(&home.join("temp/_runner_file_commands")) {
            let text = fs::read_to_string(home.join("temp/_runner_file_commands").join(&file)).unwrap();
            let is_own = text.lines().count() <= 1 && file.ends_with("-output") || file.ends_with("-script");
            assert!(is_own || !text.contains("code=0"), "{file}: {text}");
        }
        // A later step may ask git about the checkout, which is not what was measured.
        let config = fs::read_to_string(home.join("workspace/.git/config")).unwrap_or_default();
        assert!(!config.contains("forged"), "{config}");
        assert!(!home.join("workspace/written").exists(), "what is checked out is what was checked out");
    }

    fn job(&self, name: &str, job: &Value, done: &BTreeMap<String, Job>) -> Job {
        let needs = needs(job);
        let is_success = needs.iter().all(|need| done[need].result == "success");
        let of = |need: &String| {
            let outcome = &done[need];
            (need.clone(), json!({"result": outcome.result, "outputs": outcome.outputs}))
        };
        let needs: Map<String, Value> = needs.iter().map(of).collect();
        let home = self.dir.join("jobs").join(name);
        for folder in ["workspace", "temp/_runner_file_commands", "bin"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let mut contexts = json!({
            "github": {
                "event_name": self.event.name, "event": self.event.payload, "sha": self.event.sha,
                "ref": "refs/heads/main", "run_id": "77", "token": "ghs_x",
            },
            "vars": self.event.vars, "secrets": {}, "needs": needs, "steps": {},
            "runner": {"temp": home.join("temp")},
        });
        if !holds(job.get("if"), is_success, &contexts) {
            return Job { result: "skipped".to_owned(), ..Job::default() };
        }
        let (mut ended, mut log) = ("success", String::new());
        // From a step on that measures without isolation, the machine is the stranger's, and thrown away.
        let mut is_ours = true;
        for (index, step) in job["steps"].as_array().unwrap().iter().enumerate() {
            let mut outcome = "skipped";
            let mut outputs = Map::new();
            if holds(step.get("if"), ended == "success", &contexts) {
                let script = step["run"].as_str().unwrap_or_default();
                is_ours &= !script.contains("ci gate") || script.contains("--isolate");
                let place = Place { index, home: &home, is_ours };
                let ok = self.step(place, step, &contexts, &mut outputs, &mut log);
                outcome = if ok { "success" } else { "failure" };
            }
            if outcome == "failure" && step["continue-on-error"] != true {
                ended = "failure";
            }
            if let Some(id) = step["id"].as_str() {
                contexts["steps"][id] = json!({"outputs": outputs, "outcome": outcome});
            }
        }
        let outputs = job["outputs"].as_object().cloned().unwrap_or_default();
        let filled = outputs.iter().map(|(name, text)| (name.clone(), fill(&word(text), &contexts).into()));
        Job { result: ended.to_owned(), outputs: filled.collect(), log }
    }

    fn step(
        &self,
        place: Place,
        step: &Value,
        contexts: &Value,
        outputs: &mut Map<String, Value>,
        log: &mut String,
    ) -> bool {
        let Place { index, home, is_ours } = place;
        let name = step["name"].as_str().expect("every step has a name");
        *log += &format!("== {name}\n");
        let workspace = home.join("workspace");
        if let Some(action) = step["uses"].as_str() {
            let with = |key: &str| fill(&word(&step["with"][key]), contexts);
            return match action.split('@').next().unwrap() {
                "actions/checkout" => {
                    let is_whole = with("fetch-depth") == "0";
                    let reference = Some(with("ref")).filter(|name| !name.is_empty());
                    let reference = reference.unwrap_or_else(|| self.event.sha.to_owned());
                    self.origin.check_out(&workspace.join(with("path")), &reference, is_whole)
                }
                "actions/upload-artifact" => {
                    copy(Path::new(&with("path")), &self.dir.join("artifacts").join(with("name")))
                }
                "actions/download-artifact" if !with("run-id").is_empty() => {
                    let folder = workspace.join(with("path"));
                    // Without a name, each artifact gets a folder of its own.
                    let folder = if with("name").is_empty() { folder.join("perf-evidence") } else { folder };
                    self.event.evidence.as_ref().is_some_and(|from| copy(from, &folder))
                }
                "actions/download-artifact" => {
                    copy(&self.dir.join("artifacts").join(with("name")), &workspace.join(with("path")))
                }
                other => panic!("{other}: no such action here"),
            };
        }
        let file = |what: &str| {
            let path = home.join(format!("temp/_runner_file_commands/{index}-{what}"));
            fs::write(&path, "").unwrap();
            path
        };
        let (script, output) = (file("script"), file("output"));
        fs::write(&script, fill(step["run"].as_str().unwrap(), contexts)).unwrap();
        // The parent of a step is the runner's worker, which lies in the runner's folder.
        let mut bash = Command::new(self.dir.join("runner/bin/Runner.Worker"));
        bash.args(["-c", "bash \"$@\"; exit $?", "worker"]);
        match step["shell"].as_str() {
            Some("bash") => bash.args(["--noprofile", "--norc", "-eo", "pipefail"]),
            None => bash.arg("-e"),
            Some(other) => panic!("{other}: no such shell here"),
        };
        let folder = fill(step["working-directory"].as_str().unwrap_or("."), contexts);
        bash.arg(&script).current_dir(workspace.join(folder)).env_clear();
        let path = std::env::var("PATH").unwrap();
        let (own, gh) = (home.join("bin"), self.dir.join("gh"));
        // One folder is not there yet, and an empty entry means the folder that one is in: the change's own.
        let missing = home.join("not/there");
        bash.env("PATH", format!("{}:{}:{}:{path}:", own.display(), gh.display(), missing.display()));
        bash.env("HOME", home).env("BIN", own).env("BUILT", env!("CARGO_BIN_EXE_holdpoint"));
        bash.env("GH_ANSWERS", self.dir.join("answers"));
        bash.env("GITHUB_ACTIONS", "true").env("CI", "true").env("GITHUB_REPOSITORY", "octo-org/kernels");
        bash.env("GITHUB_API_URL", self.api);
        bash.env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_ACTOR", "mona");
        bash.env("GITHUB_EVENT_NAME", self.event.name).env("GITHUB_EVENT_PATH", self.dir.join("event.json"));
        bash.env("GITHUB_SHA", self.event.sha)
            .env("GITHUB_WORKSPACE", &workspace)
            .env("RUNNER_TEMP", home.join("temp"));
        bash.env("GITHUB_OUTPUT", &output).env("GITHUB_ENV", file("env")).env("GITHUB_PATH", file("path"));
        bash.env("GITHUB_STEP_SUMMARY", file("summary"));
        // There is no network: the forge is a folder.
        bash.env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_VALUE_0", "https://github.com/octo-org/kernels.git")
            .env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", self.origin.path().display()));
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, fill(&word(value), contexts));
        }
        let done = bash.output().unwrap();
        *log += &String::from_utf8_lossy(&done.stdout);
        *log += &String::from_utf8_lossy(&done.stderr);
        // Where a process can outlive the gate, it says so.
        if is_ours && !log.contains("may outlive the gate") {
            assert_eq!(left_by(home), Vec::<String>::new(), "nothing that was measured is still there");
            self.is_as_it_was(home);
        }
        for line in fs::read_to_string(output).unwrap().lines() {
            let (name, value) = line.split_once('=').expect("outputs are name=value");
            let before = outputs.insert(name.to_owned(), value.into());
            assert!(before.is_none() || !is_ours, "{name} is set once, by the step itself");
        }
        done.status.success()
    }
}

/// Where a step runs.
#[derive(Clone, Copy)]
struct Place<'a> {
    index: usize,
    home: &'a Path,
    /// Whether no stranger's code has had the machine for itself.
    is_ours: bool,
}

/// Processes that the code of a stranger has left.
pub fn left_by(home: &Path) -> Vec<String> {
    let mark = format!("left by {}\0", home.display());
    let lines =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(&mark)).collect()
}

pub fn copy(from: &Path, to: &Path) -> bool {
    if !from.exists() {
        return false;
    }
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success()
}

/// The files that `ci init` writes with these flags and all parts that the forge can have, by name.
pub fn written(flags: &[&str]) -> BTreeMap<String, String> {
    let of_github: &[&str] = if flags.contains(&"gitlab") { &[] } else { &["--forks"] };
    written_as(&[flags, &["--gpu", "--weekly", "--promote", "--notify", "--history"], of_github].concat())
}

/// The files that `ci init` writes with these flags alone.
pub fn written_as(flags: &[&str]) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    for suite in ["perf.toml", "perf-gpu.toml"] {
        fs::write(dir.path().join(suite), "").unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
    // The same binary in each job, put where a job finds it.
    let install = ["--install", "cp \"$BUILT\" \"$BIN/holdpoint\""];
    command.args(["ci", "init", "--quiet", "--no-repository"]).args(install).arg("--dir");
    assert!(command.arg(dir.path()).args(flags).status().unwrap().success());
    let folder = [".github/workflows", ".gitlab"].map(|folder| dir.path().join(folder));
    let folder = folder.iter().find(|folder| folder.exists()).unwrap();
    let read = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

/// A file as what it means.
pub fn parsed(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}
