//! How the next unit of a workload is measured: its rounds, and the samples of each turn.
//!
//! Noise has two parts: rounds of one unit differ (caches, neighbours), and so do units (what is particular to a process).
//! More rounds cure the first, only more units the second, and both cost time. The choice depends on earlier units alone and
//! on both sides alike, so the next unit of unchanged code is still as likely to be +a as -a.

use super::estimate::ln_times;
use holdpoint_model::ab::Clock;
use holdpoint_model::{PairRound, SideName, Unit, UnitCost, UnitPlan};
use holdpoint_stats as stats;

/// Which of a turn's samples stands for it: the fastest. What disturbs a sample only adds to it.
pub const QUANTILE: f64 = 0.0;
/// Samples of a turn that count. With more, the fastest hardly changes; with fewer, it is too often a disturbed one.
pub const SAMPLES: u32 = 20;
/// Samples of a turn that may be left out until they have levelled off.
const SKIPS: [u32; 6] = [0, 1, 2, 4, 8, 16];
/// A sample has levelled off when it is at most this much slower than the rest of its turn.
pub const LEVEL: f64 = 0.02;
/// A turn is at most this long, unless one sample or changing sides is longer.
pub const TURN_S_MAX: f64 = 0.03;
/// The same for a harness.
const LONG_TURN_S_MAX: f64 = 0.5;
/// Every so many units a turn has twice the samples that seem best, to see what more of them would do.
const UNITS_PER_LOOK: usize = 8;
/// Steps from round to round without which nothing is said about turns of so many samples.
const STEPS_MIN: usize = 4;
/// Rounds to choose from. A single round says nothing about how rounds differ, so there are two unless they are long.
const ROUNDS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const ROUND_S_LONG: f64 = 0.1;
/// Rounds of the first unit, if they are short.
const ROUNDS_FIRST: u32 = 4;
/// More rounds than any budget has use for.
const ROUNDS_MAX: f64 = 1e4;
/// About what it takes to start a pair of processes and to prepare their workload.
const QUANTILE_S: f64 = 0.02;
/// A program that computes, or waits for a CPU, for about all of the wall time does nothing else, and nothing in parallel.
const COMPUTES: std::ops::Range<f64> = 0.85..1.15;
/// A call of at least this length sees several turns of the kernel's scheduler.
const TANDEM_S: f64 = 0.02;
/// Units that a decision takes without any noise, and those that noise adds for each (sd / tolerance)², by simulation.
const UNITS_LEAST: f64 = 10.0;
const UNITS_PER_VARIANCE: f64 = 18.0;
/// The variance of a median over that of a mean, π/2.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;
/// Units that are looked at, the latest ones.
const UNITS_SEEN: usize = 32;
/// Units without which nothing is known about how they differ; until then a quarter of what rounds do.
const UNITS_KNOWN: usize = 6;
const BETWEEN_FIRST: f64 = 1.0 / 16.0;

/// The plan of the next unit. `line` is the logarithm of what may be slower; a unit needs `samples_min` samples of a
/// side, and more where they are quick.
pub fn plan_unit(units: &[Unit], cost: &UnitCost, line: f64, samples_min: u64) -> UnitPlan {
    let seen = &units[units.len().saturating_sub(UNITS_SEEN)..];
    let skip = level_off(seen.iter().flat_map(|unit| &unit.rounds));
    let fit = |seconds: f64, each_s: f64| match seconds / each_s {
        // Nothing is known yet, not even how long a sample takes.
        count if !count.is_finite() => 0.0,
        count => count.clamp(0.0, ROUNDS_MAX),
    };
    let turn_s = if cost.long_turns { LONG_TURN_S_MAX } else { TURN_S_MAX }.max(cost.round_s / 2.0);
    let samples_max = if cost.one_sample { 1 } else { skip + SAMPLES };
    let longest = (fit(turn_s, cost.sample_s) as u32).clamp(1, samples_max);
    let round_s = |samples: u32| cost.unit_s(1, samples) - cost.fixed_s;
    let (rounds, samples) = match soonest(seen, cost, longest, line) {
        Some((rounds, samples)) if units.len().is_multiple_of(UNITS_PER_LOOK) => {
            (rounds, longest.min(2 * samples))
        }
        Some(best) => best,
        None if round_s(longest) > ROUND_S_LONG || cost.sample_s == 0.0 => (1, longest),
        None => (ROUNDS_FIRST, longest),
    };
    let skip = skip_in(samples, skip);
    let most = fit(cost.unit_s_max - cost.fixed_s, round_s(samples)).floor() as u32;
    let rounds = rounds.min(most.max(1));
    let rounds = rounds.max(rounds_for_quantiles(samples_min, samples - skip, cost.sample_s));
    let clock = choose_clock(seen, cost.may_overlap && cost.sample_s >= TANDEM_S);
    UnitPlan { rounds, samples, skip, quantile: QUANTILE, clock }
}

/// Rounds that have the samples which a quantile needs: ten times the least number, unless that takes long.
fn rounds_for_quantiles(samples_min: u64, samples: u32, sample_s: f64) -> u32 {
    if samples_min <= 1 {
        return 1;
    }
    let in_time = (QUANTILE_S / sample_s.max(1e-9)) as u64;
    let wanted = in_time.clamp(samples_min, 10 * samples_min);
    u32::try_from(wanted.div_ceil(samples.into())).unwrap_or(u32::MAX)
}

/// CPU time where both sides do nothing but compute, on one CPU at a time: then it is the wall time without waits. If they may
/// run at the same time, they do: what slows the CPU down for a moment slows down both. Else it is used where waits for a CPU are
/// not known.
fn choose_clock(units: &[Unit], may_overlap: bool) -> Clock {
    if may_overlap && units.last().is_some_and(|unit| unit.clock == Clock::Tandem) {
        return Clock::Tandem;
    }
    let in_turns = || units.iter().filter(|unit| unit.clock != Clock::Tandem).flat_map(|unit| &unit.rounds);
    let is_told = in_turns().all(PairRound::tells_waits);
    let computes = |side| {
        let shares: Option<Vec<f64>> = in_turns().map(|round| computing_share(round, side)).collect();
        let share = shares.and_then(|shares| match is_told {
            true => stats::median(&shares),
            // Waits for a CPU count as anything else here; the round with the fewest shows what is left.
            false => shares.into_iter().max_by(f64::total_cmp),
        });
        share.is_some_and(|share| COMPUTES.contains(&share))
    };
    match computes(SideName::Base) && computes(SideName::Head) {
        true if may_overlap => Clock::Tandem,
        true if !is_told => Clock::Cpu,
        _ => Clock::Unwaited,
    }
}

/// Share of a round's time in which a side computed or, as far as is told, waited for a CPU; more than 1 on several CPUs.
fn computing_share(round: &PairRound, side: SideName) -> Option<f64> {
    let cpu_ns = &round.numbers(side).cpu_ns;
    let wall_ns: u64 = round.times_ns(side, Clock::Unwaited).sum();
    (cpu_ns.len() == round.base_ns.len() && wall_ns > 0)
        .then(|| cpu_ns.iter().sum::<u64>() as f64 / wall_ns as f64)
}

/// The rounds, and the samples of a turn, by which a decision is expected soonest. Turns of fewer samples than were taken are
/// known from the first ones.
fn soonest(units: &[Unit], cost: &UnitCost, longest: u32, line: f64) -> Option<(u32, u32)> {
    let between = noise(units)?.between;
    let halves = std::iter::successors(Some(longest), |samples| Some(samples / 2).filter(|half| *half > 0));
    let known = halves.filter_map(|samples| Some((samples, within(units, samples as usize)?)));
    let seconds = |rounds: u32, samples: u32, within: f64| {
        let variance = between + MEDIAN_VARIANCE * within / f64::from(rounds);
        let units = UNITS_LEAST + UNITS_PER_VARIANCE * variance / line.powi(2).max(1e-8);
        units * cost.unit_s(rounds, samples)
    };
    let plans = known.flat_map(|(samples, within)| {
        let is_short = cost.unit_s(1, samples) - cost.fixed_s < ROUND_S_LONG;
        let rounds = ROUNDS[usize::from(is_short)..].iter();
        rounds.map(move |rounds| (seconds(*rounds, samples, within), *rounds, samples))
    });
    let (_, rounds, samples) = plans.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((rounds, samples))
}

/// In a turn of few samples none can be spared.
fn skip_in(samples: u32, skip: u32) -> u32 {
    if samples > 2 * skip { skip } else { 0 }
}

/// How many samples of a turn come before they have levelled off, judging by all turns of both sides.
fn level_off<'a>(rounds: impl Iterator<Item = &'a PairRound>) -> u32 {
    let mut ratios: [Vec<f64>; SKIPS.len()] = Default::default();
    for round in rounds {
        for side in [SideName::Base, SideName::Head] {
            let times: Vec<f64> = round.times_ns(side, Clock::Unwaited).map(|ns| ns as f64).collect();
            let Some(level) = stats::median(&times[times.len() / 2..]).filter(|level| *level > 0.0) else {
                continue;
            };
            for (ratios, skip) in ratios.iter_mut().zip(SKIPS) {
                ratios.extend(times[..times.len() / 2].get(skip as usize).map(|time| time / level));
            }
        }
    }
    let is_level = |ratios: &Vec<f64>| stats::median(ratios).is_none_or(|ratio| ratio <= 1.0 + LEVEL);
    ratios.iter().zip(SKIPS).find(|(ratios, _)| is_level(ratios)).map_or(0, |(_, skip)| skip)
}

/// The variance between the rounds of these units; absent without two rounds in a unit.
pub fn noise_within(units: &[Unit]) -> Option<f64> {
    noise(units).map(|noise| noise.within)
}

/// The same if turns had no more than so many samples.
fn within(units: &[Unit], samples: usize) -> Option<f64> {
    let fastest = |times: &mut dyn Iterator<Item = u64>| {
        let first = times.take(samples).enumerate();
        let (count, ns) = first.fold((0, u64::MAX), |(_, least), (at, ns)| (at + 1, least.min(ns)));
        (count == samples && ns > 0).then(|| (ns as f64).ln())
    };
    let change = |round: &PairRound, clock| {
        let [base, head] =
            [SideName::Base, SideName::Head].map(|side| fastest(&mut round.times_ns(side, clock)));
        Some(head? - base?)
    };
    let steps: Vec<f64> =
        units.iter().flat_map(|unit| steps(unit, |round| change(round, unit.clock)).1).collect();
    variance(&steps).filter(|_| steps.len() >= STEPS_MIN)
}

/// Variances of `ln(head / base)`, robust.
struct Noise {
    /// Between the rounds of a unit.
    within: f64,
    /// Between units, beyond what their rounds explain.
    between: f64,
}

fn noise(units: &[Unit]) -> Option<Noise> {
    let (mut all, mut counts) = (Vec::new(), Vec::new());
    for unit in units {
        let (count, steps) = steps(unit, |round| ln_times(unit, round).map(|[base, head]| head - base));
        all.extend(steps);
        counts.push(count as f64);
    }
    let within = variance(&all)?;
    let explained = MEDIAN_VARIANCE * within / stats::median(&counts)?.max(1.0);
    let xs: Vec<f64> = units.iter().map(|unit| unit.x).collect();
    let between = match stats::robust_sd(&xs).filter(|_| xs.len() >= UNITS_KNOWN) {
        Some(sd) => (sd.powi(2) - explained).max(0.0),
        None => within * BETWEEN_FIRST,
    };
    Some(Noise { within, between })
}

/// How many rounds of a unit count and have a change, and its steps from round to round: what changes slowly does not count.
fn steps(unit: &Unit, change: impl Fn(&PairRound) -> Option<f64>) -> (usize, Vec<f64>) {
    let kept = unit.rounds.iter().filter(|round| !round.left_out);
    let changes: Vec<f64> = kept.filter_map(change).collect();
    (changes.len(), changes.chunks_exact(2).map(|pair| (pair[1] - pair[0]).abs()).collect())
}

fn variance(steps: &[f64]) -> Option<f64> {
    Some((stats::NORMAL * stats::median(steps)?).powi(2) / 2.0)
}
