//! Annotations of a GitHub Actions job: commands to its runner, a line each.

use super::{name, sentence};
use crate::judged::{CheckRow, Judged};
use crate::text::{clean, clip};
use crate::units;
use holdpoint_model::Verdict;
use holdpoint_model::judgement::EVIDENCE_METRIC;

/// GitHub keeps the first ten errors and the first ten warnings of a step: one is the verdict, one may say how many are not shown.
const SHOWN_MAX: usize = 8;

/// The sentence about the whole; then an error for what regressed or is broken, a warning for what is undecided or skipped, a notice
/// for what is waived.  `location` is a file of the repository that all of them point to.
pub fn github(judged: Judged<'_>, location: Option<&str>) -> String {
    let rows = judged.rows();
    let level = Level::from_verdict(judged.judgement.verdict).unwrap_or(Level::Notice);
    let problem = rows.first().filter(|row| row.name() == EVIDENCE_METRIC);
    let first = problem.map(|row| format!("{}; ", row.check.reason)).unwrap_or_default();
    let message = format!("{}: {first}{}", judged.judgement.verdict.as_str(), judged.sentence());
    let title = format!("holdpoint {}", name(&judged.judgement.suite));
    let mut out = command(level, location, &title, &clip(&clean(&message), 2_000));
    for level in [Level::Error, Level::Warning, Level::Notice] {
        let of_level: Vec<&CheckRow<'_>> =
            rows.iter().filter(|row| Level::from_verdict(row.verdict) == Some(level)).collect();
        for row in of_level.iter().take(SHOWN_MAX) {
            let title = format!("{} {}", name(row.name()), row.verdict.as_str());
            out += &command(level, location, &title, &sentence(row));
        }
        if let Some(more) = of_level.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            let message = format!("and {} more; GitHub shows ten", units::count(more as u64));
            out += &command(level, location, &judged.judgement.suite, &message);
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Notice,
}

impl Level {
    fn from_verdict(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Broken | Verdict::Regressed => Some(Self::Error),
            Verdict::Inconclusive | Verdict::Skipped => Some(Self::Warning),
            Verdict::Waived => Some(Self::Notice),
            Verdict::Pass | Verdict::Improved => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

fn command(level: Level, location: Option<&str>, title: &str, message: &str) -> String {
    let file = location.map(|file| format!("file={},", property(&clean(file)))).unwrap_or_default();
    format!("::{} {file}title={}::{}\n", level.as_str(), property(title), data(message))
}

/// As the runner reads it back. A bracket behind two hashes would be a command of the old form, anywhere in a line.
fn data(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace("##[", "#%23[")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
