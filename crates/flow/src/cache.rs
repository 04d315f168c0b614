//! `holdpoint cache`: the builds of revisions that are kept, and their removal.

use crate::done::Done;
use crate::error::FlowError;
use crate::options::{CacheArgs, CacheCommand};
use holdpoint_measure::builds::{self, cache_dir};
use holdpoint_model::{CacheListing, CachedBuild, ExitCode};

pub fn run(args: &CacheArgs) -> Result<Done<CacheListing>, FlowError> {
    let dir = cache_dir();
    let listing = match &args.command {
        None => builds::list(&dir)?,
        Some(CacheCommand::Clean { older_than, all }) => {
            let is_old = |build: &CachedBuild| *all || build.unused_s >= older_than.as_secs_f64();
            builds::clean(&dir, is_old)?
        }
    };
    Ok(Done::new(listing, ExitCode::Ok))
}
