//! Flags of `ci report` and `ci notify`.

use holdpoint_flow::ci::{NotifyRequest, ReportRequest};
use holdpoint_render::judged::Rate;
use std::path::PathBuf;

/// `holdpoint ci report`.
#[derive(Debug, clap::Args)]
pub struct CiReportArgs {
    /// Folder that `gate`, `ab` or `compare` wrote
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Name of this gate's comment, if several gates comment on one pull request
    #[arg(long, value_name = "NAME", default_value = "holdpoint", value_parser = key)]
    pub key: String,
    /// Print the comment and post nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also append it to the job's summary, $GITHUB_STEP_SUMMARY
    #[arg(long)]
    pub summary: bool,
    /// Also set this check on the commit; it is neutral if the result is inconclusive
    #[arg(long, value_name = "NAME", requires = "gate_result")]
    pub check: Option<String>,
    /// Result of the job that measured: success, failure, cancelled or skipped. The check passes only for `success`
    #[arg(long, value_name = "RESULT")]
    pub gate_result: Option<String>,
    /// The decision of `ci guard`: run, skip or refuse; exits with 1 for all but a run that passed and a skip
    #[arg(long, value_name = "DECISION", requires = "gate_result")]
    pub decision: Option<String>,
    /// The guard's reason
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
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
    /// Folder that `gate`, `ab` or `compare` wrote
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Conclusion of the run that wrote the folder, or one folder per gate: success, failure, …; gates that passed are left out
    #[arg(long, value_name = "RESULT")]
    pub conclusion: Option<String>,
    /// Recipients, and the verdicts they are notified of (docs/notify.md)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,
}

requests! {
    CiReportArgs => ReportRequest {
        artifacts, key, dry_run, summary, check, gate_result, decision, reason, rate, pr, sha, author,
    }
    NotifyArgs => NotifyRequest { artifacts, conclusion, config, dry_run }
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
    // A workflow hands on what an earlier job has decided, which may be nothing.
    if text.is_empty() {
        return Ok(String::new());
    }
    let is_sha = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_sha { Ok(text.to_ascii_lowercase()) } else { Err("a full commit hash is wanted".to_owned()) }
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "a number and a currency are wanted, such as '2.49 USD'".to_owned())
}
