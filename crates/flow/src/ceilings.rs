//! Ceilings that were measured here before: where they are kept, and when they are too old.

use crate::error::FlowError;
use holdpoint_gate::roofline::{Mismatch, analyse, ceilings_from};
use holdpoint_measure::builds::cache_dir;
use holdpoint_measure::clock;
use holdpoint_model::{Report, Roofline};
use std::path::{Path, PathBuf};

/// A week: clocks, drivers and neighbours change, and measuring again takes half a minute.
const DAYS_MAX: f64 = 7.0;

/// Where the ceilings of a report's machine, device and driver are kept; none where the report names no machine.
pub(crate) fn kept_path(report: &Report) -> Option<PathBuf> {
    let machine = report.machine.as_ref()?;
    let driver = report.toolchain.cuda.as_ref().map_or("cpu", |cuda| &cuda.driver);
    let safe = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    let name = format!("{}_{}.json", safe(&machine.fingerprint), safe(driver));
    Some(cache_dir().join("ceilings").join(name))
}

/// A report's roofline, with the ceilings in a file or those that are kept.
pub fn roofline(report: &Report, ceilings: Option<&Path>) -> Result<Roofline, FlowError> {
    let remedy =
        "measure them on that machine with \"holdpoint roofline --measure\", or give --ceilings REPORT";
    let nowhere = || FlowError::Inconclusive(Mismatch::NoMachine.to_string());
    let path = match ceilings {
        Some(path) => path.to_owned(),
        None => kept_path(report).ok_or_else(nowhere)?,
    };
    if ceilings.is_none() && !path.exists() {
        let machine = report.machine.as_ref().ok_or_else(nowhere)?;
        let driver = report.toolchain.cuda.as_ref().map(|cuda| format!(" with driver {}", cuda.driver));
        return Err(FlowError::Inconclusive(format!(
            "no ceilings are kept for {}{}; {remedy}",
            machine.describe(),
            driver.unwrap_or_default()
        )));
    }
    let measured = holdpoint_store::read_document::<Report>(&path)?;
    let age_days = clock::days_since(&measured.timestamp_utc);
    if ceilings.is_none() && age_days.is_none_or(|days| days > DAYS_MAX) {
        return Err(FlowError::Inconclusive(format!(
            "the ceilings in {} are of {}, more than {DAYS_MAX} days ago; {remedy}",
            path.display(),
            measured.timestamp_utc
        )));
    }
    let of = ceilings_from(&measured).map_err(|e| FlowError::File { path, what: e.to_string() })?;
    analyse(report, of).map_err(|mismatch| FlowError::Inconclusive(format!("{mismatch}; {remedy}")))
}
