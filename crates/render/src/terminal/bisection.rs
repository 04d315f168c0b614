//! The table after a search for a slow commit.

use super::{judgement, last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::bisection as said;
use crate::table::{Cell, Grid, names, numbers, words};
use crate::text::{self, entry};
use crate::units;
use holdpoint_model::{Bisection, StepOutcome};

/// The commits that were looked at, and the one that did it.
#[must_use]
pub fn bisection(b: &Bisection, style: Style) -> String {
    let (word, sentence) = said::of_bisection(b);
    let ink = if b.culprits.len() == 1 { Ink::Strong } else { Ink::Doubt };
    let reasons = said::left_out(b).map(|step| {
        entry(
            style,
            Ink::Doubt,
            step.outcome.as_str(),
            &format!("{}: {}", said::short(&step.commit), step.reason),
        )
    });
    paragraphs(&[
        head(b, style),
        table(b, style),
        reasons.collect(),
        said::judged(b).map(|judged| judgement(judged, style)).unwrap_or_default(),
        last_line(style, ink, word, &sentence),
    ])
}

fn head(b: &Bisection, style: Style) -> String {
    let facts = [
        Some(format!("bisect {} → {}", said::short(&b.good), said::short(&b.bad))),
        b.workload.clone(),
        Some(format!("tolerance {}", units::setting(b.tolerance))),
    ];
    text::heading(style, &b.suite, &facts)
}

fn table(b: &Bisection, style: Style) -> String {
    let mut columns = vec![words("found"), words("commit"), names("subject")];
    columns.extend(said::TITLES.into_iter().zip([0, 1, 2]).map(|(title, drop)| numbers(title).drop(drop)));
    let mut grid = Grid::new(&columns);
    for step in &b.steps {
        let ink = match step.outcome {
            StepOutcome::Slower => Ink::Bad,
            StepOutcome::NotSlower => Ink::Calm,
            _ => Ink::Doubt,
        };
        let mut row = vec![Cell::inked(ink, step.outcome.as_str())];
        row.extend([said::short(&step.commit), &step.commit.subject].map(Cell::new));
        row.extend(said::cells(step).iter().map(|text| Cell::new(text)));
        grid.push(row);
    }
    grid.render(style)
}
