//! Flags of the decision between two sides.

use super::values;
use holdpoint_flow::request::{Decision, Question};
use holdpoint_model::ab::Clock;

/// The question that is to be answered. What no flag gives, the suite's `[gate]` does.
#[derive(Clone, Debug, clap::Args)]
pub struct QuestionArgs {
    /// How much slower a workload may be [default: 2%, or the baseline's own]
    #[arg(long, value_name = "PERCENT", value_parser = values::share, help_heading = "Decision")]
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

/// How two sides are measured and judged.
#[derive(Clone, Debug, clap::Args)]
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

requests! {
    QuestionArgs => Question { tolerance, speedup_max, alarm_rate, miss_rate }
    DecideArgs => Decision { question, budget, units_max, at_once, seed, metric, pin, measure_same_code }
}

impl DecideArgs {
    /// A flag that was given and means nothing without two sides.
    pub(crate) fn flag_of_sides(&self) -> Option<&'static str> {
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
}

/// The first of these flags that was given.
pub(crate) fn first_given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
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
