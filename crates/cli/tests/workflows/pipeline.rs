//! GitLab on this machine: rules, jobs in the order of their needs, scripts in the system's sh, dotenv reports and artifacts.
//! What the file does not use is a panic, not a guess.

use crate::actions::{copy, left_by};
use crate::program::write_program;
use crate::repository::{Origin, git};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// `curl`, as far as the comment uses it: answers from files, and keeps what it was told.
const CURL: &str = r#"#!/bin/sh
if ! grep -q 'PRIVATE-TOKEN: glpat-comment' token.conf; then echo "curl: 401" >&2; exit 22; fi
for argument in "$@"; do case "$argument" in https://*) url=${argument#https://gitlab.example.org/api/v4/} ;; esac; done
case "$*" in
*--form*) printf '%s\n' "$*" >> "$ANSWERS/said"; cat note.md >> "$ANSWERS/said"; exit 0 ;;
esac
case "$url" in
user) echo '{"id":7}' ;;
projects/41/merge_requests\?*) cat "$ANSWERS/merge_requests.json" ;;
projects/41/merge_requests/*/notes\?*) cat "$ANSWERS/notes.json" ;;
*) echo "curl: $*: 404" >&2; exit 22 ;;
esac
"#;

type Variables = BTreeMap<String, String>;
type Keys = Map<String, Value>;

/// What starts a pipeline.
#[derive(Default)]
pub struct Started<'a> {
    /// `CI_COMMIT_SHA`, which is checked out.
    pub sha: &'a str,
    /// What GitLab sets, and variables of the project and of whoever started it.
    pub given: Vec<(&'a str, &'a str)>,
    /// Variables of the project that only jobs of an environment get: its name, the variable's, the value.
    pub scoped: Vec<(&'a str, &'a str, &'a str)>,
    /// What GitLab says of merge requests and of their notes.
    pub answers: [Value; 2],
    /// Programs that jobs find before the machine's own.
    pub programs: Vec<(&'a str, &'a str)>,
}

/// What came of a job.
#[derive(Debug, Default)]
pub struct Job {
    /// `success`, `warning`, `failure` or `skipped`.
    pub result: &'static str,
    /// What its scripts printed.
    pub log: String,
    /// What its artifacts are called.
    pub name: String,
    /// Its home, with the checkout in `project`.
    pub home: PathBuf,
    passed_on: Vec<(String, String)>,
}

impl Job {
    /// A file of its artifacts.
    pub fn evidence(&self, name: &str) -> PathBuf {
        self.home.join("project/holdpoint-artifacts").join(name)
    }
}

/// A pipeline that has ended.
pub struct Ended {
    /// The jobs that its rules put into it.
    pub jobs: BTreeMap<String, Job>,
    /// What GitLab was told to write.
    pub said: String,
    _dir: TempDir,
}

/// A job with what it extends below it.
pub fn resolved(file: &Value, name: &str) -> Keys {
    let own = file[name].as_object().unwrap().clone();
    let mut job = own.get("extends").map_or_else(Map::new, |parent| resolved(file, parent.as_str().unwrap()));
    for (key, value) in own {
        match (job.get_mut(&key).and_then(Value::as_object_mut), &value) {
            (Some(below), Value::Object(above)) => below.extend(above.clone()),
            _ => drop(job.insert(key, value)),
        }
    }
    job
}

/// Names of the jobs that a file has.
pub fn names(file: &Value) -> impl Iterator<Item = &String> {
    file.as_object().unwrap().keys().filter(|name| !name.starts_with('.') && *name != "variables")
}

/// Whether a rule's condition holds.
fn holds(condition: &str, given: &Variables) -> bool {
    let value = |word: &str| match word.strip_prefix('$') {
        Some(name) => given.get(name).cloned(),
        None if word == "null" => None,
        None => Some(word.trim_matches('"').to_owned()),
    };
    condition.split(" && ").all(|term| match term.split(' ').collect::<Vec<_>>()[..] {
        [left, "==", right] => value(left) == value(right),
        [left, "!=", right] => value(left) != value(right),
        [left, "=~", right] => {
            let words = right.strip_prefix("/^(").and_then(|rest| rest.strip_suffix(")$/")).unwrap();
            value(left).is_some_and(|left| words.split('|').any(|word| word == left))
        }
        _ => panic!("{term}: no such condition here"),
    })
}

/// The jobs it needs, and whether it can do without.
fn needs(job: &Keys) -> Vec<(String, bool)> {
    let need = |need: &Value| match need {
        Value::String(name) => (name.clone(), false),
        other => (other["job"].as_str().unwrap().to_owned(), other["optional"] == true),
    };
    job.get("needs").and_then(Value::as_array).into_iter().flatten().map(need).collect()
}

/// Runs every job that the rules put into the pipeline.
pub fn run(file: &Value, started: &Started, origin: &Origin) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let answers = dir.path().join("answers");
    fs::create_dir(&answers).unwrap();
    for (name, answer) in ["merge_requests.json", "notes.json"].iter().zip(&started.answers) {
        fs::write(answers.join(name), answer.to_string()).unwrap();
    }
    let mut given: Variables = Variables::new();
    for (name, variable) in file["variables"].as_object().unwrap() {
        given.insert(name.clone(), variable["value"].as_str().unwrap().to_owned());
    }
    given.extend(started.given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    // Each with the rule that put it there.
    let mut waiting: BTreeMap<String, (Keys, Keys)> = BTreeMap::new();
    for name in names(file) {
        let job = resolved(file, name);
        let mut rules = job["rules"].as_array().unwrap().iter();
        let rule = rules.find(|rule| rule["if"].as_str().is_none_or(|condition| holds(condition, &given)));
        if let Some(rule) = rule.filter(|rule| rule["when"] != "never") {
            waiting.insert(name.clone(), (job.clone(), rule.as_object().unwrap().clone()));
        }
    }
    for (name, (job, _)) in &waiting {
        for (need, is_optional) in needs(job) {
            assert!(is_optional || waiting.contains_key(&need), "GitLab refuses it: {name} needs {need}");
        }
    }
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    let machine = Machine { dir: dir.path(), started, given, origin };
    while !waiting.is_empty() {
        let is_ready = |job: &Keys| needs(job).iter().all(|(need, _)| !waiting.contains_key(need));
        let ready = waiting.iter().find(|(_, (job, _))| is_ready(job));
        let name = ready.expect("jobs need each other in no circle").0.clone();
        let (job, rule) = waiting.remove(&name).unwrap();
        let done = machine.job(&name, &job, &rule, &jobs);
        jobs.insert(name, done);
    }
    Ended { jobs, said: fs::read_to_string(answers.join("said")).unwrap_or_default(), _dir: dir }
}

struct Machine<'a> {
    dir: &'a Path,
    started: &'a Started<'a>,
    given: Variables,
    origin: &'a Origin,
}

impl Machine<'_> {
    fn job(&self, name: &str, job: &Keys, rule: &Keys, done: &BTreeMap<String, Job>) -> Job {
        let needed: Vec<&Job> = needs(job).iter().filter_map(|(need, _)| done.get(need)).collect();
        let is_good = |job: &&Job| ["success", "warning"].contains(&job.result);
        if rule.get("when").is_none_or(|when| when != "always") && !needed.iter().all(is_good) {
            return Job { result: "skipped", ..Job::default() };
        }
        let home = self.dir.join("jobs").join(name);
        let (project, bin) = (home.join("project"), home.join("bin"));
        for folder in [&project, &bin] {
            fs::create_dir_all(folder).unwrap();
        }
        let own: Vec<(&String, &Value)> = [job.get("variables"), rule.get("variables")]
            .into_iter()
            .flatten()
            .flat_map(|variables| variables.as_object().unwrap())
            .collect();
        let is_checked_out = own.iter().rfind(|(name, _)| *name == "GIT_STRATEGY").unwrap().1 != "none";
        if is_checked_out {
            self.check_out(&project);
        }
        for need in needed.iter().filter(|need| need.evidence("").exists()) {
            assert!(copy(&need.evidence(""), &project.join("holdpoint-artifacts")));
        }
        for (name, text) in self.started.programs.iter().chain(&[("curl", CURL)]) {
            write_program(&bin.join(name), text);
        }
        // The strongest last: a job's own, what other jobs passed on, then the project's and the pipeline's.
        let mut variables = Variables::new();
        let expanded = |value: &Value| match value.as_str() {
            Some(text) => text.replace("$CI_PROJECT_DIR", &project.display().to_string()),
            None => {
                assert_eq!(value["expand"], false);
                value["value"].as_str().unwrap().to_owned()
            }
        };
        variables.extend(own.iter().map(|(name, value)| ((*name).clone(), expanded(value))));
        variables.extend(needed.iter().flat_map(|need| need.passed_on.clone()));
        variables.extend(self.given.clone());
        let environment = job.get("environment").and_then(|environment| environment["name"].as_str());
        for (scope, name, value) in &self.started.scoped {
            if Some(*scope) == environment {
                variables.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        let name_of_artifacts = variables.get("HP_JOB_NAME").cloned().unwrap_or_default();
        let (code, log) = self.scripts(job, &home, variables);
        let is_apart = !log.contains("may outlive the gate");
        if is_apart {
            assert_eq!(left_by(&home), Vec::<String>::new(), "nothing that was measured is still there");
        }
        let result = match code {
            0 => "success",
            code if is_allowed(job, rule, code) => "warning",
            _ => "failure",
        };
        let passed_on = reported(job, &project, is_apart);
        Job { result, log, name: name_of_artifacts, home, passed_on }
    }

    /// What GitLab's runner does: a clone with all branches, and a token in its configuration.
    fn check_out(&self, project: &Path) {
        self.origin.check_out(project, self.started.sha, true);
        git(project, &["config", "http.https://gitlab.example.org.extraHeader", "Authorization: glcbt-job"]);
    }

    fn scripts(&self, job: &Keys, home: &Path, variables: Variables) -> (i32, String) {
        let lines = |key: &str| job.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let script: Vec<String> = lines("before_script")
            .iter()
            .chain(&lines("script"))
            .map(|line| line.as_str().unwrap().to_owned())
            .collect();
        let (project, bin) = (home.join("project"), home.join("bin"));
        let mut sh = Command::new("sh");
        sh.args(["-e", "-c", &script.join("\n")]).current_dir(&project).env_clear();
        sh.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).env("HOME", home);
        sh.env("BIN", &bin).env("BUILT", env!("CARGO_BIN_EXE_holdpoint")).env("CI_PROJECT_DIR", &project);
        sh.env("CI", "true").env("GITLAB_CI", "true").env("ANSWERS", self.dir.join("answers"));
        sh.env("CI_API_V4_URL", "https://gitlab.example.org/api/v4").env("CI_JOB_TOKEN", "glcbt-job");
        sh.env("CI_SERVER_HOST", "gitlab.example.org").env("GITLAB_USER_LOGIN", "mona");
        sh.env("CI_PROJECT_URL", "https://gitlab.example.org/octo-org/kernels");
        sh.env("CI_PIPELINE_URL", "https://gitlab.example.org/octo-org/kernels/-/pipelines/77");
        // There is no network: the forge is a folder.
        sh.env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_VALUE_0", "https://holdpoint@gitlab.example.org/octo-org/kernels.git");
        sh.env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", self.origin.path().display()));
        let done = sh.envs(variables).output().unwrap();
        let log =
            [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (done.status.code().unwrap_or(-1), log)
    }
}

fn is_allowed(job: &Keys, rule: &Keys, code: i32) -> bool {
    let of_rule = rule.get("allow_failure").or_else(|| job.get("allow_failure"));
    of_rule.is_some_and(|allowed| *allowed == true || allowed["exit_codes"] == code)
}

/// The variables of its dotenv report. Where something may outlive the gate, it can add to it, and the job has said so.
fn reported(job: &Keys, project: &Path, is_apart: bool) -> Vec<(String, String)> {
    let report = job.get("artifacts").and_then(|artifacts| artifacts["reports"]["dotenv"].as_str());
    let text = report.and_then(|report| fs::read_to_string(project.join(report)).ok()).unwrap_or_default();
    let line = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        assert!(!value.is_empty() && !value.contains(' '), "GitLab takes no such line: {line}");
        (name.to_owned(), value.to_owned())
    };
    let mut found: Vec<(String, String)> = text.lines().map(line).collect();
    let all = found.clone();
    let mut names = std::collections::BTreeSet::new();
    found.retain(|(name, _)| names.insert(name.clone()));
    assert!(!is_apart || found == all, "each variable is set once, by the job itself: {all:?}");
    found
}
