//! Shared by several commands: folders of evidence, seals, suites, the rules that decide, ceilings.

pub mod artifacts;
pub mod ceilings;
pub mod engines;
pub mod exports;
pub mod histories;
pub mod imports;
pub mod links;
mod person;
pub mod rules;
pub mod sealing;
pub mod suites;
pub mod tensors;
pub mod waivers;

pub use person::person;

use crate::error::FlowError;
use serde::Serialize;
use std::path::Path;

/// Writes what was measured; where that fails, into the folder for temporary files: it is not lost.
pub fn save(path: &Path, document: &impl Serialize) -> Result<(), FlowError> {
    let Err(source) = holdpoint_store::write_json(path, document) else {
        return Ok(());
    };
    let refuge = std::env::temp_dir().join(format!("holdpoint-report-{}.json", std::process::id()));
    match holdpoint_store::write_json(&refuge, document) {
        Ok(()) => Err(FlowError::Kept { source, refuge }),
        Err(_) => Err(source.into()),
    }
}
