//! The page of a search for a slow commit.

use super::{escape, joined, section, sides, tables};
use crate::summary::bisection::{self, describe_bisection};
use crate::table::EmptyColumns;
use holdpoint_model::Bisection;

pub fn bisection(b: &Bisection) -> String {
    let (word, sentence) = describe_bisection(b);
    let title = tables::title(&format!("{}, bisect", b.suite), word, &sentence);
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
        title,
        section("Steps", bisection::steps_table(b).markdown(EmptyColumns::Drop)),
        section("Left out", reasons),
        section("Notes", b.notes.iter().map(|note| format!("- {}\n", escape::prose(note))).collect()),
        bisection::judged(b).map(sides::page).unwrap_or_default(),
    ])
}
