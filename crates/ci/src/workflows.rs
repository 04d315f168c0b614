//! The workflows that `ci init` writes: templates and settings in, files out. Pure.
//!
//! A template holds `@@NAME@@` for a setting, and lines from `#@if NAME …` to `#@end` that are written where all of these parts are asked
//! for. Settings that would not be plain text in YAML or in a shell are refused. Lines between [`YOURS`] and [`END`] are the
//! maintainer's: they may differ, and are kept.

use holdpoint_model::pattern::find_glob_problem;
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

/// Files of GitHub, and the part that asks for each.
const GITHUB: &[(&str, Option<Part>, &str)] = &[
    (".github/workflows/perf.yml", None, template!("github/perf.yml")),
    (".github/workflows/perf-gpu.yml", Some(Part::Gpu), template!("github/perf-gpu.yml")),
    (".github/workflows/perf-weekly.yml", Some(Part::Weekly), template!("github/perf-weekly.yml")),
    (".github/workflows/perf-promote.yml", Some(Part::Promote), template!("github/perf-promote.yml")),
    (".github/workflows/perf-notify.yml", Some(Part::Notify), template!("github/perf-notify.yml")),
    (".github/workflows/perf-history.yml", Some(Part::History), template!("github/perf-history.yml")),
    (".github/workflows/perf-forks.yml", Some(Part::Forks), template!("github/perf-forks.yml")),
];

const GITLAB: &[(&str, Option<Part>, &str)] =
    &[(".gitlab/holdpoint.yml", None, template!("gitlab/holdpoint.yml"))];

/// Begins lines that the maintainer may edit.
pub(crate) const YOURS: &str = "# holdpoint: yours";
/// Ends them.
pub const END: &str = "# holdpoint: end";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    GitHub,
    GitLab,
}

/// A part that is written only where it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The gate on a GPU machine.
    Gpu,
    /// A point of the trend every week.
    Weekly,
    /// Proposals of new baselines.
    Promote,
    /// Notifications.
    Notify,
    /// A history in a ref of the repository.
    History,
    /// Comments on pull requests of forks; on GitHub.
    Forks,
}

impl Part {
    const ALL: [(&'static str, Self); 6] = [
        ("gpu", Self::Gpu),
        ("weekly", Self::Weekly),
        ("promote", Self::Promote),
        ("notify", Self::Notify),
        ("history", Self::History),
        ("forks", Self::Forks),
    ];
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub forge: Forge,
    /// The command that wrote the files, for their first lines.
    pub command: String,
    pub suite: String,
    pub gpu_suite: String,
    /// The default branch, and others that are judged: pushes to them, and changes into them.
    pub branches: Vec<String>,
    pub parts: Vec<Part>,
    /// Labels, or tags, of the runner with the GPU.
    pub runner: Vec<String>,
    /// Only pull requests with this label are measured on the GPU.
    pub label: Option<String>,
    /// The command that installs holdpoint on a runner.
    pub install: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the root of the repository.
    pub path: &'static str,
    pub text: String,
}

impl File {
    /// Whether a text is this file, apart from the lines that are the maintainer's.
    pub fn is(&self, text: &str) -> bool {
        split(&self.text).0 == split(text).0
    }

    /// This file with the maintainer's lines of a text, where it has the same places for them.
    pub fn keeping(self, text: &str) -> Self {
        let (own, _) = split(&self.text);
        let (theirs, yours) = split(text);
        let places = |lines: &[&str]| lines.iter().filter(|line| is_marker(line, YOURS)).count();
        if places(&own) != places(&theirs) || places(&own) != yours.len() {
            return self;
        }
        let mut yours = yours.into_iter();
        let mut out = String::new();
        for line in own {
            out += &format!("{line}\n");
            if is_marker(line, YOURS) {
                yours.next().unwrap_or_default().iter().for_each(|line| out += &format!("{line}\n"));
            }
        }
        Self { text: out, ..self }
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.trim_start().starts_with(marker)
}

/// The lines of a file that are ours, and those of each place that is the maintainer's.
fn split(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let (mut ours, mut yours) = (Vec::new(), Vec::new());
    let mut is_open = false;
    for line in text.lines() {
        match (is_open, yours.last_mut()) {
            (true, Some(place)) if !is_marker(line, END) => Vec::push(place, line),
            _ => {
                ours.push(line);
                is_open = is_marker(line, YOURS);
                if is_open {
                    yours.push(Vec::new());
                }
            }
        }
    }
    (ours, yours)
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
    let is_wanted = |part: &Option<Part>| part.is_none_or(|part| settings.parts.contains(&part));
    let wanted = templates.iter().filter(|(_, part, _)| is_wanted(part));
    Ok(wanted
        .map(|(path, _, template)| File { path, text: render(template, &values, &settings.parts) })
        .collect())
}

type Values = BTreeMap<&'static str, String>;

fn values(settings: &Settings) -> Result<Values, SettingError> {
    let mut values: Values = ACTIONS.iter().map(|(name, action)| (*name, (*action).to_owned())).collect();
    let header = format!(
        "# Written by: {}\n# The same command updates it with --force and verifies it with --check; only lines from \"yours\" to \"end\" are yours.",
        one_line("--command", &settings.command)?
    );
    values.insert("HEADER", header);
    values.insert("CPU_SUITE", file("--suite", &settings.suite)?);
    values.insert("GPU_SUITE", file("--gpu-suite", &settings.gpu_suite)?);
    let branches = settings.branches.iter().map(|name| branch("--branch", name));
    let branches = branches.collect::<Result<Vec<_>, _>>()?;
    values.insert("BRANCHES", branches.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "));
    values.insert("BRANCH_LIST", quoted(&branches.join(",")));
    let runner = settings.runner.iter().map(|label| Ok(quoted(&some("--runner", label)?)));
    values.insert("RUNNER", runner.collect::<Result<Vec<_>, _>>()?.join(", "));
    // A label's name has no space at its ends.
    values
        .insert("LABEL", quoted(&one_line("--label", settings.label.as_deref().unwrap_or_default().trim())?));
    let types = "opened, synchronize, reopened, edited";
    let types =
        if settings.label.is_some() { format!("{types}, labeled, unlabeled") } else { types.to_owned() };
    values.insert("PULL_TYPES", types);
    values.insert("INSTALL", quoted(&some("--install", &settings.install)?));
    let others = [(Part::Gpu, "perf-gpu"), (Part::Weekly, "perf-weekly")];
    let others = others.iter().filter(|(part, _)| settings.parts.contains(part)).map(|(_, name)| *name);
    values.insert("WORKFLOWS", std::iter::once("perf").chain(others).collect::<Vec<_>>().join(", "));
    Ok(values)
}

fn render(template: &str, values: &Values, parts: &[Part]) -> String {
    let mut text = String::new();
    let mut is_written = true;
    for line in template.lines() {
        if let Some(names) = line.strip_prefix("#@if ") {
            let is_asked =
                |name: &str| Part::ALL.iter().any(|(known, part)| *known == name && parts.contains(part));
            is_written = names.split(' ').all(is_asked);
        } else if line == "#@end" {
            is_written = true;
        } else if is_written {
            let mut line = line.to_owned();
            for (name, value) in values {
                line = line.replace(&format!("@@{name}@@"), value);
            }
            text += &format!("{line}\n");
        }
    }
    text
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

/// A file inside the repository, by a name that is the same in YAML and in a shell.
fn file(name: &'static str, value: &str) -> Result<String, SettingError> {
    let unfit = |why| Err(SettingError::Unfit { name, value: value.to_owned(), why });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+@".contains(c);
    match value {
        "" => unfit("a file of the repository is wanted"),
        _ if value.starts_with('/') || value.split('/').any(|part| part == "..") => {
            unfit("it must lie in the repository, and be given from its root")
        }
        _ if find_glob_problem(value).is_some() => unfit(find_glob_problem(value).unwrap_or_default()),
        _ if !value.chars().all(is_plain) => unfit("its name may have letters, digits and _-./+@"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_the_maintainers_may_differ_and_are_kept() {
        let own =
            "a\n  # holdpoint: yours (x)\n  # holdpoint: end\nb\n# holdpoint: yours\nold\n# holdpoint: end\n";
        let file = File { path: "x", text: own.to_owned() };
        let edited = own.replace("(x)\n", "(x)\n  mine: 1\n").replace("old\n", "");
        assert!(file.is(own) && file.is(&edited));
        assert_eq!(file.clone().keeping(&edited).text, edited);
        // Neither a line elsewhere, nor an end that comes too soon.
        for other in ["a\n", &edited.replace('b', "c"), &own.replace("old", "# holdpoint: end\nold")] {
            assert!(!file.is(other), "{other}");
        }
        assert_eq!(file.clone().keeping("mine\n").text, own);
        assert!(!file.is(&own.replace("# holdpoint: end\nb", "b")));
    }
}
