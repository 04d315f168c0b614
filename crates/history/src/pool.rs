//! Sessions with a database: each thread that uses it has one to itself, so readers never wait for each other or for a writer.

use crate::error::HistoryError;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that are kept for later. More may be in use at once: as many as threads ask.
const IDLE_MAX: usize = 8;

pub(crate) struct Pool<S> {
    idle: Mutex<Vec<S>>,
}

impl<S> Pool<S> {
    pub fn new(first: S) -> Self {
        Self { idle: Mutex::new(vec![first]) }
    }

    /// Does something in a session that is idle, or else in a new one.
    pub fn with<T>(
        &self,
        open: impl FnOnce() -> Result<S, HistoryError>,
        act: impl FnOnce(&mut S) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let idle = self.idle().pop();
        let mut session = idle.map_or_else(open, Ok)?;
        let outcome = act(&mut session);
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(session);
        }
        outcome
    }

    /// A panic elsewhere leaves the list as it is.
    fn idle(&self) -> MutexGuard<'_, Vec<S>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
