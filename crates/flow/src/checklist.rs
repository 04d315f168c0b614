//! `holdpoint checklist`: evidence into a checklist, between its markers.

use crate::Watch;
use crate::attest::release::{self, Verification, VerificationRequest};
use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use holdpoint_evidence::{EvidenceError, checklist};
use holdpoint_model::ExitCode;
use holdpoint_render::markdown;
use serde_json::json;
use std::path::{Component, Path, PathBuf};

/// A checklist to be filled.
#[derive(Clone, Debug)]
pub struct ChecklistRequest {
    pub file: PathBuf,
    /// The attestation or envelope to fill it from; it must verify.
    pub attestation: PathBuf,
    /// The release that it is judged for.
    pub against: VerificationRequest,
    /// Whether one is made where there is none.
    pub init: bool,
}

/// The checklist, or why the attestation is no evidence.
#[derive(Debug)]
pub enum ChecklistResult {
    Filled(Message),
    Unverified(Verification),
}

pub fn run(
    request: &ChecklistRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<ChecklistResult>, FlowError> {
    // What does not hold is no evidence, and fills nothing.
    let release::AttestationCheck { broken, missing, attestation, .. } =
        release::check(&request.attestation, &request.against)?;
    let attestation = match attestation {
        Some(attestation) if broken.is_empty() => attestation,
        _ => {
            let note = "nothing was filled in; make the attestation again with \"holdpoint attest create\"";
            return Ok(CommandResult::new(
                ChecklistResult::Unverified(Verification::broken(broken)),
                ExitCode::Unverified,
            )
            .with_note(note));
        }
    };
    let old = match request.init && !request.file.exists() {
        true => checklist::TEMPLATE.to_owned(),
        false => holdpoint_store::read_text(&request.file)?,
    };
    let up = to_folder(&request.file, &request.against.artifacts);
    let link = |path: &str| format!("{up}{path}");
    let new = checklist::fill(&old, |name| {
        markdown::checklist_block(name, &attestation, &missing, &link, checklist::UNTICKED)
    });
    let new = new.map_err(|error| match error {
        EvidenceError::Marker { .. } => {
            FlowError::File { path: request.file.clone(), what: error.to_string() }
        }
        other => other.into(),
    })?;
    let checklist::Filled { text: new, shown } = new;
    for line in &shown {
        let place = request.file.display();
        watch.note(&format!("{place}: line {line}: a marker that is shown as code was left alone"));
    }
    let is_new = new != old || !request.file.exists();
    if is_new {
        holdpoint_store::write_text(&request.file, &new)?;
    }
    let json = json!({
        "file": request.file.display().to_string(), "changed": is_new,
        "overall_status": attestation.summary.overall_status, "markers_left_alone": shown,
        "missing": missing,
    });
    let what = if is_new { "filled" } else { "unchanged" };
    let text = format!(
        "{what}: {}, overall status {}\n",
        request.file.display(),
        attestation.summary.overall_status
    );
    let exit = if missing.is_empty() { ExitCode::Ok } else { ExitCode::Unverified };
    let mut done = CommandResult::new(ChecklistResult::Filled(Message { json, text }), exit);
    done.notes.extend(missing.iter().map(|problem| format!("holdpoint: {problem}")));
    Ok(done)
}

/// From the checklist's folder to another, as a link has it.
fn to_folder(checklist: &Path, folder: &Path) -> String {
    let parts = |path: &Path| -> Vec<String> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut parts: Vec<String> = Vec::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(parts.pop()),
                Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
                _ => {}
            }
        }
        parts
    };
    let here = parts(
        &checklist.parent().map(PathBuf::from).filter(|p| !p.as_os_str().is_empty()).unwrap_or(".".into()),
    );
    let there = parts(folder);
    let shared = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
    let up = "../".repeat(here.len() - shared);
    let down: String = there[shared..].iter().map(|part| format!("{part}/")).collect();
    up + &down
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_checklist_to_the_artifacts() {
        let from = |checklist: &str, folder: &str| to_folder(Path::new(checklist), Path::new(folder));
        assert_eq!(from("CHECKLIST.md", "artifacts"), "artifacts/");
        assert_eq!(from("docs/release/CHECKLIST.md", "artifacts"), "../../artifacts/");
        assert_eq!(from("artifacts/CHECKLIST.md", "artifacts"), "");
        assert_eq!(from("a/../b/C.md", "./b/x"), "x/");
    }
}
