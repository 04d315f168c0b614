//! The table after a calibration.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::calibration as said;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{self, entry};
use holdpoint_model::{Calibrated, Calibration};

/// In the order of the titles: which number goes first where the terminal is narrow. The first one stays.
const DROPS: [u8; 7] = [0, 2, 1, 4, 6, 8, 7];
/// What is seen in how much time: the last column goes first, as the title of the first speaks for all.
const TIME_DROP: u8 = 5;

/// How often the rule was wrong, and what it sees, by workload.
#[must_use]
pub fn calibration(c: &Calibration, style: Style) -> String {
    let (word, sentence) = said::of_calibration(c);
    let notes = said::notes(c);
    let notes = notes.iter().map(|(label, note)| entry(style, Ink::Doubt, label, note));
    paragraphs(&[
        head(c, style),
        table(c, style),
        notes.collect(),
        last_line(style, ink(c), &word, &sentence),
    ])
}

/// An alarm where nothing changed is cause for doubt; how many are too many is not for a table to say.
fn ink(c: &Calibration) -> Ink {
    match c.false_alarms {
        _ if said::is_injected(c) => Ink::Strong,
        0 if c.trials > 0 => Ink::Calm,
        _ => Ink::Doubt,
    }
}

fn head(c: &Calibration, style: Style) -> String {
    let mut facts = vec![Some("calibration".to_owned())];
    facts.extend(said::facts(c).map(Some));
    facts.push(text::machine(Some(&c.machine)));
    text::heading(style, &c.suite, &facts)
}

fn table(c: &Calibration, style: Style) -> String {
    let times_s = said::times_s(c);
    let mut columns: Vec<Column> = vec![names("workload")];
    columns.extend(said::titles(c).into_iter().zip(DROPS).map(|(title, drop)| numbers(title).drop(drop)));
    columns.extend(said::time_titles(&times_s).map(|title| numbers("").titled(title).drop(TIME_DROP)));
    columns.push(words("remark").drop(3));
    let mut grid = Grid::new(&columns);
    for (name, w) in &c.workloads {
        let mut row = vec![Cell::new(name)];
        row.extend(cells(c, w, &times_s));
        row.push(Cell::inked(Ink::Doubt, said::mark(w)));
        grid.push(row);
    }
    grid.render(style)
}

fn cells<'a>(c: &'a Calibration, w: &'a Calibrated, times_s: &[f64]) -> impl Iterator<Item = Cell> {
    let wrong = !said::is_injected(c) && w.false_alarms > 0;
    let ink = move |i| if i == 0 && wrong { Ink::Doubt } else { Ink::Plain };
    said::cells(c, w, times_s).into_iter().enumerate().map(move |(i, text)| Cell::inked(ink(i), &text))
}
