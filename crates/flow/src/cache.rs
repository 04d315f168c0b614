//! `holdpoint cache`: the builds of revisions that are kept, and their removal.

use crate::command_result::CommandResult;
use crate::error::FlowError;
use holdpoint_measure::builds::{self, cache_dir};
use holdpoint_model::{CacheListing, CachedBuild, ExitCode};
use std::time::Duration;

/// What to do with the cache.
#[derive(Clone, Copy, Debug)]
pub enum CacheRequest {
    List,
    /// Removes the builds that have not been used for this long; without a time all.
    Clean {
        older_than: Option<Duration>,
    },
}

pub fn run(request: &CacheRequest) -> Result<CommandResult<CacheListing>, FlowError> {
    let dir = cache_dir();
    let listing = match request {
        CacheRequest::List => builds::list(&dir)?,
        CacheRequest::Clean { older_than } => builds::clean(&dir, |build: &CachedBuild| {
            older_than.is_none_or(|age| build.unused_s >= age.as_secs_f64())
        })?,
    };
    Ok(CommandResult::new(listing, ExitCode::Ok))
}
