//! Judgements in formats that other programs read: GitHub annotations, JUnit XML, SARIF.

mod github;
mod junit;
mod sarif;

pub use github::github;
pub use junit::junit;
pub use sarif::sarif;

use crate::judged::{CheckRow, Judged, shown_name};
use crate::{remedy, text, units};
use holdpoint_model::Verdict;

const SENTENCE_CHARS: usize = 2_000;
const NAME_CHARS: usize = 300;

/// The name of what stands for the whole among the rows.
const WHOLE: &str = "the whole comparison";

/// The verdict of the whole and its sentence, where no row says as much: one that was cut short may have passed in all of them.
fn whole(judged: Judged<'_>) -> Option<(Verdict, String)> {
    let verdict = judged.judgement.verdict;
    let worst = judged.judgement.checks.iter().map(|check| check.verdict).max();
    let line = format!("{}: {}", verdict.as_str(), text::clean(&judged.sentence()));
    (worst < Some(verdict)).then(|| (verdict, text::clip(&line, SENTENCE_CHARS)))
}

/// A name on one line, without anything that hides or reorders text.
fn name(raw: &str) -> String {
    text::clip(&text::clean(shown_name(raw)), NAME_CHARS)
}

/// A row on one line: `regressed, +41.0 % (…): reason`.
fn sentence(row: &CheckRow<'_>) -> String {
    let change = row.change.map(|change| format!(", {}", units::percent(change)));
    let times = match row.values() {
        [Some(was), Some(is)] => Some(format!(" ({was} → {is})")),
        _ => None,
    };
    let (change, times) = (change.unwrap_or_default(), times.unwrap_or_default());
    let line = format!("{}{change}{times}: {}", row.verdict.as_str(), remedy::with(&row.check.reason));
    text::clip(&text::clean(&line), SENTENCE_CHARS)
}
