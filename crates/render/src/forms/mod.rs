//! What was decided, in the forms that other programs read: a runner's annotations, JUnit's XML, SARIF.

mod github;
mod junit;
mod sarif;

pub use github::github;
pub use junit::junit;
pub use sarif::sarif;

use crate::judged::{Judged, Row, of_problem};
use crate::{remedy, text, units};
use holdpoint_model::judgement::STATUS_METRIC;

/// Characters of a sentence in any of them.
const SENTENCE_CHARS: usize = 2_000;
/// Characters of a name.
const NAME_CHARS: usize = 300;

/// What is wrong with the evidence itself, then the rows.
fn rows<'a>(judged: Judged<'a>, problem: Option<&'a str>) -> Vec<Row<'a>> {
    problem.map(of_problem).into_iter().chain(judged.rows()).collect()
}

/// A name on one line, without anything that hides or reorders text.
fn name(raw: &str) -> String {
    let name = if raw == STATUS_METRIC { "status of the run" } else { raw };
    text::clip(&text::clean(name), NAME_CHARS)
}

/// What is to be said of a row, on one line: `regressed, +41.0 % (…): reason`.
fn sentence(row: &Row<'_>) -> String {
    let change = row.change.map(|change| format!(", {}", units::percent(change)));
    let times =
        row.was_ms.zip(row.is_ms).map(|(was, is)| format!(" ({} → {})", units::time(was), units::time(is)));
    let (change, times) = (change.unwrap_or_default(), times.unwrap_or_default());
    let said = format!("{}{change}{times}: {}", row.verdict.as_str(), remedy::with(row.reason));
    text::clip(&text::clean(&said), SENTENCE_CHARS)
}
