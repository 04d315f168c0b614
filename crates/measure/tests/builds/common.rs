//! A repository with a history, and build commands that leave traces.

use holdpoint_measure::builds::{BuildError, Builds};
use holdpoint_model::suite::{BuildSpec, Reuse};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub struct Repo {
    temporary: TempDir,
}

impl Repo {
    /// An empty repository.
    pub fn empty() -> Self {
        let repo = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(repo.dir()).unwrap();
        repo.git(&["init", "--quiet", "-b", "main"]);
        repo
    }

    /// A repository whose commits say `0`, `1`, … in `src.txt`, and their hashes.
    pub fn with_commits(count: usize) -> (Self, Vec<String>) {
        let repo = Self::empty();
        let commits = (0..count).map(|n| repo.commit(&n.to_string())).collect();
        (repo, commits)
    }

    pub fn dir(&self) -> PathBuf {
        self.temporary.path().join("repo")
    }

    /// A file outside the repository, that no checkout touches.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.dir().join(name), text).unwrap();
    }

    /// Commits `text` as `src.txt`, with the same as its subject.
    pub fn commit(&self, text: &str) -> String {
        self.write("src.txt", text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.dir(), arguments)
    }

    pub fn builds(&self) -> Builds {
        Builds::open_with(&self.dir(), &self.cache()).unwrap()
    }

    pub fn cache(&self) -> PathBuf {
        self.dir().join(".holdpoint/builds")
    }

    /// Names in the cache that end so.
    pub fn cached(&self, suffix: &str) -> Vec<String> {
        let files = fs::read_dir(self.cache()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(suffix)).collect()
    }

    /// Copies `src.txt` to `built.txt`, and writes a line outside each time.
    pub fn counted_build(&self) -> BuildSpec {
        shell(&format!("cp src.txt built.txt && echo built >> '{}'", self.outside("count").display()))
    }

    pub fn builds_count(&self) -> usize {
        fs::read_to_string(self.outside("count")).unwrap_or_default().lines().count()
    }
}

/// Runs git as somebody without settings.
#[track_caller]
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A build by the shell, with all the time it could need.
pub fn shell(script: &str) -> BuildSpec {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    BuildSpec { command, timeout_s: 600.0, reuse: Reuse::default() }
}

/// An error is one line that names each of these.
#[track_caller]
pub fn says(error: &BuildError, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
}
