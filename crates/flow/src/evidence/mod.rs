//! The files that commands leave as evidence, and their seals.

pub mod artifacts;
pub(crate) mod sealing;

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
