//! Two numbers from one unit for a metric beside the median time, and what became of them.
//!
//! Each is a function of one side's rounds, the same for both: swapping the sides swaps the numbers, so the logarithm of their
//! ratio changes its sign and nothing else. That is all that the error rates of a decision rest on.

use holdpoint_model::ab::Clock;
use holdpoint_model::metric::Metric;
use holdpoint_model::{AbWorkload, PairRound, SideName, Unit};
use holdpoint_stats as stats;
use holdpoint_stats::sequential::Sequential;

const SIDES: [SideName; 2] = [SideName::Base, SideName::Head];
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
const BYTES_PER_MB: f64 = 1e6;

/// Base's and head's value in a unit, for samples of one call. Absent where a side does not tell it in a round that counts, where
/// there are too few samples for it, or where it is not above zero: ratios are compared.
pub(crate) fn values(unit: &Unit, name: &str) -> Option<[f64; 2]> {
    let value = |side| side_value(unit, side, name).filter(|value| value.is_finite() && *value > 0.0);
    Some([value(SIDES[0])?, value(SIDES[1])?])
}

fn side_value(unit: &Unit, side: SideName, name: &str) -> Option<f64> {
    let metric = Metric::from_name(name);
    let rounds = || unit.rounds.iter().filter(|round| !round.left_out);
    let skip = unit.skip as usize;
    let settled = |round: &PairRound| {
        round.left_ns(side, Clock::Unwaited, skip).map(|ns| ns as f64).collect::<Vec<f64>>()
    };
    let times = || rounds().flat_map(settled).collect::<Vec<_>>();
    match metric {
        Metric::Quantile(q) => {
            // Of all rounds: those that are left out would leave too few samples beyond it.
            let times: Vec<f64> = unit.rounds.iter().flat_map(settled).collect();
            // With those that mostly waited: on a busy machine there would else never be enough.
            let taken: usize = unit.rounds.iter().map(|round| round.base_ns.len().saturating_sub(skip)).sum();
            let quantile = stats::percentile_floor(&times, q);
            Some(quantile.filter(|_| taken as u64 >= metric.samples_min())? / NS_PER_MS)
        }
        Metric::Mean => Some(stats::mean(&times())? / NS_PER_MS),
        Metric::Throughput => Some(NS_PER_S / stats::mean(&times())?),
        Metric::Cpu => {
            let is_told = |round: &PairRound| round.numbers(side).cpu_ns.len() == round.base_ns.len();
            let cpu_ns = rounds().flat_map(|round| &round.numbers(side).cpu_ns).map(|ns| *ns as f64);
            let cpu_ns: Vec<f64> = cpu_ns.collect();
            Some(stats::median(&cpu_ns).filter(|_| rounds().all(is_told))? / NS_PER_MS)
        }
        Metric::PeakMemory => {
            let bytes: Option<Vec<u64>> = rounds().map(|round| round.numbers(side).peak_rss_bytes).collect();
            Some(bytes?.into_iter().max()? as f64 / BYTES_PER_MB)
        }
        Metric::Printed | Metric::Energy => {
            let printed: Option<Vec<&Vec<f64>>> =
                rounds().map(|round| round.numbers(side).printed.get(name)).collect();
            stats::median(&printed?.into_iter().flatten().copied().collect::<Vec<f64>>())
        }
        Metric::Exact(_) => None,
    }
}

/// Both sides' values per call over all units, such that their ratio is the median ratio of the units, turned so that more
/// is worse.
pub(crate) fn typical(workload: &AbWorkload, name: &str, sign: f64, known: &Sequential) -> Option<[f64; 2]> {
    let all = workload.units.iter().filter_map(|unit| values(unit, name));
    let levels: Vec<f64> = all.map(|[base, head]| f64::midpoint(base.ln(), head.ln())).collect();
    let (level, half) = (stats::median(&levels)?, sign * known.median_ratio()?.ln() / 2.0);
    let per_call = per_call(workload, name);
    Some([(level - half).exp() * per_call, (level + half).exp() * per_call])
}

/// Both sides' values per call in each unit that shows them.
pub(crate) fn of_units(workload: &AbWorkload, name: &str) -> Vec<[f64; 2]> {
    let per_call = per_call(workload, name);
    let all = workload.units.iter().filter_map(|unit| values(unit, name));
    all.map(|values| values.map(|value| value * per_call)).collect()
}

/// Turns the value of a sample into that of a call.
fn per_call(workload: &AbWorkload, name: &str) -> f64 {
    let calls = workload.calls_per_sample.max(1) as f64;
    match Metric::from_name(name) {
        Metric::Throughput => calls,
        Metric::PeakMemory | Metric::Printed | Metric::Energy | Metric::Exact(_) => 1.0,
        _ => 1.0 / calls,
    }
}

/// Why no unit has a value.
pub(crate) fn why_missing(name: &str) -> &'static str {
    match Metric::from_name(name) {
        Metric::Quantile(_) => "its units have too few samples: give it a longer --budget",
        Metric::Cpu => "the worker reports no CPU time",
        Metric::PeakMemory => "the peak memory of a side could not be read",
        Metric::Energy => "the device or the worker of a side does not tell its energy",
        Metric::Printed => "a side printed no number above 0 there",
        Metric::Mean | Metric::Throughput | Metric::Exact(_) => "it was not measured",
    }
}
