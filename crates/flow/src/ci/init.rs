//! `holdpoint ci init`: writes the workflows into a repository.

use super::CiResult;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use holdpoint_ci::workflows::{File, Forge, Part, Settings, files};
use holdpoint_model::ExitCode;
use holdpoint_process::git::Repository;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Workflows to be written into a repository.
#[derive(Clone, Debug)]
pub struct WorkflowsRequest {
    /// The root of the repository.
    pub dir: PathBuf,
    pub forge: Forge,
    /// Overwrites files that differ.
    pub force: bool,
    /// Writes the files even if the folder is in no git repository.
    pub no_repository: bool,
    /// Writes nothing, and fails unless the files are up to date.
    pub check: bool,
    pub suite: String,
    /// Branches to gate; the default one, if empty.
    pub branch: Vec<String>,
    /// The command that installs holdpoint on a runner, or else a release archive and its hash.
    pub install: Option<String>,
    pub install_url: Option<String>,
    pub install_sha256: Option<String>,
    /// Also gates on a machine with a GPU.
    pub gpu: bool,
    pub gpu_suite: String,
    /// Labels of the runner with the GPU.
    pub runner: Vec<String>,
    /// The label of pull requests that may use it.
    pub label: Option<String>,
    pub weekly: bool,
    pub promote: bool,
    pub notify: bool,
    pub history: bool,
    pub forks: bool,
}

/// How a file stands to what would be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Missing,
    Differs,
    Same,
}

/// The files of a repository's workflows.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Files {
    found: Vec<ExistingFile>,
    /// Words for files that are missing, differ, or are the same.
    #[serde(skip)]
    words: [&'static str; 3],
}

impl Files {
    pub fn text(&self) -> String {
        let line = |file: &ExistingFile| format!("{:<15}  {}\n", self.words[file.state as usize], file.path);
        self.found.iter().map(line).collect()
    }
}

/// A file and how it stood before anything was written.
#[derive(Debug, Serialize)]
struct ExistingFile {
    path: &'static str,
    state: State,
    #[serde(skip)]
    text: String,
}

pub fn run(request: &WorkflowsRequest) -> Result<CommandResult<CiResult>, FlowError> {
    refuse_folder(request)?;
    refuse_part(request)?;
    let files = files(&settings(request)?).map_err(|error| FlowError::Input(error.to_string()))?;
    refuse_missing_suite(request)?;
    let found: Vec<ExistingFile> =
        files.into_iter().map(|file| look(&request.dir, file)).collect::<Result<_, _>>()?;
    if request.check {
        let all_same = found.iter().all(|file| file.state == State::Same);
        let exit = if all_same { ExitCode::Ok } else { ExitCode::Failed };
        let words = ["missing", "differs", "as it should be"];
        return Ok(CommandResult::new(CiResult::Files(Files { found, words }), exit));
    }
    if !request.force && found.iter().any(|file| file.state == State::Differs) {
        return Err(FlowError::Input(format!(
            "nothing was written: {} there already, with other content; look at what is in it, then use --force to write over it",
            is_there(&found)
        )));
    }
    for file in found.iter().filter(|file| file.state != State::Same) {
        holdpoint_store::write_text(&request.dir.join(file.path), &file.text)?;
    }
    let words = ["written", "written over", "as it was"];
    let mut done = CommandResult::new(CiResult::Files(Files { found, words }), ExitCode::Ok);
    if request.forge == Forge::GitHub && request.gpu {
        done = done.with_note(
            "next, before the runner with the GPU is there: in a public repository set Settings > Actions > General > \"Require \
             approval for all external contributors\", or give the runner to the default branch's workflows only \
             (docs/self-hosted-runner.md); a fork's own workflow file can name the runner, and only that stops it",
        );
    }
    let gpu = match (request.gpu, request.forge) {
        (false, _) => "",
        (true, Forge::GitHub) => {
            ", and gpu-perf-regression or, where forks are welcome, the check holdpoint/gpu"
        }
        (true, Forge::GitLab) => " and gpu-perf-regression",
    };
    Ok(done.with_note(format!(
        "next: commit them, let somebody who owns the repository review .github or .gitlab with every change (CODEOWNERS), \
         and make the check perf-regression required{gpu} (docs/ci.md)"
    )))
}

/// Parts that one forge cannot have.
fn refuse_part(request: &WorkflowsRequest) -> Result<(), FlowError> {
    if request.forge == Forge::GitLab && request.forks {
        return Err(FlowError::Input(
            "--forks is for GitHub: on GitLab a fork's merge request runs its pipeline in the fork, which the project's jobs do \
             not see; a pipeline that a maintainer starts for its commit comments on it (docs/ci-gitlab.md)"
                .to_owned(),
        ));
    }
    Ok(())
}

/// A gate without a suite would fail on every change.
fn refuse_missing_suite(request: &WorkflowsRequest) -> Result<(), FlowError> {
    let gpu = request.gpu.then_some(&request.gpu_suite);
    let Some(suite) =
        std::iter::once(&request.suite).chain(gpu).find(|suite| !request.dir.join(suite).is_file())
    else {
        return Ok(());
    };
    Err(FlowError::Input(format!(
        "there is no {suite} in {}: \"holdpoint init\" writes a first suite; one with another name is given with {}",
        request.dir.display(),
        if Some(suite) == gpu { "--gpu-suite" } else { "--suite" }
    )))
}

/// A slip in a path makes no folder, and no workflows where no forge will find them.
fn refuse_folder(request: &WorkflowsRequest) -> Result<(), FlowError> {
    let dir = &request.dir;
    let refused = |what: &str| Err(FlowError::File { path: dir.clone(), what: what.to_owned() });
    if !dir.is_dir() {
        return refused("no such folder; --dir is the root of your repository");
    }
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    let whole = whole.canonicalize().unwrap_or(whole);
    if request.check || request.no_repository || whole.ancestors().any(|folder| folder.join(".git").exists())
    {
        return Ok(());
    }
    refused("it is in no git repository; run \"git init\" first, or give --no-repository")
}

fn is_there(found: &[ExistingFile]) -> String {
    let names: Vec<&str> =
        found.iter().filter(|file| file.state == State::Differs).map(|file| file.path).collect();
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

fn look(dir: &Path, file: File) -> Result<ExistingFile, FlowError> {
    let path = dir.join(file.path);
    let (state, file) = match std::fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            (if file.is(&text) { State::Same } else { State::Differs }, file.keeping(&text))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (State::Missing, file),
        Err(error) => return Err(FlowError::File { path, what: error.to_string() }),
    };
    Ok(ExistingFile { path: file.path, state, text: file.text })
}

fn settings(request: &WorkflowsRequest) -> Result<Settings, FlowError> {
    let asked = [
        (request.gpu, Part::Gpu),
        (request.weekly, Part::Weekly),
        (request.promote, Part::Promote),
        (request.notify, Part::Notify),
        (request.history, Part::History),
        (request.forks, Part::Forks),
    ];
    let branches = match request.branch.as_slice() {
        [] => vec![Repository::around(&request.dir).default_branch()],
        given => given.to_vec(),
    };
    Ok(Settings {
        forge: request.forge,
        command: command(request),
        suite: request.suite.clone(),
        gpu_suite: request.gpu_suite.clone(),
        branches,
        parts: asked.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, part)| part).collect(),
        runner: request.runner.clone(),
        label: request.label.clone().filter(|label| !label.trim().is_empty()),
        install: install(request)?,
    })
}

/// The command that installs holdpoint. There is no default: no release is published, and a tag or a name could come to mean
/// another program.
fn install(request: &WorkflowsRequest) -> Result<String, FlowError> {
    let wrong = |what: String| Err(FlowError::Input(what));
    let (url, sha256) = match (&request.install, &request.install_url, &request.install_sha256) {
        (Some(command), ..) => return Ok(command.clone()),
        (None, Some(url), Some(sha256)) => (url, sha256.to_ascii_lowercase()),
        _ => {
            return wrong(
                "how do runners get holdpoint? There is no default, because no release is published yet: give --install-url and \
                 --install-sha256 of a release archive (\"cargo xtask dist\" makes one), or --install and a command \
                 (docs/install.md, \"On a runner\")"
                    .to_owned(),
            );
        }
    };
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return wrong(format!("--install-sha256 {sha256:?} is no SHA-256: 64 hexadecimal digits are wanted"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!&()*+,;=%".contains(c);
    if !["https://", "file:///"].iter().any(|start| url.starts_with(start)) || !url.chars().all(is_plain) {
        return wrong(format!("--install-url {url:?} is no address that begins with https:// or file:///"));
    }
    // Into a folder of the job's own, from an empty one: what an earlier job has left, or the checkout, has no say in it.
    let fetch = format!(
        "mkdir holdpoint && curl -fsSL --retry 3 -o holdpoint/archive '{url}' && echo '{sha256}  holdpoint/archive' | \
         sha256sum --check && tar -xzf holdpoint/archive -C holdpoint --strip-components 1"
    );
    Ok(match request.forge {
        Forge::GitHub => format!("{fetch} && echo \"$PWD/holdpoint\" >> \"$GITHUB_PATH\""),
        Forge::GitLab => format!("{fetch} && export PATH=\"$PWD/holdpoint:$PATH\""),
    })
}

/// The command that writes these files again: what differs from the defaults, in one order.
fn command(request: &WorkflowsRequest) -> String {
    let mut words = vec!["holdpoint ci init".to_owned()];
    let mut add = |flag: &str, value: &str, default: &str| {
        if value != default {
            words.push(format!("--{flag} {}", shell_word(value)));
        }
    };
    add("forge", if request.forge == Forge::GitLab { "gitlab" } else { "github" }, "github");
    add("suite", &request.suite, "perf.toml");
    for branch in &request.branch {
        add("branch", branch, "");
    }
    add("install", request.install.as_deref().unwrap_or_default(), "");
    add("install-url", request.install_url.as_deref().unwrap_or_default(), "");
    add("install-sha256", request.install_sha256.as_deref().unwrap_or_default(), "");
    let mut flag = |flag: &str, is_set: bool| {
        if is_set {
            words.push(format!("--{flag}"));
        }
    };
    flag("gpu", request.gpu);
    flag("weekly", request.weekly);
    flag("promote", request.promote);
    flag("notify", request.notify);
    flag("history", request.history);
    flag("forks", request.forks);
    let mut add = |flag: &str, value: &str, default: &str| {
        if request.gpu && value != default {
            words.push(format!("--{flag} {}", shell_word(value)));
        }
    };
    add("gpu-suite", &request.gpu_suite, "perf-gpu.toml");
    add("runner", &request.runner.join(","), "self-hosted,linux,x64,gpu");
    add("label", request.label.as_deref().unwrap_or_default(), "");
    words.join(" ")
}

/// A word as a shell reads it back.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
