//! A limit on everything that comes from outside.

/// Largest file read whole: 10 000 workloads with 100 samples each take about 42 MB (`compare_scale`).
pub const FILE_BYTES_MAX: u64 = 512 << 20;
/// Largest file hashed: an engine of 64 GiB fits no GPU.
pub const ARTIFACT_BYTES_MAX: u64 = 64 << 30;
/// Largest file read from a history in git: a report of 10 000 workloads fits.
pub const HISTORY_FILE_BYTES_MAX: u64 = 64 << 20;
/// Most files of a history in git: ten runs a day of 50 years.
pub const HISTORY_FILES_MAX: usize = 200_000;
/// Most bytes of the paths of all these files, and of what git says about each: 320 bytes for each.
pub const HISTORY_LISTING_BYTES_MAX: u64 = 64 << 20;
/// Most bytes that are read from a history in git at a time, but for a file that alone is larger.
pub const HISTORY_BATCH_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of all files that are read from a history in git when it is opened: ten thousand runs of 6 MB.
pub const HISTORY_BYTES_MAX: u64 = 64 << 30;
/// Largest line of the worker protocol: 100 000 samples of 20 digits fit.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Most samples that one `run` request may ask for.
pub const SAMPLES_PER_RUN_MAX: u64 = 100_000;
/// Most workloads in a suite or in a worker's list.
pub const WORKLOADS_MAX: usize = 20_000;
/// Longest name of a suite, a workload or a worker.
pub const NAME_CHARS_MAX: usize = 200;
/// Most elements of all tensors of a case of `fuzz` or `check`, the oracle's answer among them: 256 MiB in f32, about six times
/// that with the copies that are kept. Attention of [32, 8, 512, 64], a common size, has two thirds of it.
pub const CASE_ELEMENTS_MAX: u64 = 1 << 26;
/// The same on a device, of the main input alone: the largest of the suite `gpu-large`.
pub const CASE_DEVICE_ELEMENTS_MAX: u64 = 1 << 29;
/// The same for ordinary values, which are drawn on the device beyond that: past the end of 32-bit indices.
pub const CASE_HUGE_ELEMENTS_MAX: u64 = 1 << 32;
/// Most steps of an oracle's innermost loop, such as multiply-adds of attention's scores: two minutes or so.
pub const CASE_OPERATIONS_MAX: u64 = 1 << 36;
/// Most calls in one sample; a worker that needs more is not timing anything.
pub const CALLS_PER_SAMPLE_MAX: u64 = 1 << 32;
/// Lines of a worker's stderr kept as evidence when it fails.
pub const STDERR_LINES_KEPT: usize = 20;
/// Longest stderr line kept, and longest text taken from a worker's message.
pub(crate) const TEXT_CHARS_MAX: usize = 2_000;
/// Shortest time read, in milliseconds: a femtosecond. With the longest it keeps every ratio of two times finite.
pub const TIME_MS_MIN: f64 = 1e-12;
/// Longest time read, in milliseconds: three hundred centuries.
pub const TIME_MS_MAX: f64 = 1e15;
/// Largest tolerance read, as a ratio or in milliseconds.
pub const TOLERANCE_MAX: f64 = 1e15;

/// Characters that show nothing, or change how others are shown: fillers, joiners, line separators, tags, and marks that turn
/// the direction of text.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Foreign text on one line: white space becomes a space, and what could paint, move the cursor, reorder or hide other text is shown
/// as its code point.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '\r' => {}
            _ if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}

/// Whether anything that can be read is in it.
pub fn is_said(text: &str) -> bool {
    text.chars().any(|c| c.is_alphanumeric() && !is_invisible(c))
}

/// Cuts foreign text to [`TEXT_CHARS_MAX`] characters and drops control characters, so that a worker can
/// neither flood a report nor paint on a terminal.
pub fn clean_text(text: &str) -> String {
    let mut kept: String =
        text.chars().filter(|c| !c.is_control() || *c == '\t').take(TEXT_CHARS_MAX).collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        kept.push('…');
    }
    kept
}
