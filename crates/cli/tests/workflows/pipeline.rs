//! GitLab on this machine: rules, jobs in the order of their needs, scripts in the system's sh, dotenv reports and artifacts.
//! What the file does not use is a panic, not a guess.

use crate::actions::{copy, left_by};
use crate::repository::{Origin, git};
use crate::server::{Reply, Server};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

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
    /// Whether the machine has no namespaces to isolate anything in.
    pub no_namespaces: bool,
}

/// What came of a job.
#[derive(Debug, Default)]
pub struct Job {
    /// `success`, `warning`, `failure` or `skipped`.
    pub result: &'static str,
    /// What its scripts printed.
    pub log: String,
    /// Its home, with the checkout in `project`.
    pub home: PathBuf,
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
    /// Notes that were written: method, place and text.
    pub notes: Vec<[String; 3]>,
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
    let (server, notes) = gitlab(started.answers.clone());
    let mut given: Variables = Variables::new();
    for (name, variable) in file["variables"].as_object().into_iter().flatten() {
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
    let machine = Machine { dir: dir.path(), started, given, origin, api: &server.url };
    while !waiting.is_empty() {
        let is_ready = |job: &Keys| needs(job).iter().all(|(need, _)| !waiting.contains_key(need));
        let ready = waiting.iter().find(|(_, (job, _))| is_ready(job));
        let name = ready.expect("jobs need each other in no circle").0.clone();
        let (job, rule) = waiting.remove(&name).unwrap();
        let done = machine.job(&name, &job, &rule, &jobs);
        jobs.insert(name, done);
    }
    let notes = notes.lock().unwrap().clone();
    Ended { jobs, notes, _dir: dir }
}

type Notes = Arc<Mutex<Vec<[String; 3]>>>;

/// GitLab with merge requests and the notes of one.
fn gitlab([merge_requests, notes]: [Value; 2]) -> (Server, Notes) {
    let written = Notes::default();
    let kept = Arc::clone(&written);
    let server = Server::start(move |request, _| {
        if request.header("private-token") != Some("glpat-comment") {
            return Reply::json(401, json!({"message": "401 Unauthorized"}));
        }
        match (request.method.as_str(), request.path()) {
            ("GET", "/user") => Reply::json(200, json!({"id": 7})),
            ("GET", "/projects/41/merge_requests") => Reply::json(200, merge_requests.clone()),
            ("GET", path) if path.ends_with("/notes") => Reply::json(200, notes.clone()),
            (method @ ("POST" | "PUT"), path) => {
                let body = request.json()["body"].as_str().unwrap().to_owned();
                kept.lock().unwrap().push([method.to_owned(), path.to_owned(), body]);
                Reply::json(200, json!({"id": 12}))
            }
            _ => Reply::json(404, json!({"message": "404 Not Found"})),
        }
    });
    (server, written)
}

struct Machine<'a> {
    dir: &'a Path,
    started: &'a Started<'a>,
    given: Variables,
    origin: &'a Origin,
    /// Where GitLab's API is.
    api: &'a str,
}

impl Machine<'_> {
    fn job(&self, name: &str, job: &Keys, rule: &Keys, done: &BTreeMap<String, Job>) -> Job {
        let needed: Vec<&Job> = needs(job).iter().filter_map(|(need, _)| done.get(need)).collect();
        let is_good = |job: &&Job| ["success", "warning"].contains(&job.result);
        let is_due = match rule.get("when").and_then(Value::as_str) {
            None => needed.iter().all(is_good),
            Some("always") => true,
            Some("on_failure") => needed.iter().any(|job| job.result == "failure"),
            Some(other) => panic!("{other}: no such time here"),
        };
        if !is_due {
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
        // The strongest last: a job's own, then the project's and the pipeline's.
        let mut variables = Variables::new();
        let expanded = |value: &Value| match value.as_str() {
            Some(text) => text.replace("$CI_PROJECT_DIR", &project.display().to_string()),
            None => {
                assert_eq!(value["expand"], false);
                value["value"].as_str().unwrap().to_owned()
            }
        };
        variables.extend(own.iter().map(|(name, value)| ((*name).clone(), expanded(value))));
        variables.extend(self.given.clone());
        let environment = job.get("environment").and_then(|environment| environment["name"].as_str());
        for (scope, name, value) in &self.started.scoped {
            if Some(*scope) == environment {
                variables.insert((*name).to_owned(), (*value).to_owned());
            }
        }
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
        if is_apart && home.join("project/holdpoint-artifacts/exit-code").exists() {
            let code = fs::read_to_string(home.join("project/holdpoint-artifacts/exit-code")).unwrap();
            assert_eq!(code.lines().count(), 1, "it is written once, by the job itself: {code}");
        }
        Job { result, log, home }
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
        let mut sh = if self.started.no_namespaces { without_namespaces() } else { Command::new("sh") };
        sh.args(["-e", "-c", &script.join("\n")]).current_dir(&project).env_clear();
        sh.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).env("HOME", home);
        sh.env("BIN", &bin).env("BUILT", env!("CARGO_BIN_EXE_holdpoint")).env("CI_PROJECT_DIR", &project);
        sh.env("CI", "true").env("GITLAB_CI", "true");
        sh.env("CI_API_V4_URL", self.api).env("CI_JOB_TOKEN", "glcbt-job");
        sh.env("CI_SERVER_HOST", "gitlab.example.org").env("GITLAB_USER_LOGIN", "mona");
        sh.env("CI_PROJECT_URL", "https://gitlab.example.org/octo-org/kernels");
        sh.env("CI_PIPELINE_URL", "https://gitlab.example.org/octo-org/kernels/-/pipelines/77");
        // There is no network: the forge is a folder.
        sh.env("GIT_CONFIG_COUNT", "2");
        for (number, user) in ["holdpoint@", ""].iter().enumerate() {
            let forge = format!("https://{user}gitlab.example.org/octo-org/kernels.git");
            sh.env(format!("GIT_CONFIG_VALUE_{number}"), forge);
            let folder = format!("url.file://{}.insteadOf", self.origin.path().display());
            sh.env(format!("GIT_CONFIG_KEY_{number}"), folder);
        }
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

/// A shell on a machine that lets nobody make a namespace of processes. All users are there, as they are for root.
fn without_namespaces() -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", NO_NAMESPACES, "sh"]);
    command
}

/// Makes a namespace of users with every user in it, forbids namespaces of processes there, and goes on as the command given.
const NO_NAMESPACES: &str = r#"
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
inside = os.fork()
if inside == 0:
    assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.setgid(0)
    os.setuid(0)
    open("/proc/sys/user/max_pid_namespaces", "w").write("0")
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(ready[0], 1)
for kind in ("uid_map", "gid_map"):
    open(f"/proc/{inside}/{kind}", "w").write("0 0 65536")
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1]))
"#;

/// Whether this machine can be made one without namespaces.
pub fn can_be_without_namespaces() -> bool {
    without_namespaces()
        .args(["-c", "! unshare --pid --fork true"])
        .output()
        .is_ok_and(|done| done.status.success())
}
