//! The table after `holdpoint tune`.

use super::{counted, group_by_reason, ink_of_counts, last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::remedy;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{clip, entry, plural};
use crate::units;
use holdpoint_model::{TuneOutcome, TunedKernel, Tuning};
use std::collections::BTreeMap;

const COLUMNS: &[Column] = &[
    names("workload"),
    words("kernel").drop(3),
    numbers("own"),
    numbers("winner"),
    numbers("gain"),
    words("constants").drop(1),
    numbers("tried").drop(4),
    numbers("refused").drop(2),
];

/// A compiler's message can be long; its beginning says what is wrong.
const REASON_CHARS: usize = 200;

pub fn tune(tunings: &[Tuning], style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    let mut notes = String::new();
    let mut skipped = Vec::new();
    for Tuning { workload, outcome, .. } in tunings {
        match outcome {
            TuneOutcome::Tuned(kernel) => {
                grid.push(row(workload, kernel));
                notes += &refused(workload, kernel, style);
            }
            TuneOutcome::Skipped { reason, detail } => {
                let why = match detail {
                    Some(detail) => format!("{reason}: {detail}"),
                    None => remedy::with(reason),
                };
                skipped.push((Ink::Doubt, "skipped", why, workload));
            }
            TuneOutcome::Failed(failure) => {
                let body = format!("{workload}: {}: {}", failure.cause.as_str(), failure.detail);
                notes += &entry(style, Ink::Bad, "failed", &body);
            }
        }
    }
    paragraphs(&[grid.render(style), notes + &group_by_reason(&skipped, style), end(tunings, style)])
}

fn row(workload: &str, kernel: &TunedKernel) -> [Cell; 8] {
    let has_won = !kernel.selected_config.is_empty();
    let ink = if has_won { Ink::Good } else { Ink::Plain };
    let constants = if has_won { constants(&kernel.selected_config) } else { "the op's own".to_owned() };
    let refused_count = kernel.refused.len() as u64;
    let tried = u64::from(kernel.candidates_count) + refused_count;
    [
        Cell::new(workload),
        Cell::new(&kernel.kernel_name),
        Cell::number(Some(kernel.default_ms), units::time),
        Cell::number(Some(kernel.best_ms), units::time).with(Ink::Strong),
        Cell::number(Some(kernel.gain()), units::factor).with(ink),
        Cell::new(&constants),
        Cell::new(&units::count(tried)),
        Cell::new(&units::count(refused_count)),
    ]
}

/// `ITEMS=4 THREADS=128`.
fn constants(config: &BTreeMap<String, i64>) -> String {
    config.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Candidates are refused for the same reason more often than not: the first is shown for all.
fn refused(workload: &str, kernel: &TunedKernel, style: Style) -> String {
    let Some(first) = kernel.refused.first() else { return String::new() };
    let count = plural(kernel.refused.len(), "candidate");
    let reason = clip(&first.reason, REASON_CHARS);
    let body = format!("{workload}: {count}, the first {}: {reason}", constants(&first.config));
    entry(style, Ink::Doubt, "refused", &body)
}

fn end(tunings: &[Tuning], style: Style) -> String {
    let count = |is: fn(&TuneOutcome) -> bool| tunings.iter().filter(|tuning| is(&tuning.outcome)).count();
    let tuned = count(|outcome| matches!(outcome, TuneOutcome::Tuned(_)));
    let quicker = count(|o| matches!(o, TuneOutcome::Tuned(kernel) if !kernel.selected_config.is_empty()));
    let failed = count(|outcome| matches!(outcome, TuneOutcome::Failed(_)));
    let skipped = tunings.len() - tuned - failed;
    let mut parts = vec![format!("{} tuned", plural(tuned, "workload"))];
    parts.extend((tuned > 0).then(|| format!("{quicker} of them with other constants")));
    parts.extend(counted([(skipped, "skipped"), (failed, "failed")]));
    last_line(style, ink_of_counts(failed, tuned), "tune", &parts.join(", "))
}
