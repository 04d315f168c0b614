//! The table after a search for a slow commit.

use super::{judgement, last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::bisection::{self, describe_bisection};
use crate::text::{self, entry};
use crate::units;
use holdpoint_model::Bisection;

pub fn bisection(b: &Bisection, style: Style) -> String {
    let (word, sentence) = describe_bisection(b);
    let ink = if b.culprits.len() == 1 { Ink::Strong } else { Ink::Doubt };
    let reasons = bisection::left_out(b).map(|step| {
        entry(
            style,
            Ink::Doubt,
            step.outcome.as_str(),
            &format!("{}: {}", bisection::short(&step.commit), step.reason),
        )
    });
    paragraphs(&[
        head(b, style),
        bisection::steps_table(b).render(style),
        reasons.chain(b.notes.iter().map(|note| entry(style, Ink::Calm, "note", note))).collect(),
        bisection::judged(b).map(|judged| judgement(judged, style)).unwrap_or_default(),
        last_line(style, ink, word, &sentence),
    ])
}

fn head(b: &Bisection, style: Style) -> String {
    let facts = [
        Some(format!("bisect {} → {}", bisection::short(&b.good), bisection::short(&b.bad))),
        b.workload.clone(),
        Some(format!("tolerance {}", units::setting(b.tolerance))),
        b.line.map(|line| format!("line {}", units::share(line))),
    ];
    text::heading(style, &b.suite, &facts)
}
