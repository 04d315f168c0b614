//! Rules of style that a program can check.

use crate::{commands, cycles, unused};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file; three quarters should stay under 400.
const LINES_MAX: usize = 500;
/// Folders that hold nothing of ours.
const SKIPPED: [&str; 5] = ["target", ".git", "artifacts", "corpus", ".holdpoint"];

/// Names every broken rule.
pub fn check(root: &Path) -> Vec<String> {
    let mut problems = cycles::problems(root);
    problems.extend(unused::problems(root));
    for path in files(root) {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if name.ends_with(".rs") {
            problems.extend(rust_problems(&name, &text));
        }
        if makes_verdicts(&name, &text) {
            problems
                .push(format!("{name}: verdicts are made in crates/gate only; take those of a Judgement"));
        }
        if name.ends_with(".md") {
            problems.extend(dead_links(&path, &name, &text));
            problems.extend(commands::problems(&name, &text));
        }
    }
    problems
}

fn rust_problems(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{name}: {lines} lines, at most {LINES_MAX}: is it one thing?"));
    }
    let is_test = name.contains("/tests") || name.ends_with("tests.rs");
    if !is_test && !text.starts_with("//!") && !name.starts_with("fuzz/") {
        problems.push(format!("{name}: begins without //!: what is it for, what must it not do?"));
    }
    if starts_program_itself(name, text) {
        problems.push(format!("{name}: Command::new hands our secrets on; use holdpoint_process::command"));
    }
    let markers = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!("];
    for (index, line) in text.lines().enumerate() {
        if let Some(marker) = markers.iter().find(|marker| line.contains(**marker))
            && name != "xtask/src/tidy.rs"
        {
            problems
                .push(format!("{name}:{}: {marker} is a promise nobody keeps; do it or file it", index + 1));
        }
    }
    problems
}

/// Whether a source file of a crate starts a program without the one function that drops secrets.
fn starts_program_itself(name: &str, text: &str) -> bool {
    let is_source = name.starts_with("crates/") && name.contains("/src/");
    is_source && name != "crates/process/src/lib.rs" && text.contains("Command::new(")
}

/// Crates that may show a verdict and cannot make one: a `Judgement` is made by `holdpoint-gate`, and these do not depend on it.
const VERDICT_READERS: [&str; 8] = ["measure", "render", "cli", "ci", "interop", "history", "model", "stats"];

/// A manifest that lets one of these crates make verdicts. Their tests may.
fn makes_verdicts(name: &str, text: &str) -> bool {
    let is_reader = VERDICT_READERS.iter().any(|reader| name == format!("crates/{reader}/Cargo.toml"));
    let sections = text.split("\n[").filter(|section| section.starts_with("dependencies"));
    is_reader && sections.flat_map(str::lines).any(|line| line.starts_with("holdpoint-gate"))
}

/// Relative links that lead nowhere: to no file, or to no heading of a page.
fn dead_links(path: &Path, name: &str, text: &str) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_dead = |target: &&str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let page = if file.is_empty() { path.to_owned() } else { folder.join(file) };
        let has_anchor =
            || fs::read_to_string(&page).is_ok_and(|text| anchors(&text).any(|known| known == anchor));
        !page.exists() || !anchor.is_empty() && file.is_empty() | file.ends_with(".md") && !has_anchor()
    };
    targets
        .filter(|target| !target.contains("://") && !target.contains(' '))
        .filter(is_dead)
        .map(|target| format!("{name}: link to {target}, which does not exist"))
        .collect()
}

/// The anchors of a page's headings, as forges make them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    headings.map(|heading| {
        let kept = heading.trim().to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    })
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_shows_verdicts_does_not_depend_on_the_one_that_makes_them() {
        let text = "[package]\n[dependencies]\nholdpoint-gate.workspace = true\n[dev-dependencies]\n";
        assert!(makes_verdicts("crates/render/Cargo.toml", text));
        assert!(!makes_verdicts("crates/flow/Cargo.toml", text));
        let in_tests = text.replace("dependencies", "dev-dependencies");
        assert!(!makes_verdicts("crates/render/Cargo.toml", &in_tests));
    }

    #[test]
    fn a_link_to_a_heading_that_is_gone_is_named() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dead = |text: &str| dead_links(&folder.join("page.md"), "page.md", text);
        assert_eq!(anchors("# A `b-c`, d\ntext\n## E").collect::<Vec<_>>(), ["a-b-c-d", "e"]);
        assert!(dead("[a](../README.md#1-install) [b](src) [c](https://x/#y)").is_empty());
        assert_eq!(dead("[a](../README.md#gone) [b](none.md)").len(), 2);
    }

    #[test]
    fn a_program_is_started_by_one_function_only() {
        let text = "let git = Command::new(\"git\");";
        assert!(starts_program_itself("crates/flow/src/run.rs", text));
        for name in ["crates/process/src/lib.rs", "crates/cli/tests/cli/main.rs", "xtask/src/tidy.rs"] {
            assert!(!starts_program_itself(name, text), "{name}");
        }
    }
}
