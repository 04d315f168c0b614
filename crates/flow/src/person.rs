//! The person who answers for something that is recorded.

use crate::error::FlowError;
use holdpoint_model::limits::clean_text;
use holdpoint_model::person::is_person;
use holdpoint_process::git::{self, Repository};
use std::path::Path;

/// The person who does something that is recorded: the one named, whoever runs the pipeline, git's `user.name` here, or whoever is
/// logged in.
pub fn person(named: Option<&str>, does: &str) -> Result<String, FlowError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let of_ci = || variable("GITHUB_ACTOR").or_else(|| variable("GITLAB_USER_LOGIN"));
    let found = named.map(str::to_owned).or_else(of_ci).or_else(git_user).or_else(|| variable("USER"));
    let name = found.map(|name| clean_text(name.trim())).unwrap_or_default();
    match is_person(&name) {
        true => Ok(name),
        false if name.is_empty() => Err(FlowError::Input(format!("who {does} it? Give --by NAME"))),
        false => Err(FlowError::Input(format!(
            "{name:?} does not name a person who answers for it; give --by NAME, as git or the forge knows them"
        ))),
    }
}

/// `Ada Lovelace <ada@example.org>`, as git has it here.
fn git_user() -> Option<String> {
    let here = Repository::around(Path::new("."));
    let setting = |name: &str| {
        let value = git::text(&here.run(&["config", "--get", name]).ok()?);
        (!value.is_empty()).then_some(value)
    };
    match (setting("user.name"), setting("user.email")) {
        (Some(name), Some(mail)) => Some(format!("{name} <{mail}>")),
        (name, mail) => name.or(mail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_person_may_answer() {
        for name in ["Ada", "@ada", "Ada Lovelace <ada@example.org>", "李", "a.b"] {
            assert_eq!(person(Some(name), "accepts").unwrap(), name);
        }
        for nobody in ["", "  ", "-", "anyone", "Any One", "@ROOT", "no-one", "dependabot[bot]", "\u{200b}"] {
            let error = person(Some(nobody), "accepts").unwrap_err().to_string();
            assert!(error.contains("--by NAME"), "{nobody:?}: {error}");
        }
    }
}
