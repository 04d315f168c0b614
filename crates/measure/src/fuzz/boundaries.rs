//! Lengths at which a kernel may go wrong: the sizes of tiles and parts that its source, its flags and launch, or the tuner name.

use crate::worker::own;
use holdpoint_model::suite::{KernelSpec, Size};
use holdpoint_model::{FuzzCase, Workload};
use holdpoint_ops::Entry;
use std::collections::BTreeSet;
use std::path::Path;

/// Below, every size is drawn anyway; above, no row ends.
const RANGE: std::ops::RangeInclusive<usize> = 9..=16_384;
/// A table of constants is no list of tile sizes.
const COUNT_MAX: usize = 40;
/// Of a source, which may be generated.
const SOURCE_BYTES_MAX: u64 = 4 << 20;

/// The lengths that a workload's kernel names, in order; none for a worker of the user's. Its file is relative to `dir`.
pub(super) fn find_boundaries(spec: &Workload, case: &FuzzCase, dir: Option<&Path>) -> Vec<usize> {
    let mut found = BTreeSet::new();
    match spec.task.kernel() {
        Some(kernel) => read_kernel(kernel, dir.unwrap_or(Path::new("")), &mut found),
        None if spec.task.device().is_some() => {
            found.extend(
                Entry::tuned_constants(&own::request(case)).into_iter().filter(|n| RANGE.contains(n)),
            );
        }
        None => {}
    }
    found.into_iter().take(COUNT_MAX).collect()
}

fn read_kernel(kernel: &KernelSpec, dir: &Path, found: &mut BTreeSet<usize>) {
    let launches = kernel.launches();
    let sizes = launches.iter().flat_map(|launch| launch.grid.iter().chain(&launch.block));
    for size in sizes.chain(&kernel.requires) {
        match size {
            Size::Number(number) => found.extend(usize::try_from(*number).ok().filter(|n| RANGE.contains(n))),
            Size::Text(text) => found.extend(literals(text)),
        }
    }
    kernel.flags.iter().filter(|flag| flag.starts_with("-D")).for_each(|flag| found.extend(literals(flag)));
    // Whether it can be read and compiled shows when it is run.
    let path = dir.join(&kernel.source);
    if std::fs::metadata(&path).is_ok_and(|file| file.len() <= SOURCE_BYTES_MAX)
        && let Ok(text) = std::fs::read_to_string(path)
    {
        found.extend(text.lines().flat_map(|line| literals(line.split("//").next().unwrap_or(""))));
    }
}

/// Whole numbers in a line of a program; no part of a name, of a fraction or of hexadecimal digits.
fn literals(line: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words =
        line.split(|c: char| !is_word(c)).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let number = |word: &str| word.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok();
    words.filter_map(number).filter(|number| RANGE.contains(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_of_a_line_are_read() {
        assert_eq!(literals("constexpr int ROWS = 64, half = ROWS/2, PART=1536u;"), [64, 1536]);
        assert_eq!(literals("x = 0.125f * 3e4 + 0xff800000 + a128[8] + 99999999;"), [0_usize; 0]);
        assert_eq!(literals("-DTILE=48"), [48]);
    }

    #[test]
    fn a_kernel_names_tiles_in_source_flags_and_launch() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.cu"), "#define PART 1000 // not 77\nif (key >= 512) break;\n")
            .unwrap();
        let kernel: KernelSpec =
            serde_json::from_value(json!({ "source": "a.cu", "entry": "a", "grid": ["ceil_div(steps, 96)"],
            "block": [128], "flags": ["-DTILE=48", "-I/usr/55"] }))
            .unwrap();
        let mut found = BTreeSet::new();
        read_kernel(&kernel, dir.path(), &mut found);
        assert_eq!(Vec::from_iter(found), [48, 96, 128, 512, 1000]);
    }
}
