//! Reads and writes the files of holdpoint: whole or not at all.
//!
//! The meaning of a file is [`holdpoint_model`]'s business; this crate knows where it lies, how large it may be, and what happens
//! when the disk is full. Nothing here decides and nothing here prints.

mod error;
mod lock;
mod read;
mod temporary;
mod tracks;
mod trend;
mod write;

pub use error::StoreError;
pub use lock::FolderLock;
pub use read::{
    list_names, read_any, read_baseline, read_binary, read_chunks, read_current, read_document,
    read_imported, read_release_policy, read_source, read_suite, read_text, read_waivers,
};
pub use temporary::{Scratch, sweep};
pub use tracks::{read_shown_trend, read_tracks};
pub use trend::{Appended, append_trend, for_each_trend, trend_path};
pub use write::{check_writable, remove, write_binary, write_json, write_new, write_text};

use std::path::{Path, PathBuf};

/// Hex digits of a fingerprint in a file name: 48 bits tell a team's machines apart.
const FINGERPRINT_CHARS: usize = 12;

/// Most reports of one gate: the first, and those of second looks.
pub const REPORTS_MAX: usize = 101;

/// Name of a gate's report: the first, or from 2 on one of a second look.
pub fn report_name(number: usize) -> String {
    if number == 1 { "report.json".to_owned() } else { format!("report-{number}.json") }
}

/// The path of a suite's baseline on a machine: `<dir>/<suite>-<first 12 of the fingerprint>.json`. Calibrations have the same
/// name in a folder of their own.
pub fn baseline_path(dir: &Path, suite: &str, machine_fingerprint: &str) -> PathBuf {
    let fingerprint: String = machine_fingerprint.chars().take(FINGERPRINT_CHARS).collect();
    dir.join(format!("{}-{}.json", file_stem(suite), file_stem(&fingerprint)))
}

/// A name as part of a file name. The suite parser refuses names that would not do; those of foreign
/// files come unchecked, and `../x` must not lead out of the folder.
fn file_stem(name: &str) -> String {
    let usable = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let stem: String = name
        .chars()
        .take(holdpoint_model::limits::NAME_CHARS_MAX)
        .map(|c| if usable(c) { c } else { '_' })
        .collect();
    match stem.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if stem.is_empty() => "unnamed".to_owned(),
        None => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_named_after_suite_and_machine() {
        let path = baseline_path(Path::new("b"), "cpu-small", "0123456789abcdef0123");
        assert_eq!(path, Path::new("b/cpu-small-0123456789ab.json"));
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_folder() {
        assert_eq!(
            baseline_path(Path::new("b"), "../../etc/x", "../.."),
            Path::new("b/_._.._etc_x-_._...json")
        );
        assert_eq!(trend_path(Path::new("b"), ""), Path::new("b/unnamed.ndjson"));
    }
}
