//! A repository whose revisions say for themselves how quick they are: nothing is timed, so every verdict is certain.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The code of a stranger, which tells how quick it is.
const WORKER: &str = include_str!("repository/worker.sh");

const SUITE: &str = include_str!("repository/perf.toml");

/// What git says.
#[track_caller]
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The repository that a forge has.
pub struct Origin {
    dir: TempDir,
}

impl Origin {
    /// With one commit on `main`, which takes 2000 ns.
    pub fn new() -> Self {
        let origin = Self { dir: tempfile::tempdir().unwrap() };
        git(origin.path(), &["init", "--quiet", "--initial-branch", "main"]);
        git(origin.path(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        for (name, text) in
            [("worker.sh", WORKER), ("perf.toml", SUITE), ("perf-gpu.toml", SUITE), ("README", "x")]
        {
            fs::write(origin.path().join(name), text).unwrap();
        }
        // A program that some machines lack, and that would speak for whoever calls it here.
        let program = origin.path().join("nvidia-smi");
        fs::write(
            &program,
            "#!/bin/sh\nfor i in $(seq 300); do echo code=0 >> \"$GITHUB_OUTPUT\"; sleep 0.1; done > /dev/null 2>&1 &\n",
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        origin.commit("2000");
        origin
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The next commit, which takes this time, and differs from the one before in any case.
    pub fn commit(&self, time: &str) -> String {
        let log = Command::new("git").current_dir(self.path()).args(["log", "--format=%H"]).output().unwrap();
        fs::write(self.path().join("change"), log.stdout).unwrap();
        self.commit_file("time", time)
    }

    /// The next commit, with a file changed.
    pub fn commit_file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        git(self.path(), &["add", "--all"]);
        git(self.path(), &["commit", "--quiet", "--allow-empty", "--message", name]);
        self.head()
    }

    pub fn head(&self) -> String {
        git(self.path(), &["rev-parse", "HEAD"])
    }

    /// A commit that no branch of this repository has, only the pull request's reference.
    pub fn commit_in_fork(&self, time: &str) -> String {
        git(self.path(), &["switch", "--quiet", "--detach"]);
        let head = self.commit(time);
        git(self.path(), &["update-ref", "refs/pull/42/head", &head]);
        git(self.path(), &["switch", "--quiet", "main"]);
        head
    }

    /// On a new branch from here.
    pub fn branch(&self, name: &str) {
        git(self.path(), &["switch", "--quiet", "--create", name]);
    }

    /// What `actions/checkout` does without credentials.
    pub fn check_out(&self, path: &Path, reference: &str, is_whole: bool) -> bool {
        fs::create_dir_all(path).unwrap();
        git(path, &["init", "--quiet", "--initial-branch", "x"]);
        let url = format!("file://{}", self.path().display());
        git(path, &["remote", "add", "origin", &url]);
        let depth: &[&str] = if is_whole { &["+refs/heads/*:refs/remotes/origin/*"] } else { &["--depth=1"] };
        git(path, &[&["fetch", "--quiet", "origin", reference], depth].concat());
        git(path, &["checkout", "--quiet", "--detach", reference]);
        true
    }

    /// Keeps this machine's baseline of the suite in the repository.
    pub fn record_baseline(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command.current_dir(self.path()).args([
            "baseline",
            "record",
            "--quiet",
            "--runs",
            "3",
            "--suite",
            "perf.toml",
        ]);
        assert!(command.status().unwrap().success());
        self.commit_baselines_of_any_load()
    }

    /// How busy the machine is while tests run is no part of them: baselines are of one that was busy, and of one that was idle.
    pub fn commit_baselines_of_any_load(&self) -> String {
        let baselines = fs::read_dir(self.path().join(".holdpoint/baselines")).unwrap();
        for path in baselines.map(|entry| entry.unwrap().path()) {
            let mut baseline: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            for (run, others_cpu) in baseline["runs"].as_array_mut().unwrap().iter_mut().zip([1.0, 0.5, 0.0])
            {
                run["others_cpu"] = others_cpu.into();
            }
            fs::write(&path, baseline.to_string()).unwrap();
        }
        self.commit_file("README", "with a baseline")
    }
}

/// An event of the fixtures, with hashes of this repository in place of its own.
pub fn event(name: &str, head: &str, base: &str) -> Value {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../ci/tests/events", &format!("{name}.json")].iter().collect();
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("6113728f27ae82c7b1a177c8d03f9e96e0adf246", head);
    let text = text.replace("9f2c1d7e5b8a4036c2f1e0d9b8a7c6d5e4f3a2b1", head);
    serde_json::from_str(&text.replace("ec26c3e57ca3a959ca5aad62de7213c562f8c821", base)).unwrap()
}
