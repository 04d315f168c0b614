//! Flags of `gate`: which of its questions they ask, and which of them belong to another one.

use super::baseline::BaselineDir;
use super::decide::{DecideArgs, first_given};
use super::groups::{HistoryArg, SealArgs, SuiteArg, WaiversArg};
use super::inspect::profile_on;
use super::policy::PolicyArgs;
use holdpoint_flow::FlowError;
use holdpoint_flow::baseline::FOLDER_DEFAULT;
use holdpoint_flow::gate::{BaselineQuestion, GateQuestion, GateRequest, GateSides};
use holdpoint_flow::request::{
    EvidenceFiles, HistoryChoice, Policy, PolicyChoice, ProfileOn, SidesRequest, check_policy_of_sides,
};
use std::path::{Path, PathBuf};

/// Examples of `holdpoint gate -h`.
const GATE_EXAMPLES: &str = "\
Examples:
  holdpoint gate                     your change against the default branch, side by side
  holdpoint gate --against v1.0      against another revision
  holdpoint gate --baseline FILE     against a stored baseline
  holdpoint gate --history           against the history of its metrics, which it adds to";

/// `holdpoint gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = GATE_EXAMPLES, mut_arg("baseline_dir", |flag| flag.hide(true)), mut_arg("seal_key", |flag| flag.hide(true)))]
pub struct GateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Compare with this git revision, side by side [default: where your change left the default branch, if the suite is built
    /// from the repository; else this machine's stored baseline]
    #[arg(long, value_name = "REV")]
    pub against: Option<String>,
    /// Side by side: build and measure the work tree in place, even where no tracked file differs from HEAD
    #[arg(long, hide = true)]
    pub dirty: bool,
    /// Side by side: continue an interrupted gate
    #[arg(long, hide = true)]
    pub resume: bool,
    /// Compare with this stored baseline
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
    /// How to decide.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Decision between revisions.
    #[command(flatten)]
    pub decision: DecideArgs,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Folder with the outcomes of `calibrate`
    #[arg(long, value_name = "DIR", hide = true, default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Folder for the samples (report.json or ab.json), comparison.json and pages
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Profile the kernels of what regressed, into the same folder
    #[arg(long, value_parser = profile_on(), value_name = "WHEN", hide = true, default_value = "never")]
    pub profile_on: ProfileOn,
    /// Compare with this machine's stored baseline; if there is none yet, end as inconclusive instead of recording one
    #[arg(long)]
    pub require_baseline: bool,
    /// Runs to add when the first is slower than allowed; the median of all is judged [default: 2]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub confirm: Option<u32>,
    /// Runs to record if there is no baseline yet [default: 10]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// The history. Without a baseline or another revision, the run is judged by it.
    #[command(flatten)]
    pub history: HistoryArg,
    /// With --history: compare with this revision, side by side, if the history does not decide [default: the newest that passed,
    /// if the suite says how to build it]
    #[arg(long, value_name = "REV", hide = true, requires = "history", conflicts_with_all = ["against", "baseline"])]
    pub last_good: Option<String>,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
}

impl GateArgs {
    /// The question that the flags ask, and where its evidence goes. A flag that would do nothing is refused.
    pub fn request(self) -> Result<GateRequest, FlowError> {
        let (baseline_flag, sides_flag) = (self.flag_of_baseline(), self.flag_of_sides());
        let Self { baseline, baseline_dir, require_baseline, runs, confirm, last_good, .. } = self;
        let policy = PolicyChoice::from(self.policy);
        let how = SidesRequest { decision: self.decision.into(), policy: policy.policy, resume: self.resume };
        let sides = GateSides { in_place: self.dirty, how };
        let history = HistoryChoice::from(self.history);
        let question = match (self.against, &history) {
            (Some(revision), _) => {
                check_policy_of_sides(policy.policy)?;
                refuse(baseline_flag, "with a stored baseline, without --against")?;
                GateQuestion::Against { revision, sides }
            }
            (None, HistoryChoice::At(location)) if baseline.is_none() => {
                refuse(baseline_flag, "with a stored baseline, without --history")?;
                GateQuestion::History { location: location.clone(), last_good, sides }
            }
            _ => match baseline_flag {
                Some(asks) => {
                    refuse(sides_flag, &format!("side by side, {asks} for one with a stored baseline"))?;
                    let tolerance = sides.how.decision.question.tolerance;
                    let baseline_dir = baseline_dir.into();
                    GateQuestion::Baseline(BaselineQuestion {
                        baseline,
                        baseline_dir,
                        policy,
                        tolerance,
                        require_baseline,
                        runs,
                        confirm,
                    })
                }
                None => GateQuestion::Default { sides, sides_flag },
            },
        };
        let files = EvidenceFiles {
            artifacts: self.artifacts,
            calibration_dir: self.calibration_dir,
            waivers: self.waivers.into(),
            profile_on: self.profile_on,
            history,
            seal_key: self.seal_key.into(),
        };
        Ok(GateRequest { suite: self.suite.into(), question, files })
    }

    /// A flag that was given and means something with a stored baseline only.
    fn flag_of_baseline(&self) -> Option<&'static str> {
        let policy = self.policy.policy;
        first_given(&[
            ("--baseline", self.baseline.is_some()),
            ("--require-baseline", self.require_baseline),
            ("--runs", self.runs.is_some()),
            ("--confirm", self.confirm.is_some()),
            ("--baseline-dir", self.baseline_dir.baseline_dir != Path::new(FOLDER_DEFAULT)),
            ("--allow", !self.policy.allow.is_empty()),
            ("--threshold", self.policy.threshold.is_some()),
            ("--policy", policy.is_some_and(Policy::takes_baseline)),
        ])
    }

    /// A flag that was given and means something with two sides only.
    fn flag_of_sides(&self) -> Option<&'static str> {
        let own = first_given(&[("--dirty", self.dirty), ("--resume", self.resume)]);
        own.or_else(|| self.decision.flag_of_sides())
    }
}

/// Refuses a flag of another question.
fn refuse(flag: Option<&str>, why: &str) -> Result<(), FlowError> {
    match flag {
        Some(flag) => Err(FlowError::Input(format!("{flag} is for a gate {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
