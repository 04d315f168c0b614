//! Everything that decides besides the suite, read before any code of a change runs: a build or a worker that writes to these
//! files later has no say in the verdict.

use crate::error::FlowError;
use crate::evidence::sealing;
use crate::histories;
use crate::request::EvidenceFiles;
use crate::waivers::InForce;
use holdpoint_evidence::SigningKey;
use holdpoint_gate::Judgement;
use holdpoint_history::Location;
use holdpoint_measure::machine::machine_for;
use holdpoint_model::{Calibration, Suite};
use std::path::Path;

pub struct Rules {
    /// Signs the seal.
    pub key: Option<SigningKey>,
    pub waivers: InForce,
    /// Where runs are added.
    pub history: Option<Location>,
    calibration: Calibrations,
}

impl Rules {
    /// The files that the request and the suite name.
    pub fn read(files: &EvidenceFiles, suite: &Suite) -> Result<Self, FlowError> {
        Ok(Self {
            key: sealing::read_key(files.seal_key.as_deref())?,
            waivers: InForce::read(files.waivers.as_deref())?,
            history: histories::wanted(&files.history, suite),
            calibration: Calibrations::read(&files.calibration_dir, suite),
        })
    }

    /// Adds waivers and the outcome of `calibrate` to a judgement of two sides.
    pub(crate) fn apply_to_sides(&self, judgement: &mut Judgement) {
        self.waivers.apply(judgement);
        self.calibration.add_to(judgement);
    }
}

/// The outcome of `calibrate` for a suite on this machine.
enum Calibrations {
    None,
    Found(Box<Calibration>),
    Unusable(String),
}

impl Calibrations {
    fn read(dir: &Path, suite: &Suite) -> Self {
        // Asking for a device's name takes a while.
        if !dir.is_dir() {
            return Self::None;
        }
        let path = holdpoint_store::baseline_path(dir, &suite.name, &machine_for(suite).fingerprint);
        if !path.exists() {
            return Self::None;
        }
        match holdpoint_store::read_document::<Calibration>(&path) {
            Ok(calibration) if calibration.is_evidence() => Self::Found(Box::new(calibration)),
            Ok(_) => Self::Unusable(format!(
                "the calibration {} has failed trials and says nothing; calibrate again: \"holdpoint calibrate\"",
                path.display()
            )),
            Err(error) => Self::Unusable(format!("the calibration could not be read: {error}")),
        }
    }

    fn add_to(&self, judgement: &mut Judgement) {
        match self {
            Self::None => {}
            Self::Found(calibration) => judgement.add_calibration(calibration),
            Self::Unusable(why) => judgement.add_note(why.clone()),
        }
    }
}
