//! Changes and their intervals as lines of text, for places that show no picture.

use crate::judged::{CheckRow, shown_name};
use crate::text::{clean, clip_middle, width};
use crate::units;

const COLUMNS: usize = 44;
pub(super) const ROWS_MAX: usize = 20;
const NAME_CHARS: usize = 32;
/// Narrowest scale, as a share: below it everything would look large.
const SPAN_MIN: f64 = 0.02;

/// The rows that have a change, in a block of code; nothing where none has.
pub(super) fn picture(rows: &[&CheckRow<'_>]) -> String {
    let rows: Vec<&&CheckRow<'_>> =
        rows.iter().filter(|row| row.change.is_some_and(f64::is_finite)).collect();
    let shown = &rows[..rows.len().min(ROWS_MAX)];
    if shown.is_empty() {
        return String::new();
    }
    let scale = Scale::over(shown.iter().map(|row| **row));
    let names: Vec<String> = shown.iter().map(|row| name(row.name())).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let changes: Vec<String> = shown.iter().map(|row| units::number(row.change, units::percent)).collect();
    let widest_change = changes.iter().map(|change| width(change)).max().unwrap_or(0);
    let mut out = String::from("```text\n");
    let mut lines = String::new();
    for ((row, name), change) in shown.iter().zip(&names).zip(&changes) {
        let (name_gap, change_gap) = (widest - width(name), widest_change - width(change));
        let drawn = scale.line(row);
        let line = format!("{name}{:name_gap$}  {:change_gap$}{change}  {drawn}", "", "");
        lines.push_str(&drawn);
        // A runner takes a line that begins with two colons for a command.
        out.push_str(&format!("· {}\n", line.trim_end()));
    }
    match rows.len() - shown.len() {
        0 => {}
        n => out.push_str(&format!("· and {} more, not drawn\n", units::count(n as u64))),
    }
    out.push_str(&format!("  {}\n```\n", scale.legend(&lines)));
    out
}

/// A name on one line that ends no block of code and commands no runner.
fn name(raw: &str) -> String {
    clip_middle(&clean(shown_name(raw)), NAME_CHARS).replace('`', "'").replace("##[", "# #[")
}

/// Where a change lies on the line.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over<'a>(rows: impl Iterator<Item = &'a CheckRow<'a>>) -> Self {
        let (mut low, mut high) = (-SPAN_MIN / 2.0, SPAN_MIN / 2.0);
        for row in rows {
            let ends = row.interval.into_iter().flatten().chain(row.change).chain(row.allowed);
            for end in ends.filter(|end| end.is_finite()) {
                (low, high) = (low.min(end), high.max(end));
            }
        }
        Self { low, high }
    }

    fn column(&self, change: f64) -> usize {
        let share = (change - self.low) / (self.high - self.low);
        // Out of range only where a change is not a number; a cast takes that to an end.
        ((share * (COLUMNS - 1) as f64).round() as usize).min(COLUMNS - 1)
    }

    fn line(&self, row: &CheckRow<'_>) -> String {
        let mut line = [' '; COLUMNS];
        if let Some([low, high]) = row.interval.filter(|ends| ends.iter().all(|end| end.is_finite())) {
            let (low, high) = (self.column(low), self.column(high).max(self.column(low)));
            line[low..=high].fill('─');
            (line[low], line[high]) = ('├', '┤');
        }
        if let Some(allowed) = row.allowed {
            line[self.column(allowed)] = '┊';
        }
        line[self.column(0.0)] = '│';
        if let Some(change) = row.change {
            line[self.column(change)] = '●';
        }
        line.iter().collect()
    }

    /// Names what the lines show, and nothing that is covered in all of them.
    fn legend(&self, lines: &str) -> String {
        let marks = [("│", "│ no change"), ("┊", "┊ allowed"), ("●", "● measured"), ("├─┤", "├─┤ interval")];
        let is_there = |mark: &str| mark.chars().any(|c| lines.contains(c));
        let named: Vec<&str> =
            marks.iter().filter(|(mark, _)| is_there(mark)).map(|(_, words)| *words).collect();
        let (low, high) = (units::percent(self.low), units::percent(self.high));
        format!("from {low} to {high}; {}", named.join(", "))
    }
}
