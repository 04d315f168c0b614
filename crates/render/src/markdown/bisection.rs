//! The page of a search for a slow commit.

use super::tables::{self, left, right};
use super::{ab, escape, joined, section};
use crate::summary::bisection as said;
use holdpoint_model::Bisection;

/// The commits that were looked at, and the one that did it.
#[must_use]
pub fn bisection(b: &Bisection) -> String {
    let (word, sentence) = said::of_bisection(b);
    let title = format!(
        "# holdpoint: {}, bisect\n\n**{word}**: {}\n",
        escape::prose(&b.suite),
        escape::prose(&sentence)
    );
    let reasons: String = said::left_out(b)
        .map(|step| {
            format!(
                "- {} `{}`: {}\n",
                step.outcome.as_str(),
                said::short(&step.commit),
                escape::prose(&step.reason)
            )
        })
        .collect();
    joined(&[
        title,
        section("Steps", steps(b)),
        section("Left out", reasons),
        said::judged(b).map(ab::sides).unwrap_or_default(),
    ])
}

fn steps(b: &Bisection) -> String {
    let mut columns = vec![left("found"), left("commit"), left("subject")];
    columns.extend(said::TITLES.map(right));
    let rows = b.steps.iter().map(|step| {
        let mut row = vec![step.outcome.as_str().to_owned()];
        row.push(format!("`{}`", said::short(&step.commit)));
        row.push(escape::prose(&step.commit.subject));
        row.extend(said::cells(step));
        row
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}
