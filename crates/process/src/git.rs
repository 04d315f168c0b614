//! Asks git, in a way that neither the repository's settings nor this process's environment can turn into something else.
//!
//! Questions run with an environment of their own, without the user's and the system's settings, without hooks, file
//! system monitors, replaced objects, grafts or the network. Whether the work tree is the commit is asked in a git folder
//! of our own ([`head`]), so that the repository's settings, attributes and index are not read at all.

mod place;
mod tree;

pub use place::root;
pub use tree::{Head, head};

use crate::command;
use holdpoint_store::StoreError;
use place::locate;
use std::io;
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

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("cannot run git: {0}; install it, or check the PATH")]
    NotStarted(#[source] io::Error),
    #[error("git cannot tell what is checked out in {}: {detail}", root.display())]
    Refused { root: PathBuf, detail: String },
    #[error(transparent)]
    Temporary(#[from] StoreError),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Asks the repository that a folder is in. Only for questions about commits, names and the index: none of them looks at
/// files of the work tree.
pub fn ask(dir: &Path, arguments: &[&str]) -> io::Result<Output> {
    let mut git = question(dir);
    if let Some(place) = locate(dir) {
        git.env("GIT_DIR", place.git_dir).env("GIT_WORK_TREE", place.root);
    }
    git.args(arguments).output()
}

/// Git with nothing but our own settings, except for those of the repository.
fn question(dir: &Path) -> Command {
    let mut git = command("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(QUIET);
    with_settings(&mut git, dir);
    git
}

/// Git for checking out, with the user's settings: submodules may need a password or a key, files a filter (LFS). It stays in
/// our process group: an SSH that asks for a passphrase needs the terminal.
pub fn checkout_command(dir: &Path) -> Command {
    let mut git = command("git");
    for name in INHERITED {
        git.env_remove(name);
    }
    // Its words are quoted beside ours; a password asked for on the terminal would wait for nobody.
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
    with_settings(&mut git, dir);
    git
}

/// Git that shows a token to whoever asks for a password; it stands in no command and in no file.
pub fn checkout_command_with_token(dir: &Path, token: &str) -> Command {
    let helper =
        "credential.helper=!echo username=x-access-token; echo \"password=$HOLDPOINT_PUSH_SECRET\"; :";
    let mut git = checkout_command(dir);
    git.args(["-c", "credential.helper=", "-c", helper]).env("HOLDPOINT_PUSH_SECRET", token);
    git
}

fn with_settings(git: &mut Command, dir: &Path) {
    git.args(["--no-optional-locks", "--no-pager", "-C"]).arg(dir);
    git.args(SETTINGS.iter().flat_map(|setting| ["-c", *setting])).stdin(Stdio::null());
}

/// The line in which git says why: the first fatal one, or else the last.
pub fn complaint(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines.clone().find_map(|line| line.strip_prefix("fatal: "));
    fatal.or_else(|| lines.next_back()).unwrap_or("git does not say why").to_owned()
}

/// The branch that changes go to: the remote's default, else `main`, `master` or `trunk`, else the one that is checked out.
pub fn default_branch(dir: &Path) -> String {
    let known = default_branch_ref(dir).map(|name| name.strip_prefix(REMOTE).unwrap_or(&name).to_owned());
    known.or_else(|| current_branch(dir)).unwrap_or_else(|| "main".to_owned())
}

/// The branch that is checked out, if any is.
pub fn current_branch(dir: &Path) -> Option<String> {
    line_of(dir, &["symbolic-ref", "--quiet", "--short", "HEAD"])
}

/// The same as git takes it, where the repository has it: the remote's copy first, because the branch here may hold changes that
/// are not there yet.
pub fn default_branch_ref(dir: &Path) -> Option<String> {
    let is_there = |name: &String| {
        let place = if name.starts_with(REMOTE) { "remotes" } else { "heads" };
        line_of(dir, &["rev-parse", "--quiet", "--verify", &format!("refs/{place}/{name}")]).is_some()
    };
    let usual = ["main", "master", "trunk"].map(|name| [format!("{REMOTE}{name}"), name.to_owned()]);
    let named = line_of(dir, &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]);
    named.into_iter().chain(usual.into_iter().flatten()).find(is_there)
}

const REMOTE: &str = "origin/";

/// The line that git answers, if it does.
fn line_of(dir: &Path, arguments: &[&str]) -> Option<String> {
    let done = ask(dir, arguments).ok().filter(|done| done.status.success())?;
    let line = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    (!line.is_empty()).then_some(line)
}
