//! Checks that the modules of a crate do not depend on each other in a circle.
//!
//! Reads the paths in the source, `crate::a::b` and `super::a`, by their text. Tests may use what they like, and so may `lib.rs`, which
//! holds everything. A name that `lib.rs` re-exports leads to the module that it comes from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// The modules that a module uses, each with the first file that does.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// Names the modules of each circle in a crate, and a file for each step of it.
pub fn problems(root: &Path) -> Vec<String> {
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let names = crates.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.iter().flat_map(|name| crate_problems(name, &root.join("crates").join(name).join("src"))).collect()
}

fn crate_problems(name: &str, source: &Path) -> Vec<String> {
    let root = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|path| path.is_file());
    let Some(root) = root.and_then(|path| fs::read_to_string(path).ok()) else { return Vec::new() };
    let mut uses = Uses::new();
    for path in crate::tidy::files(source) {
        let file = path.strip_prefix(source).unwrap_or(&path);
        let Some(module) = module_path(file) else { continue };
        let Ok(text) = fs::read_to_string(&path) else { continue };
        add_uses(&mut uses, &root, &module, &file.display().to_string(), &text);
    }
    let problem = |circle: &String| {
        format!(
            "crates/{name}: modules depend on each other in a circle: {circle}; move what both need into a third"
        )
    };
    circles(&uses).iter().map(problem).collect()
}

/// `["a", "b"]` for `a/b.rs` and `a/b/mod.rs`; absent for the root, for programs and for tests.
fn module_path(file: &Path) -> Option<Vec<String>> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_test = parts.last()?.ends_with("tests");
    if file.extension()? != "rs" || is_test || parts[0] == "bin" {
        return None;
    }
    parts.pop_if(|last| last == "mod");
    (parts != ["lib"] && parts != ["main"]).then_some(parts)
}

fn add_uses(uses: &mut Uses, root: &str, module: &[String], file: &str, text: &str) {
    let modules = declared(root);
    let exported = re_exported(root);
    let own = &module[0];
    for name in crate_names(text, module.len()) {
        let other = if modules.contains(name.as_str()) { Some(&name) } else { exported.get(&name) };
        if let Some(other) = other.filter(|other| *other != own) {
            let files = uses.entry(own.clone()).or_default();
            files.entry(other.clone()).or_insert_with(|| file.to_owned());
        }
    }
}

/// The modules that a root declares.
fn declared(root: &str) -> BTreeSet<&str> {
    let modules = root.lines().filter_map(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
    modules.collect()
}

/// The names that a root re-exports, with their modules.
fn re_exported(root: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for item in root.split("\npub use ").skip(1).chain(root.split("\npub(crate) use ").skip(1)) {
        let item: String = item.split(';').next().unwrap_or_default().split_whitespace().collect();
        let Some((module, rest)) = item.trim_start_matches("self::").split_once("::") else { continue };
        for name in rest.split(['{', '}', ',']).filter_map(|path| path.rsplit("::").next()) {
            exported.insert(name.to_owned(), module.to_owned());
        }
    }
    exported
}

/// The first names of paths from the crate's root, in a module at this depth.
fn crate_names(text: &str, depth: usize) -> Vec<String> {
    let code: Vec<&str> = text
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default()
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut names = Vec::new();
    for prefix in ["crate::".to_owned(), "super::".repeat(depth)] {
        let mut rest = code.as_str();
        while let Some(at) = rest.find(&prefix) {
            // The middle of a longer name or path.
            let is_part = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            rest = &rest[at + prefix.len()..];
            if !is_part {
                names.extend(first_names(rest));
            }
        }
    }
    names
}

/// `a` of `a::b`; `a` and `c` of `{a::b, c}`.
fn first_names(path: &str) -> Vec<String> {
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match (c, depth) {
            (',' | '}', 0) => {
                names.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            ('{', _) => depth += 1,
            ('}', _) => depth -= 1,
            _ => {}
        }
    }
    names
}

fn name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The shortest circle through each module that no other circle has named.
fn circles(uses: &Uses) -> Vec<String> {
    let mut named = BTreeSet::new();
    let mut circles = Vec::new();
    for module in uses.keys() {
        let Some(circle) = circle_through(module, uses).filter(|_| !named.contains(module)) else { continue };
        let steps = circle.iter().zip(circle.iter().skip(1));
        let steps = steps.map(|(from, to)| format!("{from} uses {to} ({})", uses[*from][*to]));
        circles.push(steps.collect::<Vec<_>>().join(", "));
        named.extend(circle);
    }
    circles
}

/// The modules from this one back to itself.
fn circle_through<'a>(module: &'a String, uses: &'a Uses) -> Option<Vec<&'a String>> {
    let mut paths = VecDeque::from([vec![module]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in path.last().and_then(|last| uses.get(*last)).into_iter().flat_map(BTreeMap::keys) {
            let longer = [path.as_slice(), &[next]].concat();
            if next == module {
                return Some(longer);
            }
            if seen.insert(next) {
                paths.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str =
        "pub mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod d;\npub use b::{B, deep::Other};\npub use c::C;\n";

    fn uses(files: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (file, text) in files {
            if let Some(module) = module_path(Path::new(file)) {
                add_uses(&mut uses, ROOT, &module, file, text);
            }
        }
        uses
    }

    #[test]
    fn a_circle_is_named_with_its_files() {
        let files = [
            ("a/mod.rs", "use crate::{x, b::{f, c::g}};\n"),
            ("b.rs", "// crate::a\nuse std::fmt;\nfn f() { crate::c::g(); }\n"),
            ("c/d/e.rs", "use super::super::super::a;\n"),
        ];
        assert_eq!(circles(&uses(&files)), ["a uses b (a/mod.rs), b uses c (b.rs), c uses a (c/d/e.rs)"]);
        assert_eq!(circles(&uses(&files[..2])), [""; 0]);
    }

    #[test]
    fn a_re_exported_name_leads_to_its_module() {
        for name in ["B", "Other", "{C, B}"] {
            let files = [("a.rs", format!("use crate::{name};")), ("b.rs", "use super::a::A;".to_owned())];
            let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
            assert_eq!(circles(&uses(&files)), ["a uses b (a.rs), b uses a (b.rs)"], "{name}");
        }
    }

    #[test]
    fn tests_programs_and_the_root_use_what_they_like() {
        let of_tests = "use std::fmt;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n";
        let files = [
            ("b.rs", "use crate::a;"),
            ("a.rs", of_tests),
            ("a/tests.rs", "use crate::b;"),
            ("a/import_tests.rs", "use crate::b;"),
            ("lib.rs", "use crate::b;"),
            ("bin/a.rs", "use crate::b;"),
        ];
        assert_eq!(circles(&uses(&files)), [""; 0]);
    }
}
