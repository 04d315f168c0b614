//! The one comment on a pull request, and the same text for a job's summary.
//!
//! Whatever comes from a file is text here: no mark-up, link, picture, mention or command of a runner survives. The comment always
//! fits: what is left out is counted, the least bad first.

mod picture;
mod sections;

use super::escape;
use crate::judged::{Judged, Rate};
use crate::text::clip;
use holdpoint_model::{Calibration, Report, Verdict};

/// GitHub takes 65 536 characters. Counted in bytes, which are never fewer, with some left for what a host adds.
pub const BYTES_MAX: usize = 65_000;

#[derive(Clone, Debug)]
pub struct Comment<'a> {
    /// Tells the comments of several gates apart; letters, digits, `_`, `.`, `-`.
    pub key: &'a str,
    /// The worst of the comparison, the gate's exit code and problems with the files.
    pub verdict: Verdict,
    pub judged: Option<Judged<'a>>,
    /// A run that was compared with nothing.
    pub report: Option<&'a Report>,
    /// The calibration of the machine.
    pub calibration: Option<&'a Calibration>,
    /// Machine time of everything that was found, in seconds.
    pub machine_s: Option<f64>,
    pub rate: Option<&'a Rate>,
    /// The gate's exit code in words, where it was kept.
    pub ended: Option<&'a str>,
    /// Files that could not be used or contradict each other, and why.
    pub problems: &'a [String],
    pub run_url: Option<&'a str>,
    pub trust: Trust,
}

/// The origin of the files that a comment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Written by the job itself.
    Own,
    /// Written by a job that ran the pull request's own code, perhaps a fork's.
    Foreign,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Rows of tables and lists, over all of the comment.
    rows: usize,
    /// Characters of a name or a sentence.
    chars: usize,
    notes: usize,
}

/// Tried in turn until the comment fits, then with more rows; the last always does.
const BUDGETS: [Budget; 6] = [
    Budget { rows: 1_000, chars: 600, notes: 20 },
    Budget { rows: 250, chars: 400, notes: 20 },
    Budget { rows: 80, chars: 300, notes: 10 },
    Budget { rows: 25, chars: 200, notes: 5 },
    Budget { rows: 8, chars: 120, notes: 2 },
    Budget { rows: 0, chars: 80, notes: 0 },
];

/// The hidden line that the comment is found again by. It proves nothing: anybody can write it.
pub fn marker(key: &str) -> String {
    format!("<!-- holdpoint:comment:{key} -->")
}

pub fn comment(c: &Comment<'_>) -> String {
    let mut too_many = usize::MAX;
    for budget in BUDGETS {
        let text = with(c, budget);
        if text.len() <= BYTES_MAX {
            return with_most_rows(c, budget, text, too_many);
        }
        too_many = budget.rows;
    }
    with(c, BUDGETS[BUDGETS.len() - 1])
}

/// The comment with as many rows as fit, from one that fits; fewer than `too_many`.
fn with_most_rows(c: &Comment<'_>, budget: Budget, fitting: String, too_many: usize) -> String {
    let all: usize = c.judged.map_or(0, |judged| judged.rows().len());
    let (mut fits, mut too_many, mut text) = (budget.rows, too_many.min(all + 1), fitting);
    while fits + 1 < too_many {
        let rows = fits.midpoint(too_many);
        let more = with(c, Budget { rows, ..budget });
        if more.len() <= BYTES_MAX {
            (fits, text) = (rows, more);
        } else {
            too_many = rows;
        }
    }
    text
}

fn with(c: &Comment<'_>, budget: Budget) -> String {
    let mut left_out = 0;
    let mut parts =
        vec![format!("{}\n{}### holdpoint: {}\n", marker(c.key), not_proof(c), c.verdict.as_str())];
    parts.push(problems(c, budget));
    parts.extend(nothing_judged(c));
    if let Some(judged) = c.judged {
        let (section, missing) = sections::judged(judged, budget);
        parts.push(section);
        left_out = missing;
    }
    parts.push(sections::machine(c, budget));
    parts.push(sections::reproduce(c));
    parts.push(foot(c, left_out));
    super::joined(&parts)
}

/// The sentence where nothing was judged.
fn nothing_judged(c: &Comment<'_>) -> Option<String> {
    if c.judged.is_some() {
        return None;
    }
    Some(match (c.ended, c.report) {
        (Some(ended), _) => format!("{ended}; the gate left no comparison.\n"),
        (None, Some(report)) => format!(
            "{} was measured and compared with nothing: there was no baseline, or the gate did not end.\n",
            escape::name(&clip(&report.suite, 80))
        ),
        (None, None) => {
            "The gate left no comparison, so there is no verdict: it did not end, or there was nothing to compare with.\n".to_owned()
        }
    })
}

/// The warning above a comment made from a stranger's files.
fn not_proof(c: &Comment<'_>) -> &'static str {
    match c.trust {
        Trust::Own => "",
        Trust::Foreign => {
            "> **Not proof**: the job that wrote these files also ran the pull request's own code, which could have written anything into them.\n\n"
        }
    }
}

fn problems(c: &Comment<'_>, budget: Budget) -> String {
    let line = |problem: &String| format!("- **problem**: {}\n", escape::prose(&clip(problem, budget.chars)));
    c.problems.iter().take(5).map(line).collect()
}

fn foot(c: &Comment<'_>, left_out: usize) -> String {
    let mut lines = Vec::new();
    if left_out > 0 {
        lines.push(format!(
            "{} left out, the least bad first, to stay below GitHub's 65 536 characters; all are in the job's artifacts.",
            match left_out {
                1 => "1 row is".to_owned(),
                n => format!("{} rows are", crate::units::count(n as u64)),
            }
        ));
    }
    if let Some(url) = c.run_url.filter(|url| is_plain_url(url)) {
        lines.push(format!("[The job, with its artifacts]({url})"));
    }
    if lines.is_empty() { String::new() } else { format!("<sub>{}</sub>\n", lines.join(" ")) }
}

/// An address that needs no escaping; it is the runner's, yet nothing else is put into a link.
fn is_plain_url(url: &str) -> bool {
    url.starts_with("https://") && url.chars().all(|c| c.is_ascii_alphanumeric() || "/._-:".contains(c))
}
