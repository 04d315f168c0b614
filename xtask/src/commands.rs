//! Checks that the commands in the documentation exist.

/// Pages whose commands are not to be typed: what was, and what clap prints itself.
const PASSED_OVER: [&str; 2] = ["CHANGELOG.md", "docs/commands.md"];
/// Where a shell's own words begin.
const ENDS: [&str; 8] = ["|", ">", ">>", "2>", "&&", "||", "&", ";"];

/// Names every command on a page that does not exist, in code and in blocks of it.
pub fn problems(page: &str, text: &str) -> Vec<String> {
    if PASSED_OVER.contains(&page) {
        return Vec::new();
    }
    let unknown = |command: &String| {
        let word = unknown_word(command)?;
        Some(format!("{page}: `holdpoint {command}`: no {word}"))
    };
    commands(text).iter().filter_map(unknown).collect()
}

/// What follows `holdpoint` in code within a line, and at the start of a line of a block.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, part) in text.split("```").enumerate() {
        let is_block = at % 2 == 1;
        if is_block {
            // A command line may go on in the next one.
            let joined = part.replace("\\\n", " ");
            let lines = joined.lines().map(|line| line.trim().trim_start_matches("$ "));
            found.extend(lines.filter_map(|line| line.strip_prefix("holdpoint ")).map(str::to_owned));
        } else {
            let code = part.split('`').skip(1).step_by(2);
            found.extend(code.filter_map(|code| code.strip_prefix("holdpoint ")).map(str::to_owned));
        }
    }
    found
}

/// The first word that is no command, or no flag of it.
fn unknown_word(line: &str) -> Option<String> {
    let mut command = holdpoint_cli::args::command();
    command.build();
    let mut command = &command;
    let mut is_value = false;
    let words = shlex::split(&line.replace("; ", " ; ")).unwrap_or_default();
    for word in words.iter().map(String::as_str).take_while(|word| !ENDS.contains(word)) {
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
        let text = "`holdpoint gate` and `holdpoint fly`\n```sh\n$ holdpoint swim \\\n  --far # away\nholdpoint run | cat\n```\n";
        let [first, second] = &problems("p", text)[..] else { panic!("{:?}", problems("p", text)) };
        assert_eq!(first, "p: `holdpoint fly`: no command fly");
        assert!(second.ends_with("no command swim"), "{second}");
        assert!(problems("CHANGELOG.md", text).is_empty());
    }
}
