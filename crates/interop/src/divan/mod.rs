//! divan's text: a tree of benchmarks with the fastest, slowest, median and mean time of each. It has no other output, and no
//! samples.

use crate::series::{self, Series};
use crate::{Format, Source};
use holdpoint_model::FileError;
use holdpoint_model::document::value_error;

pub(crate) const FORMAT: Format = Format {
    words: "the output of divan",
    matches: |source| source.plain_text().is_some_and(|text| text.lines().any(|line| header(line).is_some())),
    read: |source| match source {
        Source::File(text) => series::import("divan", read(text)?),
        Source::Folder(_) => Ok(crate::Imported::default()),
    },
};

/// A time of each benchmark. Its name is the path in the tree, joined by `::`, as divan's filters take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Fastest = 0,
    Median = 2,
}

/// The median of each benchmark.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    read_column(text, Column::Median)
}

/// One time of each benchmark.
pub fn read_column(text: &str, column: Column) -> Result<Vec<Series>, FileError> {
    let (mut all, mut path, mut name_chars) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        if let Some((name, chars)) = header(line) {
            (path, name_chars) = (vec![name.to_owned()], Some(chars));
            continue;
        }
        let Some(at) = name_chars.and_then(|chars| line.char_indices().nth(chars)) else { continue };
        let (tree, times) = line.split_at(at.0);
        let Some((depth, name)) = branch(tree) else { continue };
        path.truncate(depth);
        path.push(name.trim_end().to_owned());
        let cell = times.split('│').nth(column as usize).unwrap_or_default().trim();
        if cell.is_empty() || times.trim_start().starts_with("(ignored)") {
            continue;
        }
        let name = path.join("::");
        let Some(time_ms) = parse_time(cell) else {
            return value_error(name, "its time must be a number and ns, µs, ms, s, m or h");
        };
        all.push(Series { name, times_ms: vec![time_ms] });
    }
    Ok(all)
}

/// The benchmarks that `--test` has run once, and names without times.
pub fn read_names(text: &str) -> Vec<String> {
    let (mut names, mut path): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((depth, name)) = branch(line) else {
            path = vec![line.trim()];
            continue;
        };
        path.truncate(depth);
        path.push(name.trim_end());
        let is_leaf = lines.peek().and_then(|next| branch(next)).is_none_or(|(next, _)| next <= depth);
        if is_leaf && !name.trim_end().ends_with("  (ignored)") {
            names.push(path.join("::"));
        }
    }
    names
}

/// The name at the root of a tree, and how many characters its names may take.
fn header(line: &str) -> Option<(&str, usize)> {
    let (name, columns) = line.split_once(" fastest ")?;
    let is_header = columns.contains("│ slowest ") && columns.contains("│ median ");
    is_header.then(|| (name.trim(), name.chars().count() + 1))
}

/// How deep a line is in the tree, and what follows its branch; absent between branches.
fn branch(line: &str) -> Option<(usize, &str)> {
    let (mut rest, mut depth) = (line, 1);
    loop {
        if let Some(name) = rest.strip_prefix("├─ ").or_else(|| rest.strip_prefix("╰─ ")) {
            return Some((depth, name));
        }
        rest = rest.strip_prefix("│  ").or_else(|| rest.strip_prefix("   "))?;
        depth += 1;
    }
}

/// `15.43 µs` in milliseconds.
fn parse_time(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit.trim() {
        "ps" => 1e-9,
        "ns" => 1e-6,
        "µs" | "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        "h" => 3600e3,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_of_a_trial_run_are_the_leaves_of_its_tree() {
        let text = "words\n├─ count\n│  ├─ 200\n│  ╰─ a b\n├─ slow     (ignored)\n╰─ longest\n\n";
        assert_eq!(read_names(text), ["words::count::200", "words::count::a b", "words::longest"]);
        assert!(read_names("running 0 tests\n\n").is_empty());
    }

    #[test]
    fn lines_of_counters_and_allocations_are_no_benchmarks() {
        let text = "g        fastest       │ slowest       │ median        │ mean          │ samples │ iters\n\
                    ╰─ a     23.86 ns      │ 281.1 ns      │ 33.55 ns      │ 112.8 ns      │ 3       │ 96\n\
                    \x20        419 MB/s      │ 35.57 MB/s    │ 298 MB/s      │ 88.61 MB/s    │         │\n\
                    \x20        max alloc:    │               │               │               │         │\n";
        let all = read_column(text, Column::Fastest).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].times_ms[0]), ("g::a", 23.86e-6));
    }
}
