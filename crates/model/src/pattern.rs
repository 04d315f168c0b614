//! Patterns as people write them in files: of names with `*`, and of paths with git's globs.

use glob::{MatchOptions, Pattern};
use std::path::Path;

/// Whether a name matches a pattern in which `*` stands for any characters, in time that grows with both lengths only.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The earliest place leaves the most for what follows.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// As in git's globs: `*` and `?` stay within a name, `**` stands for any folders, none of them included.
const GLOB: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Whether a glob takes a path, both from the same root.
pub fn takes_path(glob: &str, path: &Path) -> bool {
    Pattern::new(glob).is_ok_and(|glob| glob.matches_path_with(path, GLOB))
}

/// Why a glob would never match a file of git's, if so.
pub fn find_glob_problem(glob: &str) -> Option<&'static str> {
    let is_bad = |part: &str| matches!(part, "" | "." | "..");
    if glob.split('/').any(is_bad) {
        return Some("it has a part that is empty, . or .., which no file of git's has; give it as src/**");
    }
    if glob.starts_with([':', '!', '-']) || glob.chars().any(char::is_control) {
        return Some("globs begin with a name or a star, at the repository's root");
    }
    Pattern::new(glob).err().map(|error| error.msg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_take_what_git_takes() {
        for (glob, path, is) in [
            ("**/*.c", "a.c", true),
            ("**/*.c", "src/deep/a.c", true),
            ("*.c", "a.c", true),
            ("*.c", "src/a.c", false),
            ("src/**", "src/deep/a.c", true),
            ("src/**", "src", false),
            ("src/*", "src/a.c", true),
            ("src/*", "src/deep/a.c", false),
            ("src/**/a.c", "src/a.c", true),
            ("**", ".hidden/a", true),
            ("src/?.c", "src/a.c", true),
            ("src/[ab].c", "src/b.c", true),
            ("src/[", "src/[", false),
        ] {
            assert_eq!(takes_path(glob, Path::new(path)), is, "{glob} {path}");
        }
        for glob in ["src/[", "src/**.c"] {
            assert!(find_glob_problem(glob).is_some(), "{glob}");
        }
    }
}
