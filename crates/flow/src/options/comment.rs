//! Options of `ci comment` and `ci notify`.
use holdpoint_render::judged::Rate;
use std::path::PathBuf;

/// `holdpoint ci comment`.
#[derive(Debug, clap::Args)]
pub struct CommentArgs {
    /// Folder with what `gate`, `ab` or `compare` left
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Tells the comments of several gates on one pull request apart
    #[arg(long, value_name = "NAME", default_value = "holdpoint", value_parser = key)]
    pub key: String,
    /// Print the comment and post nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also append it to the job's summary, $GITHUB_STEP_SUMMARY
    #[arg(long)]
    pub summary: bool,
    /// Cost of an hour of machine time, such as '2.49 USD'
    #[arg(long, value_name = "MONEY", value_parser = rate)]
    pub rate: Option<Rate>,
    /// The pull request [default: the event's]; not in a workflow_run, where it is looked up by the run's commit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub pr: Option<u64>,
    /// The commit that was measured [default: the event's]; nothing is posted if the pull request has moved on; not in a
    /// workflow_run
    #[arg(long, value_name = "SHA", value_parser = sha)]
    pub sha: Option<String>,
    /// Login that posts the comment; only its comment is updated [default: the token's owner, or github-actions[bot]]
    #[arg(long, value_name = "LOGIN")]
    pub author: Option<String>,
}

/// `holdpoint ci notify`.
#[derive(Debug, clap::Args)]
pub struct NotifyArgs {
    /// Folder with what `gate`, `ab` or `compare` left
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Recipients, and the verdicts they are notified of (docs/notify.md)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Longest key.
const KEY_CHARS_MAX: usize = 64;

/// A key stands in a comment of HTML.
fn key(text: &str) -> Result<String, String> {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_key =
        (1..=KEY_CHARS_MAX).contains(&text.len()) && text.chars().all(is_usable) && !text.contains("--");
    if is_key {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, and single _ . - between them".to_owned())
    }
}

fn sha(text: &str) -> Result<String, String> {
    let is_sha = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_sha { Ok(text.to_ascii_lowercase()) } else { Err("a full commit hash is wanted".to_owned()) }
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "a number and a currency are wanted, such as '2.49 USD'".to_owned())
}
