//! Checks that what a crate shows of itself is used by somebody else: other crates, or its own tests and benches.
//!
//! Reads names, not types: a name that also stands elsewhere counts as used, so it finds too little rather than too much. Types are
//! left out, since a public signature may need one that nobody names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What may stand between `pub` and `fn`.
const QUALIFIERS: [&str; 3] = ["const ", "unsafe ", "async "];

/// Names every public function, method, constant and static of a crate whose name stands nowhere outside the crate's `src`.
pub fn problems(root: &Path) -> Vec<String> {
    let files: Vec<(String, String)> = crate::tidy::files(root)
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| {
            Some((path.strip_prefix(root).ok()?.display().to_string(), fs::read_to_string(path).ok()?))
        })
        .collect();
    let sources: BTreeSet<&str> = files.iter().filter_map(|(name, _)| source_folder(name)).collect();
    sources.iter().flat_map(|source| problems_of(source, &files)).collect()
}

/// `crates/a/src/` of `crates/a/src/b/c.rs`.
fn source_folder(name: &str) -> Option<&str> {
    let (krate, _) = name.strip_prefix("crates/")?.split_once("/src/")?;
    (!krate.contains('/')).then(|| &name[..format!("crates/{krate}/src/").len()])
}

fn problems_of(source: &str, files: &[(String, String)]) -> Vec<String> {
    // A program stands beside its library and names it as another crate does.
    let is_own = |name: &str| name.strip_prefix(source).is_some_and(|file| file != "main.rs");
    let (own, others): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| is_own(name));
    let used: BTreeSet<&str> =
        others.iter().flat_map(|(_, text)| text.lines().flat_map(|line| words(code(line)))).collect();
    let mut problems = Vec::new();
    for (name, text) in own.into_iter().filter(|(name, _)| !is_test(name)) {
        let items = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().lines().enumerate();
        for (index, item) in items.filter_map(|(index, line)| Some((index, public_item(line)?))) {
            if !used.contains(item) {
                problems.push(format!(
                    "{name}:{}: {item} is public and used in no other crate; make it pub(crate), or delete it",
                    index + 1
                ));
            }
        }
    }
    problems
}

fn is_test(name: &str) -> bool {
    name.ends_with("tests.rs") || name.contains("/tests/")
}

/// The name of the public function, constant or static that a line begins.
fn public_item(line: &str) -> Option<&str> {
    let mut item = line.trim_start().strip_prefix("pub ")?;
    if let Some(rest) = item.strip_prefix("static ") {
        return words(rest).next();
    }
    let constant = item.strip_prefix("const ");
    while let Some(rest) = QUALIFIERS.iter().find_map(|qualifier| item.strip_prefix(qualifier)) {
        item = rest;
    }
    words(item.strip_prefix("fn ").or(constant)?).next()
}

fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn an_item_that_no_other_crate_names_is_a_problem() {
        let source =
            "pub fn used() {}\nimpl A {\n    pub const fn alone(self) {}\n}\npub const ALONE: u8 = 1;\n";
        let files = [
            file("crates/a/src/lib.rs", source),
            file("crates/a/src/b.rs", "use crate::ALONE;\npub(crate) fn hidden() {}\npub struct Shape;\n"),
            file("crates/b/src/lib.rs", "use a::used; // not alone\n"),
        ];
        let problems = problems_of("crates/a/src/", &files);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("crates/a/src/lib.rs:3: alone is public"), "{problems:?}");
        assert!(problems[1].starts_with("crates/a/src/lib.rs:5: ALONE is public"), "{problems:?}");
    }

    #[test]
    fn tests_beside_the_source_and_the_program_are_others() {
        let inner = "#[cfg(test)]\nmod tests {\n    pub fn helper() {}\n}\n";
        let source = format!("pub static LIST: u8 = 1;\n{inner}");
        let files = [
            file("crates/a/src/main.rs", "a::start();\n"),
            file("crates/a/src/start.rs", "pub fn start() {}\n"),
            file("crates/a/src/lib.rs", &source),
            file("crates/a/src/b/tests.rs", "pub fn help() {}\n"),
            file("crates/a/tests/list.rs", "a::LIST;\n"),
        ];
        assert_eq!(problems_of("crates/a/src/", &files), [""; 0]);
        assert_eq!(problems_of("crates/a/src/", &files[..4]).len(), 1);
    }

    #[test]
    fn a_source_folder_is_that_of_a_crate() {
        assert_eq!(source_folder("crates/a/src/b/c.rs"), Some("crates/a/src/"));
        assert_eq!(source_folder("crates/a/tests/b.rs"), None);
        assert_eq!(source_folder("xtask/src/main.rs"), None);
    }
}
