//! Checks that the commands in the documentation exist.

use std::fs;
use std::path::Path;

const PAGES: &[&str] =
    &["docs/from-the-originals.md", "docs/ci.md", "docs/ci-security.md", "docs/self-hosted-runner.md"];

/// Names every command that does not exist.
pub fn check(root: &Path) -> Vec<String> {
    let read = |page: &str| fs::read_to_string(root.join(page)).unwrap_or_default();
    PAGES.iter().flat_map(|page| problems(page, &read(page))).collect()
}

fn problems(page: &str, text: &str) -> Vec<String> {
    let commands: Vec<&str> =
        text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("holdpoint ")).collect();
    if commands.is_empty() {
        return vec![format!("{page}: names no command; has it moved?")];
    }
    let unknown = |command: &&str| {
        unknown_word(command).map(|word| format!("{page}: `holdpoint {command}`: no {word}"))
    };
    commands.iter().filter_map(unknown).collect()
}

/// The first word that is no command, or no flag of it.
fn unknown_word(line: &str) -> Option<String> {
    let mut command = holdpoint_cli::args::command();
    command.build();
    let mut command = &command;
    let mut is_value = false;
    for word in line.split_whitespace() {
        if let Some(flag) = word.strip_prefix("--") {
            let name = flag.split('=').next().unwrap_or(flag);
            let found = command.get_arguments().find(|arg| {
                arg.get_long() == Some(name)
                    || arg.get_visible_aliases().is_some_and(|aliases| aliases.contains(&name))
                    || name == "version"
            });
            let Some(arg) = found else { return Some(format!("flag {word}")) };
            is_value = arg.get_action().takes_values() && !flag.contains('=');
        } else if is_value {
            is_value = false;
        } else if command.has_subcommands() {
            match command.find_subcommand(word) {
                Some(sub) => command = sub,
                // `fuzz` has one command, and words of its own.
                None if command.get_positionals().next().is_some() => {}
                None => return Some(format!("command {word}")),
            }
        } else if command.get_positionals().next().is_none() {
            return Some(format!("place for {word}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        assert_eq!(unknown_word("gate --baseline B --artifacts DIR"), None);
        assert_eq!(unknown_word("compare R --baseline B --output O"), None);
        assert_eq!(unknown_word("gates"), Some("command gates".to_owned()));
        assert_eq!(unknown_word("ci begin"), Some("command begin".to_owned()));
        assert_eq!(unknown_word("gate --baselines B"), Some("flag --baselines".to_owned()));
        assert_eq!(unknown_word("doctor now"), Some("place for now".to_owned()));
        assert_eq!(problems("p", "no command").len(), 1);
        assert_eq!(
            problems("p", "`holdpoint gate` and `holdpoint fly`"),
            ["p: `holdpoint fly`: no command fly"]
        );
    }
}
