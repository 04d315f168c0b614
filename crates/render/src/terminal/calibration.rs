//! The table after a calibration.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::calibration::{self, describe_calibration, workloads_table};
use crate::text::{self, entry};
use holdpoint_model::Calibration;

pub fn calibration(c: &Calibration, style: Style) -> String {
    let (word, sentence) = describe_calibration(c);
    let notes = calibration::notes(c);
    let notes = notes.iter().map(|(label, note)| entry(style, Ink::Doubt, label, note));
    paragraphs(&[
        head(c, style),
        workloads_table(c).render(style),
        notes.collect(),
        last_line(style, calibration::ink(c), &word, &sentence),
    ])
}

fn head(c: &Calibration, style: Style) -> String {
    let mut facts = vec![Some("calibration".to_owned())];
    facts.extend(calibration::facts(c).map(Some));
    facts.push(Some(c.machine.describe()));
    text::heading(style, &c.suite, &facts)
}
