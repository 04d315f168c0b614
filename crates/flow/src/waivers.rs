//! Waivers as they hold today: the one place that asks the clock which day it is.

use crate::error::FlowError;
use holdpoint_gate::{Judgement, waive, waivers};
use holdpoint_measure::clock;
use holdpoint_model::{Date, Waivers};
use holdpoint_store::StoreError;
use std::path::Path;

/// Waivers and the day they are used on.
pub(crate) struct InForce {
    waivers: Waivers,
    today: Date,
}

/// Which day it is.
pub fn today() -> Result<Date, FlowError> {
    Date::parse(&clock::timestamp_utc())
        .ok_or_else(|| FlowError::Internal("the clock names no day".to_owned()))
}

impl InForce {
    /// The file that was named; nothing is waived where none was.
    pub fn read(named: Option<&Path>) -> Result<Self, FlowError> {
        let today = today()?;
        let waivers = match named {
            Some(path) => {
                let read = holdpoint_store::read_waivers(path)?;
                waivers::check_expiry(&read, today)
                    .map_err(|source| StoreError::Toml { path: path.to_owned(), source })?;
                read
            }
            None => Waivers::default(),
        };
        Ok(Self { waivers, today })
    }

    /// Applies them to a judgement.
    pub fn apply(&self, judgement: &mut Judgement) {
        waive(judgement, &self.waivers, self.today);
    }
}
