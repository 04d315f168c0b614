//! Options of `ab`, `calibrate` and `bisect`, and those that `gate --against` shares with them.

use super::{HistoryArg, ProfileOn, SealArgs, SuiteArg, WaiversArg, policy_parser};
use holdpoint_gate::Policy;
use holdpoint_gate::tolerance::TOLERANCE;
use holdpoint_model::AbPlan;
use holdpoint_model::ab::Clock;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::waiver::Limit;
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// The question that is to be answered. What no flag gives, the suite's `[gate]` does.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct QuestionArgs {
    /// How much slower a workload may be [default: 2%, or the baseline's own]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Decision")]
    pub tolerance: Option<f64>,
    /// Two sides: an improvement of so many times is inconclusive, and must be checked [default: 10]
    #[arg(long, value_name = "TIMES", value_parser = times, hide = true, help_heading = "Decision")]
    pub speedup_max: Option<f64>,
    /// Two sides: maximum false-alarm rate, unchanged suites reported as slower [default: 0.001]
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Decision")]
    pub alarm_rate: Option<f64>,
    /// Two sides: maximum miss rate, real slowdowns reported as pass [default: 0.01]
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Decision")]
    pub miss_rate: Option<f64>,
}

impl QuestionArgs {
    /// A plan with this question in place of its own. A tolerance that is typed is meant for all workloads.
    pub fn apply(&self, plan: AbPlan) -> AbPlan {
        AbPlan {
            tolerance: self.tolerance.unwrap_or(plan.tolerance),
            tolerances: if self.tolerance.is_some() { BTreeMap::new() } else { plan.tolerances },
            speedup_max: self.speedup_max.or(plan.speedup_max),
            alarm_rate: self.alarm_rate.unwrap_or(plan.alarm_rate),
            miss_rate: self.miss_rate.unwrap_or(plan.miss_rate),
            ..plan
        }
    }
}

/// How two sides are measured and judged.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DecideArgs {
    /// The question.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Two sides: seconds per workload; workloads decided early leave their time to the others [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Decision")]
    pub budget: Option<f64>,
    /// Two sides: maximum number of fresh pairs of processes per workload [default: 10000; policy disjoint-ci: 400]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Decision")]
    pub units_max: Option<u32>,
    /// Two sides: pairs of processes measured at the same time, each on a CPU of its own [default: 2]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Decision")]
    pub at_once: Option<u32>,
    /// Two sides: seed for the order of sides and workloads [default: random]
    #[arg(long, value_name = "N", hide = true, help_heading = "Decision")]
    pub seed: Option<u64>,
    /// Two sides: compare wall time or CPU time [default: wall time without waiting for a CPU, or CPU time of what only computes]
    #[arg(long, value_name = "wall|cpu", hide = true, value_parser = clock, help_heading = "Decision")]
    pub metric: Option<Clock>,
    /// Two sides: pin all processes of a pair to one CPU; single-threaded workers always are
    #[arg(long, hide = true, help_heading = "Decision")]
    pub pin: bool,
    /// Two sides: measure workloads even if both sides run the same code or are the same build
    #[arg(long, hide = true, help_heading = "Decision")]
    pub measure_same_code: bool,
}

/// Default seconds per workload.
const BUDGET_S: f64 = 20.0;
/// Default for the most units of a workload: the budget is over first.
const UNITS_MAX: u32 = 10_000;
/// Default number of units where the policy takes them all.
const UNITS_FIXED: u32 = 400;

impl DecideArgs {
    /// A flag that was given and means nothing without two sides.
    pub fn flag_of_sides(&self) -> Option<&'static str> {
        first_given(&[
            ("--alarm-rate", self.question.alarm_rate.is_some()),
            ("--miss-rate", self.question.miss_rate.is_some()),
            ("--budget", self.budget.is_some()),
            ("--units-max", self.units_max.is_some()),
            ("--at-once", self.at_once.is_some()),
            ("--seed", self.seed.is_some()),
            ("--metric", self.metric.is_some()),
            ("--pin", self.pin),
            ("--measure-same-code", self.measure_same_code),
        ])
    }

    /// The plan that the flags and the suite mean.
    pub fn plan(&self, gate: &GateSettings, policy: Policy) -> AbPlan {
        let units_max = if policy.is_fixed_length() { UNITS_FIXED } else { UNITS_MAX };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.question.apply(AbPlan {
            tolerance: gate.tolerance.map_or(TOLERANCE, Limit::share),
            tolerances: gate.tolerances(),
            metrics: BTreeMap::new(),
            speedup_max: gate.speedup_max,
            alarm_rate: gate.alarm_rate.unwrap_or(ALARM_RATE),
            miss_rate: gate.miss_rate.unwrap_or(MISS_RATE),
            units_max: self.units_max.or(gate.units_max).unwrap_or(units_max),
            budget_s: self.budget.or(gate.budget).unwrap_or(BUDGET_S),
            clock: self.metric.or(gate.metric),
            units_at_once: self.at_once.or(gate.at_once).unwrap_or(UNITS_AT_ONCE),
            // Drawn anew each time, so that no order is favoured for ever; kept in the report.
            seed: self.seed.unwrap_or(now.as_nanos() as u64 >> 8),
        })
    }

    pub fn pin(&self, gate: &GateSettings) -> bool {
        self.pin || gate.pin == Some(true)
    }

    pub fn measure_same_code(&self, gate: &GateSettings) -> bool {
        self.measure_same_code || gate.measure_same_code == Some(true)
    }
}

/// Pairs of processes measured at the same time.
pub const UNITS_AT_ONCE: u32 = 2;

/// Examples of `holdpoint ab -h`.
const EXAMPLES: &str = "\
Examples:
  holdpoint ab --base './old' --head './new' --tolerance 1%
  holdpoint ab --suite perf.toml --base-rev main";

/// `holdpoint ab`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("device", |flag| flag.hide(true)), mut_arg("seal_key", |flag| flag.hide(true)), mut_arg("history", |flag| flag.hide(true)))]
pub struct AbArgs {
    // Each flag names what it does not go with: clap does not ask for a required flag that conflicts with a given one.
    /// Base as a command line
    #[arg(long, value_name = "COMMAND", requires = "head", help_heading = "Sides")]
    pub base: Option<String>,
    /// Head as a command line
    #[arg(long, value_name = "COMMAND", requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head: Option<String>,
    /// Commands: what else they need.
    #[command(flatten)]
    pub command: CommandArgs,
    /// Base as a git revision, built by the suite's build command
    #[arg(long, value_name = "REV", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub base_rev: Option<String>,
    /// Head as a git revision [default: the work tree, uncommitted changes included]
    #[arg(long, value_name = "REV", requires = "base_rev", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head_rev: Option<String>,
    /// Build and measure the work tree in place, even where no tracked file differs from HEAD
    #[arg(long, hide = true, requires = "base_rev", conflicts_with_all = ["head_rev", "base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub dirty: bool,
    /// Base as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "head_worker", conflicts_with_all = ["base", "base_suite"], help_heading = "Sides")]
    pub base_worker: Option<String>,
    /// Head as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "base_worker", conflicts_with_all = ["base", "base_rev", "base_suite"], help_heading = "Sides")]
    pub head_worker: Option<String>,
    /// Base as a suite
    #[arg(
        long,
        hide = true,
        value_name = "NAME|FILE",
        requires = "head_suite",
        conflicts_with = "base",
        help_heading = "Sides"
    )]
    pub base_suite: Option<String>,
    /// Head as a suite
    #[arg(long, hide = true, value_name = "NAME|FILE", requires = "base_suite", conflicts_with_all = ["base", "base_rev", "base_worker"], help_heading = "Sides")]
    pub head_suite: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// The rule that decides: sequential or disjoint-ci [default: sequential]
    #[arg(long, value_name = "NAME", value_parser = policy_parser(), hide_possible_values = true, help_heading = "Decision")]
    pub policy: Option<Policy>,
    /// Files.
    #[command(flatten)]
    pub files: AbFiles,
    /// Also show the usual statistics
    #[arg(long, hide = true)]
    pub evidence: bool,
}

/// Needs of two commands beside their command lines.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"])]
pub struct CommandArgs {
    /// Commands: names to show for them, given twice: base, then head
    #[arg(short = 'n', long = "name", value_name = "NAME", hide = true, help_heading = "Sides")]
    pub names: Vec<String>,
    /// Commands: run once before each side is measured
    #[arg(long, value_name = "COMMAND", hide = true, help_heading = "Sides")]
    pub setup: Option<String>,
    /// Commands: run before each call, untimed
    #[arg(long, value_name = "COMMAND", hide = true, help_heading = "Sides")]
    pub prepare: Option<String>,
    /// Commands: file that each call reads from stdin
    #[arg(long, value_name = "FILE", hide = true, help_heading = "Sides")]
    pub stdin: Option<String>,
    /// Folder in which the base command runs
    #[arg(long, value_name = "DIR", hide = true, help_heading = "Sides")]
    pub base_dir: Option<PathBuf>,
    /// Folder in which the head command runs
    #[arg(long, value_name = "DIR", hide = true, help_heading = "Sides")]
    pub head_dir: Option<PathBuf>,
}

/// Where a side-by-side comparison leaves its files.
#[derive(Clone, Debug, clap::Args)]
pub struct AbFiles {
    /// Folder for ab.json, comparison.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted comparison in that folder
    #[arg(long)]
    pub resume: bool,
    /// Folder with the outcomes of `calibrate`
    #[arg(long, value_name = "DIR", hide = true, default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Profile the kernels of what regressed, base and head, into the same folder
    #[arg(long, value_enum, value_name = "WHEN", hide = true, default_value_t = ProfileOn::Never)]
    pub profile_on: ProfileOn,
    /// The history.
    #[command(flatten)]
    pub history: HistoryArg,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
}

/// `holdpoint calibrate`.
#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Comparisons of the whole suite with itself
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,
    /// Add this slowdown to head, to test that it is found; in the built-in ops it is real extra work
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share)]
    pub inject: f64,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder for the result, which later verdicts show; not written with --inject
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Also write the outcome to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `holdpoint bisect`.
#[derive(Debug, clap::Args)]
pub struct BisectArgs {
    /// A revision that was fast; if it is not an ancestor of the slow one, their merge base is used
    #[arg(long, value_name = "REV")]
    pub good: String,
    /// A revision that is slow
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub bad: String,
    /// The workload that became slow [default: whichever is found slower between good and bad]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted or undecided search in that folder
    #[arg(long)]
    pub resume: bool,
}

/// The first of these flags that was given.
pub(super) fn first_given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
}

/// A share, typed as percent.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage is wanted, such as 1% or 0.5%".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("a rate between 0 and 1 is wanted, such as 0.001".to_owned()),
    }
}

fn times(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times > 1.0 && times <= 1e6 => Ok(times),
        _ => Err("a number above 1 is required, such as 50".to_owned()),
    }
}

fn clock(text: &str) -> Result<Clock, String> {
    Clock::from_name(text).ok_or_else(|| "wall or cpu is wanted".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number above 0 is wanted".to_owned()),
    }
}
