//! Two command lines as sides.

use super::{PlannedSides, labelled};
use crate::error::FlowError;
use holdpoint_model::{SCHEMA_VERSION, Side, Suite};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Two command lines, and what they need beside them.
#[derive(Clone, Debug, Default)]
pub struct CommandPair {
    pub base: String,
    pub head: String,
    /// Names to show for them.
    pub names: Option<[String; 2]>,
    /// Run once before each side is measured.
    pub setup: Option<String>,
    /// Run before each call, untimed.
    pub prepare: Option<String>,
    /// The file that each call reads.
    pub stdin: Option<String>,
    pub base_dir: Option<PathBuf>,
    pub head_dir: Option<PathBuf>,
}

/// The sides of a pair of commands.
pub(super) fn plan(given: &CommandPair) -> Result<PlannedSides, FlowError> {
    let (base, head) = (&given.base, &given.head);
    let suite = |text, dir: &Option<PathBuf>| command_suite(text, dir.as_deref(), given);
    let suites = [suite(base, &given.base_dir)?, suite(head, &given.head_dir)?];
    let folder = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.display().to_string());
    let side = |text: &str, at: usize, flags: &[(&str, Option<String>)]| {
        let name = given.names.as_ref().map(|names| names[at].clone());
        let flags = flags.iter().cloned().chain([("-n", name.clone())]);
        let flags = flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?])).collect();
        Side { name, flags, ..labelled(text) }
    };
    let of_base = [
        ("--setup", given.setup.clone()),
        ("--prepare", given.prepare.clone()),
        ("--stdin", given.stdin.clone()),
        ("--base-dir", folder(&given.base_dir)),
    ];
    let of_head = [("--head-dir", folder(&given.head_dir))];
    Ok(PlannedSides::suites(suites, [side(base, 0, &of_base), side(head, 1, &of_head)]))
}

/// A suite of the one workload that a command line is.
fn command_suite(text: &str, dir: Option<&Path>, given: &CommandPair) -> Result<Suite, FlowError> {
    let line = CommandLine::parse(text);
    // What is run beside it has its environment.
    let beside = |text: &Option<String>| text.as_deref().map(|text| CommandLine::parse(text).into_words());
    let mut workload = json!({"name": "command", "command": line.words, "env": line.env});
    for (key, words) in [("setup", beside(&given.setup)), ("prepare", beside(&given.prepare))] {
        words.into_iter().for_each(|words| workload[key] = json!(words));
    }
    if let Some(file) = &given.stdin {
        // What was typed is relative to the current folder.
        let path = std::path::absolute(file).map_err(|error| FlowError::Input(format!("{file}: {error}")))?;
        workload["stdin"] = json!(path);
    }
    let suite = json!({"schema_version": SCHEMA_VERSION, "name": "command", "workload": [workload]});
    let suite =
        Suite::from_json(suite).map_err(|error| FlowError::Input(format!("command {text:?}: {error}")))?;
    match dir {
        Some(dir) if !dir.is_dir() => Err(FlowError::Input(format!("there is no folder {}", dir.display()))),
        _ => Ok(Suite { dir: dir.and_then(|dir| std::path::absolute(dir).ok()), ..suite }),
    }
}

/// A command line as a person types it.
#[derive(Debug, PartialEq)]
pub(super) struct CommandLine {
    env: BTreeMap<String, String>,
    /// Program and arguments.
    words: Vec<String>,
}

impl CommandLine {
    /// One that needs a shell gets one.
    pub(super) fn parse(text: &str) -> Self {
        let words = Some(text).filter(|text| !needs_shell(text)).and_then(shlex::split);
        let Some(words) = words else {
            return Self { env: BTreeMap::new(), words: ["sh", "-c", text].map(str::to_owned).to_vec() };
        };
        let mut words = words.into_iter().peekable();
        let mut env = BTreeMap::new();
        while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
            env.insert(name.to_owned(), value.to_owned());
            words.next();
        }
        Self { env, words: words.collect() }
    }

    /// For where only words will do.
    pub(super) fn into_words(self) -> Vec<String> {
        if self.env.is_empty() {
            return self.words;
        }
        let set = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        std::iter::once("env".to_owned()).chain(set).chain(self.words).collect()
    }
}

/// Whether a command line has more than words and quotes.
fn needs_shell(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || " /._-+=,:@%^".contains(c);
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some('"') if "$`\\".contains(c) => return true,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if is_plain(c) => {}
            None => return true,
        }
    }
    false
}

/// `NAME=value` before a command, as in a shell.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_used_only_where_one_is_needed() {
        let words = |text| CommandLine::parse(text).into_words();
        assert_eq!(words("./a --n 3 x=1"), ["./a", "--n", "3", "x=1"]);
        assert_eq!(words("seq 3 | wc -l"), ["sh", "-c", "seq 3 | wc -l"]);
        assert_eq!(words("a 'b | $c' \"d;\n\"e"), ["a", "b | $c", "d;\ne"]);
        for text in ["a \"$b\"", "a 'b' *", "a 'b", "a \"\\\"\""] {
            assert_eq!(words(text), ["sh", "-c", text]);
        }
        assert!(words(" ").is_empty());
    }

    #[test]
    fn variables_before_a_command_are_its_environment() {
        let line = CommandLine::parse("A=1 _b2=x=y ./a C=3");
        assert_eq!(line.words, ["./a", "C=3"]);
        assert_eq!(
            line.env.into_iter().collect::<Vec<_>>(),
            [("A", "1"), ("_b2", "x=y")].map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
        assert_eq!(CommandLine::parse("A=1 ./a").into_words(), ["env", "A=1", "./a"]);
        assert_eq!(CommandLine::parse("./a=b/c 2=3").into_words(), ["./a=b/c", "2=3"]);
    }
}
