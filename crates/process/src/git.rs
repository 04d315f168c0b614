//! The git repository that a folder is in, and the one place that starts git.
//!
//! Questions ([`Repository::ask`]) run with an environment of their own, without the user's and the system's settings, without
//! hooks, file system monitors, replaced objects, grafts or the network. Whether the work tree is the commit is asked in a git
//! folder of our own ([`Repository::head`]), so that the repository's settings, attributes and index are not read at all. Whatever
//! writes or uses the network ([`Repository::command`]) has the user's settings.

mod error;
mod objects;
mod place;
mod remote;
mod revisions;
mod tree;

pub use error::GitError;
pub use objects::{BlobLimits, TreeFile};
pub use revisions::Commit;
pub use tree::Head;

use crate::command;
use holdpoint_model::limits::clean_text;
use place::Place;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Set by git for its hooks and for `git bisect run`, or by an attacker: they name another repository,
/// another index or other objects than those of the folder.
pub const INHERITED: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
];

/// Beats what the repository's settings say. Hooks and monitors are programs of theirs.
const SETTINGS: [&str; 4] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "core.pager=cat"];

/// The whole environment of a question, beside `PATH`. An empty list of protocols allows none.
const QUIET: [(&str, &str); 10] = [
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// A folder, and the work tree that it is in.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Where git is started.
    dir: PathBuf,
    /// Absent outside of a work tree: git says why.
    place: Option<Place>,
}

impl Repository {
    /// The repository around a folder, if any: whether there is one turns out with the first question.
    pub fn around(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), place: Place::find(dir) }
    }

    /// The root of the work tree that a folder is in.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        let around = Self::around(dir);
        let output = around.ask(&["rev-parse", "--git-dir"])?;
        match around.root() {
            Some(root) if output.status.success() => Ok(Self { dir: root.to_owned(), ..around }),
            _ => Err(GitError::NotARepository { dir: dir.to_owned(), detail: complaint(&output) }),
        }
    }

    /// The folder in which git is started.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The root of the work tree.
    pub fn root(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.root.as_path())
    }

    /// Asks about commits, names, settings and the index. None of these questions looks at files of the work tree.
    pub fn ask(&self, arguments: &[&str]) -> Result<Output, GitError> {
        output(self.question().args(arguments))
    }

    /// Asks what a healthy repository answers.
    pub fn answer(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        Ok(self.checked(action(arguments), self.ask(arguments)?)?.stdout)
    }

    /// The line that git answers, if it does.
    pub fn line(&self, arguments: &[&str]) -> Option<String> {
        let done = self.ask(arguments).ok().filter(|done| done.status.success())?;
        Some(text(&done.stdout)).filter(|line| !line.is_empty())
    }

    /// One of git's own files or folders, where this work tree has it.
    pub fn git_path(&self, name: &str) -> Result<PathBuf, GitError> {
        self.path(&["--git-path", name])
    }

    /// The folder of the repository's objects, branches and settings.
    pub fn common_dir(&self) -> Result<PathBuf, GitError> {
        self.path(&["--git-common-dir"])
    }

    fn path(&self, which: &[&str]) -> Result<PathBuf, GitError> {
        let path = self.answer(&[&["rev-parse", "--path-format=absolute"], which].concat())?;
        Ok(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"\n").unwrap_or(&path))))
    }

    /// Git with the user's settings, to check out, to write or to use the network: submodules may need a password or a key, files a
    /// filter (LFS). It stays in our process group: an SSH that asks for a passphrase needs the terminal.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut git = command("git");
        for name in INHERITED {
            git.env_remove(name);
        }
        // Its words are quoted beside ours; a password asked for on the terminal would wait for nobody.
        git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        with_settings(&mut git, &self.dir);
        git.args(arguments);
        git
    }

    /// Runs git with the user's settings, which must succeed.
    pub fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let output = output(&mut self.command(arguments))?;
        Ok(self.checked(action(arguments), output)?.stdout)
    }

    fn question(&self) -> Command {
        let mut git = question(&self.dir);
        if let Some(place) = &self.place {
            git.env("GIT_DIR", &place.git_dir).env("GIT_WORK_TREE", &place.root);
        }
        git
    }

    fn checked(&self, action: &str, output: Output) -> Result<Output, GitError> {
        if output.status.success() {
            return Ok(output);
        }
        Err(GitError::Failed {
            dir: self.place_named(),
            action: action.to_owned(),
            detail: complaint(&output),
        })
    }

    /// For people: `.` names nothing.
    fn place_named(&self) -> PathBuf {
        self.root().unwrap_or(&self.dir).to_owned()
    }
}

/// The subcommand, behind options of git's own.
fn action<'a>(arguments: &[&'a str]) -> &'a str {
    arguments.iter().find(|word| !word.starts_with('-')).unwrap_or(&"")
}

/// Git with nothing but our own settings, except for those of the repository.
fn question(dir: &Path) -> Command {
    let mut git = command("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(QUIET);
    with_settings(&mut git, dir);
    git
}

fn with_settings(git: &mut Command, dir: &Path) {
    git.args(["--no-optional-locks", "--no-pager", "-C"]).arg(dir);
    git.args(SETTINGS.iter().flat_map(|setting| ["-c", *setting])).stdin(Stdio::null());
}

/// Runs git to its end, however it ends.
pub fn output(git: &mut Command) -> Result<Output, GitError> {
    git.output().map_err(GitError::NotStarted)
}

/// The line in which git says why: the first fatal one, or else the last.
pub fn complaint(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines.clone().find_map(|line| line.strip_prefix("fatal: "));
    clean_text(fatal.or_else(|| lines.next_back()).unwrap_or("git does not say why"))
}

/// A line of git's, without its end.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn zero_separated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

fn paths(bytes: &[u8]) -> Vec<String> {
    zero_separated(bytes).map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}
