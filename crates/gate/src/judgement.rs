//! A decision of this crate. Whatever a file states is a [`Stated`] until it has been judged again here.

use holdpoint_model::{Calibrated, Calibration, Stated};
use serde::Serialize;
use std::ops::Deref;

/// A comparison that was judged here. Other crates can read it, write it to a file and add notes; none of them can make one or change
/// its verdicts.
///
/// ```compile_fail,E0423
/// fn pass(stated: holdpoint_model::Stated) -> holdpoint_gate::Judgement {
///     holdpoint_gate::Judgement(stated)
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn read(text: &str) -> holdpoint_gate::Judgement {
///     serde_json::from_str(text).unwrap()
/// }
/// ```
///
/// ```compile_fail,E0594
/// fn pass(mut judgement: holdpoint_gate::Judgement) {
///     judgement.verdict = holdpoint_model::Verdict::Pass;
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Judgement(Stated);

impl Judgement {
    pub(crate) fn new(stated: Stated) -> Self {
        Self(stated)
    }

    pub(crate) fn edit(&mut self) -> &mut Stated {
        &mut self.0
    }

    /// A remark for the reader.
    pub fn add_note(&mut self, note: String) {
        self.0.notes.push(note);
    }

    /// Shows beside each workload what comparing the suite with itself found; no verdict depends on it.
    pub fn add_calibration(&mut self, calibration: &Calibration) {
        for check in self.0.checks.iter_mut().filter(|check| check.metric_keys().is_none()) {
            let calibrated =
                check.workload.as_ref().and_then(|name| calibration.workloads.get(name).cloned());
            if let Some(paired) = &mut check.paired {
                paired.calibrated = calibrated.filter(Calibrated::is_evidence);
            }
        }
    }

    /// The same as a file holds it.
    pub fn into_stated(self) -> Stated {
        self.0
    }
}

impl Deref for Judgement {
    type Target = Stated;

    fn deref(&self) -> &Stated {
        &self.0
    }
}
