//! Builds in the user's cache, as `holdpoint cache` lists them.

use serde::Serialize;

/// The builds in a cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheListing {
    /// The folder of the cache.
    pub folder: String,
    /// Builds that are there, those used last first.
    pub builds: Vec<CachedBuild>,
    /// Builds that were there and have just been removed.
    pub removed: Vec<CachedBuild>,
}

/// One checkout of a repository and what was built in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CachedBuild {
    /// Root of the repository; absent in the cache of an earlier version.
    pub repository: Option<String>,
    /// Absent where the last build failed.
    pub commit: Option<String>,
    /// The build command; absent where there is nothing to build.
    pub command: Option<Vec<String>>,
    /// The folder in the cache.
    pub path: String,
    pub size_bytes: u64,
    /// Seconds since it was built.
    pub age_s: f64,
    /// Seconds since it was last used.
    pub unused_s: f64,
    /// Whether a running holdpoint uses it.
    pub in_use: bool,
}
