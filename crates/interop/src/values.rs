//! Numbers by name and unit, as tools write them that know no samples: a name that comes again is a further sample of the same.

use crate::Imported;
use crate::series::{ByName, Series};
use crate::unit::Unit;
use holdpoint_model::FileError;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Values {
    /// Times under the empty name, rates by their item.
    by_item: BTreeMap<String, ByName>,
    /// Names of other units, each with its unit.
    others: BTreeSet<(String, String)>,
}

impl Values {
    /// Adds a value; false for a rate that is not above 0.
    pub fn push(&mut self, name: &str, unit: &Unit, value: f64) -> bool {
        let Some(ms) = unit.to_ms(value) else { return false };
        let item = if let Unit::Rate(item) = unit { item.as_str() } else { "" };
        match self.by_item.get_mut(item) {
            Some(series) => series.push(name, ms),
            None => self.by_item.entry(item.to_owned()).or_default().push(name, ms),
        }
        true
    }

    /// Records a value that is neither a time nor a rate.
    pub fn leave_out(&mut self, name: &str, unit: &str) {
        self.others.insert((name.to_owned(), unit.trim().to_owned()));
    }

    /// Adds everything as metrics: medians, called `statistic` of the name.
    pub fn import(self, imported: &mut Imported, statistic: &str) -> Result<(), FileError> {
        for (item, series) in self.by_item {
            let unit = if item.is_empty() { Unit::Time(1.0) } else { Unit::Rate(item) };
            let metric = unit.metric(statistic);
            for Series { name, times_ms } in series.into_series() {
                let median = holdpoint_stats::median(&times_ms).unwrap_or_default();
                imported.add(name, &metric, median, times_ms)?;
            }
        }
        for (name, unit) in self.others {
            imported.leave_out(&name, if unit.is_empty() { "no unit" } else { &unit });
        }
        Ok(())
    }
}
