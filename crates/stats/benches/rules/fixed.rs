//! Our rule beside a test of a fixed number of units with the same alarm rate and the same power: which is done sooner?

use holdpoint_stats::classic::welch;
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::{Decision, MISS_RATE, Plan};

use crate::recorded::Record;
use crate::tables::heading;
use crate::{in_two_threads, ours, plan, recorded_plan};

/// Ours stays undecided after so many.
const UNITS_MAX: usize = 400;
/// A power above this is not told from it by the trials made here, so the fixed design need not reach more.
const POWER_MAX: f64 = 0.999;
/// What is promised, for who finds that enough.
const POWER_PROMISED: f64 = 1.0 - MISS_RATE;
/// What is to be found.
const CHANGE: f64 = 0.02;
/// The search for a fixed number ends here.
const FIXED_MAX: usize = 2_000;

/// Units of unchanged code.
enum Units<'a> {
    Normal(f64),
    /// Scale 1 %.
    StudentT2,
    Recorded(&'a crate::Workload),
}

impl Units<'_> {
    fn name(&self) -> String {
        match self {
            Self::Normal(sd) => format!("normal {:.1} %", 100.0 * sd),
            Self::StudentT2 => "Student t2, scale 1 %".into(),
            Self::Recorded(workload) => format!("recorded: {}", workload.name),
        }
    }

    fn draw(&self, seed: u64, change: f64, count: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        match self {
            Self::Normal(sd) => (0..count).map(|_| change + sd * random.normal()).collect(),
            Self::StudentT2 => {
                let mut t2 = || random.normal() / (-random.uniform().ln()).sqrt();
                (0..count).map(|_| change + 0.01 * t2()).collect()
            }
            Self::Recorded(workload) => workload.draw(seed, change).take(count).collect(),
        }
    }
}

/// What was counted for one kind of units.
struct Row {
    name: String,
    mean: f64,
    median: usize,
    passed: f64,
    found: f64,
    mean_when_slower: f64,
    /// The smallest fixed numbers of units with this power: the t-test's, the signed-rank test's; the latter's for the
    /// power promised.
    fixed: [Option<usize>; 3],
}

pub fn print(trials_count: usize, record: &Record) {
    println!("\n### Beside a fixed number of units\n");
    println!(
        "Tolerance 1 %, suites of 8 (recorded: 7), {trials_count} workloads each, ours with at most {UNITS_MAX} units. Fixed: the \
         smallest number of units at which a one-sided test against the tolerance, at the same alarm rate per suite, finds \
         2 % as often as ours does, of which at most {} % is asked, and in the last two columns {} %; times: that number over our mean on \
         unchanged code.\n",
        100.0 * POWER_MAX,
        100.0 * POWER_PROMISED
    );
    heading(&[
        "noise of a unit",
        "ours, unchanged: mean / median",
        "passed",
        "2 %: found",
        "mean units",
        "fixed t-test",
        "times",
        "fixed signed ranks",
        "times",
        "the same, 99 %",
        "times",
    ]);
    let mut kinds: Vec<Units> = [0.005, 0.01, 0.02].map(Units::Normal).into();
    kinds.push(Units::StudentT2);
    let recorded_first = kinds.len();
    kinds.extend(record.workloads.iter().map(Units::Recorded));
    let rows = in_two_threads(kinds.len(), |index| {
        let plan = if index < recorded_first { plan() } else { recorded_plan(record) };
        row(plan, &kinds[index], trials_count, index as u64)
    });
    for row in &rows {
        let fixed = row.fixed.map(|count| cells(count, row.mean)).join(" | ");
        println!(
            "| {} | {:.1} / {} | {} | {} | {:.1} | {fixed} |",
            row.name,
            row.mean,
            row.median,
            share(row.passed),
            share(row.found),
            row.mean_when_slower
        );
    }
    print_suite(&rows[recorded_first..], "suite of the 7, sum");
    let calm: Vec<&Row> = rows[recorded_first..].iter().filter(|row| row.found >= POWER_PROMISED).collect();
    print_suite(calm.iter().copied(), &format!("the {} of them in which 2 % is found, sum", calm.len()));
}

/// One number for all: the largest, so that no workload is found less often than by ours.
fn print_suite<'a>(rows: impl IntoIterator<Item = &'a Row> + Clone, name: &str) {
    let rows = || rows.clone().into_iter();
    let sum = |of: fn(&Row) -> f64| rows().map(of).sum::<f64>();
    let mean = sum(|row| row.mean);
    let fixed = [0, 1, 2].map(|test| {
        let largest = rows().map(|row| row.fixed[test]).collect::<Option<Vec<_>>>();
        let largest = largest.and_then(|all| all.into_iter().max());
        cells(largest.map(|count| count * rows().count()), mean)
    });
    println!("| {name} | {mean:.1} | | | {:.1} | {} |", sum(|row| row.mean_when_slower), fixed.join(" | "));
}

fn cells(count: Option<usize>, ours: f64) -> String {
    match count {
        Some(count) => format!("{count} | {:.1}", count as f64 / ours),
        None => format!("> {FIXED_MAX} | > {:.0}", FIXED_MAX as f64 / ours),
    }
}

fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn row(plan: Plan, units: &Units, trials_count: usize, index: u64) -> Row {
    let seed = |trial: usize, part: u64| (index << 40) + (part << 32) + trial as u64;
    let decide = |part: u64, change: f64| -> Vec<(Decision, usize)> {
        (0..trials_count)
            .map(|trial| {
                let units = units.draw(seed(trial, part), change.ln_1p(), UNITS_MAX);
                ours::decide_units(plan, units.into_iter())
            })
            .collect()
    };
    let share_of = |outcomes: &[(Decision, usize)], is_meant: fn(Decision) -> bool| {
        outcomes.iter().filter(|(decision, _)| is_meant(*decision)).count() as f64 / trials_count as f64
    };
    let mean_of = |outcomes: &[(Decision, usize)]| {
        outcomes.iter().map(|(_, count)| *count as f64).sum::<f64>() / trials_count as f64
    };
    let mut same = decide(0, 0.0);
    same.sort_by_key(|(_, count)| *count);
    let slower = decide(1, CHANGE);
    let found = share_of(&slower, |decision| decision == Decision::Slower);
    let designs: [(Test, f64); 3] = [
        (t_test_rejects, POWER_MAX),
        (signed_ranks_reject, POWER_MAX),
        (signed_ranks_reject, POWER_PROMISED),
    ];
    let fixed = designs.map(|(test, power_max)| {
        smallest(|count| {
            let limit = critical(plan, count);
            let rejects = |trial: &usize| {
                let mut distances = units.draw(seed(*trial, 2), CHANGE.ln_1p() - plan.line(), count);
                test(&mut distances, &limit)
            };
            let rejections = (0..trials_count).filter(rejects).count();
            rejections as f64 / trials_count as f64 >= found.min(power_max)
        })
    });
    Row {
        name: units.name(),
        mean: mean_of(&same),
        median: same[same.len() / 2].1,
        passed: share_of(&same, |decision| matches!(decision, Decision::NotSlower | Decision::Faster)),
        found,
        mean_when_slower: mean_of(&slower),
        fixed,
    }
}

/// Power grows with the number of units: doubling, then halving.
fn smallest(is_enough: impl Fn(usize) -> bool) -> Option<usize> {
    let mut high = 4;
    while !is_enough(high) {
        if high >= FIXED_MAX {
            return None;
        }
        high = (2 * high).min(FIXED_MAX);
    }
    let mut low = 2;
    while low < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// What the tests need to know for a number of units.
struct Limit {
    p: f64,
    /// The smallest sum of positive ranks whose probability is at most p; absent when none is.
    ranks_sum: Option<f64>,
}

/// A test: is head called slower, given distances beyond the line?
type Test = fn(&mut [f64], &Limit) -> bool;

fn critical(plan: Plan, count: usize) -> Limit {
    let p = plan.alarm_rate / plan.workloads_count as f64;
    Limit { p, ranks_sum: critical_ranks_sum(count, p) }
}

/// Student's. Welch's against two values without spread is the test of one sample.
fn t_test_rejects(distances: &mut [f64], limit: &Limit) -> bool {
    welch(distances, &[0.0, 0.0]).is_some_and(|test| test.t > 0.0 && test.p / 2.0 <= limit.p)
}

/// Wilcoxon's: the sizes' ranks, summed where the sign is positive.
fn signed_ranks_reject(distances: &mut [f64], limit: &Limit) -> bool {
    let Some(limit) = limit.ranks_sum else { return false };
    distances.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = distances.iter().enumerate().filter(|(_, distance)| **distance > 0.0);
    ranks.map(|(index, _)| (index + 1) as f64).sum::<f64>() >= limit
}

/// Exact up to 500 units: of the 2^n ways to choose ranks, each is as likely as any other. Beyond, the normal's.
fn critical_ranks_sum(count: usize, p: f64) -> Option<f64> {
    const EXACT_MAX: usize = 500;
    let largest = count * (count + 1) / 2;
    if count > EXACT_MAX {
        let n = count as f64;
        let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return Some(n * (n + 1.0) / 4.0 + normal_upper(p) * sd + 0.5);
    }
    let mut shares = vec![0.0; largest + 1];
    shares[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = (shares[sum] + with) / 2.0;
        }
    }
    let mut tail = 0.0;
    let too_likely = (0..=largest).rev().find(|sum| {
        tail += shares[*sum];
        tail > p
    });
    too_likely.filter(|sum| *sum < largest).map(|sum| (sum + 1) as f64)
}

/// The point a standard normal lies above with probability p, for small p: Abramowitz and Stegun 26.2.23, within 0.0005.
fn normal_upper(p: f64) -> f64 {
    let t = (-2.0 * p.ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t.powi(3))
}
