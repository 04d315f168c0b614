//! What can be typed about continuous integration.

use super::comment::{CommentArgs, NotifyArgs};
use clap::Subcommand;

/// `holdpoint ci`.
#[derive(Debug, clap::Args)]
pub struct CiArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CiCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum CiCommand {
    /// Say how it came out in one comment on the pull request, updated in place
    Comment(CommentArgs),
    /// Tell people by mail and webhooks how it came out
    Notify(NotifyArgs),
}
