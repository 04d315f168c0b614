//! Documents in the formats of other programs that keep or draw numbers.

use super::imports;
use crate::error::FlowError;
use holdpoint_interop::export::{self, Export};
use holdpoint_model::document::AnyDocument;
use holdpoint_render::json_for_terminal;
use std::path::Path;

/// The forms of programs that keep or draw numbers (docs/imports.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    Bmf,
    GithubActionBenchmark,
    Openmetrics,
    Csv,
    Parquet,
}

impl ExportForm {
    /// Whether it holds samples and nothing else.
    pub(crate) fn is_samples(self) -> bool {
        matches!(self, Self::Csv | Self::Parquet)
    }
}

/// A report, a comparison, an ab.json or a file of another tool in such a format; and notes for its reader.
pub fn export(path: &Path, form: ExportForm) -> Result<(Vec<u8>, Vec<String>), FlowError> {
    let refuse = |what: &str| Err(FlowError::File { path: path.to_owned(), what: what.to_owned() });
    let (report, notes);
    let document = match holdpoint_store::read_any(path) {
        Ok(document) => {
            notes = Vec::new();
            document
        }
        Err(error) => {
            (report, notes) =
                imports::read_report(path).map_err(|foreign| imports::clearer(error, foreign))?;
            AnyDocument::Report(Box::new(report))
        }
    };
    let export = match &document {
        AnyDocument::Report(report) => Export::from(&**report),
        AnyDocument::Ab(sides) => Export::from(&**sides),
        AnyDocument::Comparison(judgement) => Export::from(&**judgement),
        _ => return refuse("it has no times to export; give a report, a comparison or an ab.json"),
    };
    if export.values.is_empty() {
        return refuse("nothing was measured in it");
    }
    if form.is_samples() && export.samples.is_empty() {
        return refuse("a comparison has no samples; give its report.json or ab.json");
    }
    let bytes = match form {
        ExportForm::Bmf => pretty(&export::bmf(&export))?,
        ExportForm::GithubActionBenchmark => pretty(&export::github_action_benchmark(&export))?,
        ExportForm::Openmetrics => export::openmetrics(&export).into_bytes(),
        ExportForm::Csv => export::csv(&export).into_bytes(),
        ExportForm::Parquet => export::parquet(&export),
    };
    Ok((bytes, notes))
}

fn pretty(value: &serde_json::Value) -> Result<Vec<u8>, FlowError> {
    let text =
        holdpoint_model::json::to_pretty(value).map_err(|error| FlowError::Internal(error.to_string()))?;
    Ok(json_for_terminal(&text).into_bytes())
}
