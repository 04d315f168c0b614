//! The workflows that `ci init` writes: templates and settings in, files out. Pure.
//!
//! A template holds `@@NAME@@` for a setting, and lines `#@ part NAME=VALUE …` where a part of `templates/parts`, or a
//! script of `templates/gitlab`, is inserted at the same depth. Settings that would not be plain text in YAML or in a shell are
//! refused.

use crate::guard::find_path_problem;
use std::collections::BTreeMap;

/// Actions, by the commit that the tag named when it was looked up. Dependabot reads and moves both.
const ACTIONS: &[(&str, &str)] = &[
    ("CHECKOUT", "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"),
    ("UPLOAD", "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"),
    ("DOWNLOAD", "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"),
];

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../templates/", $name))
    };
}

const GITHUB: &[(&str, &str)] = &[
    (".github/workflows/perf_cpu.yml", template!("github/perf_cpu.yml")),
    (".github/workflows/perf_gpu.yml", template!("github/perf_gpu.yml")),
    (".github/workflows/perf_command.yml", template!("github/perf_command.yml")),
    (".github/workflows/perf_report.yml", template!("github/perf_report.yml")),
    (".github/workflows/perf_trend_weekly.yml", template!("github/perf_trend_weekly.yml")),
];

const GITLAB: &[(&str, &str)] = &[(".gitlab/holdpoint.yml", template!("gitlab/holdpoint.yml"))];

const PARTS: &[(&str, &str)] = &[
    ("install", template!("parts/install.yml")),
    ("head", template!("parts/head.yml")),
    ("base", template!("parts/base.yml")),
    ("gate", template!("parts/gate.yml")),
    ("decide", template!("parts/decide.yml")),
    ("trend", template!("parts/trend.yml")),
    ("notify", template!("parts/notify.yml")),
    ("status", template!("parts/status.yml")),
    ("gitlab_gate", template!("gitlab/gate.yml")),
    ("gitlab_comment", template!("gitlab/comment.yml")),
    ("gitlab_promote", template!("gitlab/promote.yml")),
    ("gitlab_notify", template!("gitlab/notify.yml")),
];

/// Paths that are always measured: those that decide how to measure, and what is checked out.
const PATHS_ALWAYS: &[&str] =
    &[".holdpoint/**", ".github/workflows/perf_*", ".gitlab/holdpoint.yml", ".gitlab-ci.yml", ".gitmodules"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    GitHub,
    GitLab,
}

/// Whether inconclusive evidence fails the required check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInconclusive {
    Fail,
    Pass,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub forge: Forge,
    /// The command that wrote the files, for their first lines.
    pub command: String,
    pub suite: String,
    pub gpu_suite: String,
    /// Globs; a change outside them is not measured. Empty: every change is.
    pub paths: Vec<String>,
    /// The default branch, and others that are judged: pushes to them, and changes into them.
    pub branches: Vec<String>,
    /// Labels, or tags, of the runner with the GPU.
    pub runner: Vec<String>,
    /// Only pull requests with this label are measured on the GPU.
    pub label: Option<String>,
    /// The command that installs holdpoint on a runner.
    pub install: String,
    /// The command that builds the checkout before it is compared with a stored baseline.
    pub build: Option<String>,
    /// Prefix of the repository's variables.
    pub prefix: String,
    pub on_inconclusive: OnInconclusive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the root of the repository.
    pub path: &'static str,
    pub text: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingError {
    #[error("{name} {value:?} cannot stand in a workflow: {why}")]
    Unfit { name: &'static str, value: String, why: &'static str },
}

/// The files of a forge.
pub fn files(settings: &Settings) -> Result<Vec<File>, SettingError> {
    let values = values(settings)?;
    let templates = match settings.forge {
        Forge::GitHub => GITHUB,
        Forge::GitLab => GITLAB,
    };
    Ok(templates.iter().map(|(path, template)| File { path, text: render(template, &values) }).collect())
}

type Values = BTreeMap<String, String>;

fn values(settings: &Settings) -> Result<Values, SettingError> {
    let mut values: Values =
        ACTIONS.iter().map(|(name, action)| ((*name).to_owned(), (*action).to_owned())).collect();
    let mut set = |name: &str, value: String| values.insert(name.to_owned(), value);
    let header = format!(
        "# Written by: {}\n# Run that again with --check to see whether this is what it would write, with --force to write it anew.",
        one_line("--command", &settings.command)?
    );
    set("HEADER", header);
    set("CPU_SUITE", quoted(&file("--suite", &settings.suite)?));
    set("GPU_SUITE", quoted(&file("--gpu-suite", &settings.gpu_suite)?));
    let paths = |suite: &str| {
        if settings.paths.is_empty() {
            return Ok(quoted(""));
        }
        let always = PATHS_ALWAYS.iter().map(|path| (*path).to_owned()).chain([suite.to_owned()]);
        let given = settings.paths.iter().map(|path| glob("--path", path));
        let all: Vec<String> = given.chain(always.map(Ok)).collect::<Result<_, _>>()?;
        Ok(quoted(&all.join(",")))
    };
    set("CPU_PATHS", paths(&settings.suite)?);
    set("GPU_PATHS", paths(&settings.gpu_suite)?);
    let branches = settings.branches.iter().map(|name| branch("--branch", name));
    let branches = branches.collect::<Result<Vec<_>, _>>()?;
    set("BRANCHES", branches.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "));
    set("BRANCH_LIST", quoted(&branches.join(",")));
    set("INTO", quoted(&format!("into {}", branches.join(" or "))));
    let runner = settings.runner.iter().map(|label| Ok(quoted(&some("--runner", label)?)));
    set("RUNNER", runner.collect::<Result<Vec<_>, _>>()?.join(", "));
    // A label's name has no space at its ends.
    set("LABEL", quoted(&one_line("--label", settings.label.as_deref().unwrap_or_default().trim())?));
    let types = "opened, synchronize, reopened, edited";
    let types =
        if settings.label.is_some() { format!("{types}, labeled, unlabeled") } else { types.to_owned() };
    set("PULL_TYPES", types);
    set("INSTALL", quoted(&some("--install", &settings.install)?));
    set("BUILD", quoted(&one_line("--build", settings.build.as_deref().unwrap_or_default())?));
    set("PREFIX", variable("--prefix", &settings.prefix)?);
    let is_pass = settings.on_inconclusive == OnInconclusive::Pass;
    set("INCONCLUSIVE", if is_pass { "0" } else { "1" }.to_owned());
    set("INCONCLUSIVE_STATE", if is_pass { "success" } else { "failure" }.to_owned());
    Ok(values)
}

fn render(template: &str, values: &Values) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let Some(part) = rest.strip_prefix("#@ ") else {
            push(&mut text, "", line, values);
            continue;
        };
        let (body, values) = part_of(part, values);
        for line in body.lines() {
            push(&mut text, indent, line, &values);
        }
    }
    text
}

/// A line with its settings filled in; a line that is an absent setting alone is left out.
fn push(text: &mut String, indent: &str, line: &str, values: &Values) {
    if line.trim() == "@@IF@@" && !values.contains_key("IF") {
        return;
    }
    let mut line = line.to_owned();
    for (name, value) in values {
        line = line.replace(&format!("@@{name}@@"), value);
    }
    let indent = if line.is_empty() { "" } else { indent };
    text.push_str(&format!("{indent}{line}\n"));
}

/// The part that a line names, and the settings with the line's own beside them.
fn part_of(line: &str, values: &Values) -> (&'static str, Values) {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let body = PARTS.iter().find(|(part, _)| *part == name).map_or("", |(_, body)| *body);
    let mut own = values.clone();
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        let value = match name {
            "IF" => format!("  if: {value} == 'true'"),
            "SUITE" => values.get(value).cloned().unwrap_or_default(),
            _ => value.to_owned(),
        };
        own.insert(name.to_owned(), value);
    }
    (body, own)
}

/// A YAML string that means the text itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn one_line(name: &'static str, value: &str) -> Result<String, SettingError> {
    let unfit = |why| Err(SettingError::Unfit { name, value: value.to_owned(), why });
    match value {
        _ if value.chars().any(char::is_control) => unfit("it has a line break or another control character"),
        _ if value.contains("${{") => unfit("${{ begins an expression of the forge"),
        _ if value.contains("@@") => unfit("@@ is what settings are filled in by"),
        _ => Ok(value.to_owned()),
    }
}

/// A line that is not empty.
fn some(name: &'static str, value: &str) -> Result<String, SettingError> {
    match value.trim() {
        "" => Err(SettingError::Unfit { name, value: value.to_owned(), why: "it is empty" }),
        value => one_line(name, value),
    }
}

/// A file inside the repository.
fn file(name: &'static str, value: &str) -> Result<String, SettingError> {
    let unfit = |why| Err(SettingError::Unfit { name, value: value.to_owned(), why });
    match value {
        "" => unfit("a file of the repository is wanted"),
        _ if value.starts_with('/') || value.split('/').any(|part| part == "..") => {
            unfit("it must lie in the repository, and be given from its root")
        }
        _ if value.contains(',') => unfit("a comma separates paths"),
        _ if find_path_problem(value).is_some() => unfit(find_path_problem(value).unwrap_or_default()),
        _ => one_line(name, value),
    }
}

fn glob(name: &'static str, value: &str) -> Result<String, SettingError> {
    let unfit = |why| Err(SettingError::Unfit { name, value: value.to_owned(), why });
    match value {
        "" => unfit("a glob is wanted, such as src/**"),
        _ if value.contains(',') => unfit("a comma separates paths; give --path again"),
        _ if value.starts_with([':', '!', '-', '/']) => {
            unfit("globs begin with a name or a star, at the repository's root")
        }
        _ if find_path_problem(value).is_some() => unfit(find_path_problem(value).unwrap_or_default()),
        _ => one_line(name, value),
    }
}

/// A branch's name, which a trigger takes for a pattern.
fn branch(name: &'static str, value: &str) -> Result<String, SettingError> {
    let unfit = |why| Err(SettingError::Unfit { name, value: value.to_owned(), why });
    let value = some(name, value)?;
    let is_odd = |c: char| c.is_whitespace() || "*?[]!+\\^~:,".contains(c);
    match value.as_str() {
        _ if value.contains(is_odd) => {
            unfit("it is the name of one branch, not a pattern; give --branch again for another")
        }
        _ if value.starts_with(['-', '/']) || value.ends_with('/') || value.contains("..") => {
            unfit("git has no such branch")
        }
        _ => Ok(value),
    }
}

fn variable(name: &'static str, value: &str) -> Result<String, SettingError> {
    let is_usable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if value.starts_with(|c: char| c.is_ascii_uppercase()) && value.chars().all(is_usable) {
        return Ok(value.to_owned());
    }
    let why = "variables are capital letters, digits and _";
    Err(SettingError::Unfit { name, value: value.to_owned(), why })
}
