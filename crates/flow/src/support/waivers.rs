//! Waivers as they hold today: the one place that asks the clock which day it is.

use crate::error::FlowError;
use crate::options::WaiversArg;
use holdpoint_gate::{Judgement, waive, waivers};
use holdpoint_measure::clock;
use holdpoint_model::{Date, Waivers};
use holdpoint_store::StoreError;

/// Waivers and the day they are used on.
pub struct InForce {
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
    pub fn read(args: &WaiversArg) -> Result<Self, FlowError> {
        let today = today()?;
        let waivers = match &args.waivers {
            Some(path) => {
                let read = holdpoint_store::read_waivers(path)?;
                waivers::check_expiry(&read, today)
                    .map_err(|source| StoreError::Toml { path: path.clone(), source })?;
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
