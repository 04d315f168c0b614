//! The `[history]` table of a suite: where its runs are kept.

use crate::limits::is_said;
use crate::toml_file::{TomlError, invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the runs of a suite are kept. `--history` overrides it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistorySettings {
    /// A file relative to the suite's folder, `postgres://…`, or a ref of the repository such as `git:refs/holdpoint/history`.
    pub store: String,
}

impl HistorySettings {
    pub(super) fn check(&self) -> Result<(), TomlError> {
        if is_said(&self.store) {
            return Ok(());
        }
        invalid("history", "store is empty; a file is wanted, such as .holdpoint/history.db")
    }
}
