//! The page of a search for a slow commit.

use super::{escape, joined, section, sides, tables};
use crate::summary::bisection::{self, describe_bisection};
use crate::table::EmptyColumns;
use holdpoint_model::Bisection;

pub fn bisection(b: &Bisection) -> String {
    let (word, sentence) = describe_bisection(b);
    let title = tables::title(&format!("{}, bisect", b.suite), word, &sentence);
    let culprit = bisection::judged(b).map(sides::page).unwrap_or_default();
    joined(&[title, bisection_sections(b), culprit])
}

/// The search itself, without the title and the comparison at its end.
pub(crate) fn bisection_sections(b: &Bisection) -> String {
    let reasons: String = bisection::left_out(b)
        .map(|step| {
            format!(
                "- {} `{}`: {}\n",
                step.outcome.as_str(),
                bisection::short(&step.commit),
                escape::prose(&step.reason)
            )
        })
        .collect();
    joined(&[
        section("Steps", bisection::steps_table(b).markdown(EmptyColumns::Drop)),
        section("Left out", reasons),
        section("Notes", b.notes.iter().map(|note| format!("- {}\n", escape::prose(note))).collect()),
    ])
}
