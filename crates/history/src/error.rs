//! Why a store cannot be used, in one line each.

use crate::schema::VERSION;

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("{place}: there is no history yet; \"holdpoint history add\" makes one")]
    Missing { place: String },
    #[error("{place}: it is not a history: {what}")]
    Foreign { place: String, what: String },
    #[error(
        "{place}: the history has version {found}; this holdpoint knows up to {VERSION}: update holdpoint"
    )]
    Newer { place: String, found: u32 },
    #[error(
        "{place}: the history has version {found}, this holdpoint writes {VERSION}: run \"holdpoint history migrate\" once"
    )]
    Older { place: String, found: u32 },
    #[error("{place}: {what}")]
    Place { place: String, what: String },
    #[error("{place}: series {id:?} is not there; \"holdpoint history list\" shows those that are")]
    NoSeries { place: String, id: String },
    #[error("{place}: {what}; nothing was changed")]
    Failed { place: String, what: String },
    #[error("{place}: {what}")]
    Unfinished { place: String, what: String },
}

impl HistoryError {
    /// Whether the user's input is the reason, not the machine or the server.
    pub fn is_input(&self) -> bool {
        !matches!(self, Self::Failed { .. } | Self::Unfinished { .. })
    }
}
