//! Rules for "is it slower?" on simulated noise: how often each is wrong, what it sees, what it costs.
//!
//! `cargo bench -p holdpoint-stats --bench rules` prints Markdown tables; the same ones every time.
#![allow(clippy::print_stdout)]

mod noise;
mod ours;
mod rivals;

use holdpoint_stats::classic::binomial_upper;
use holdpoint_stats::sequential::{Decision, Plan, SignProcess};
use noise::{Machine, Noise};

const WORKLOADS_COUNT: usize = 8;
/// At tolerance 0, where unchanged code lies on the line, units go on to here.
const UNITS_UNSTOPPED: usize = 40;

/// How often each thing is tried.
#[derive(Clone, Copy)]
struct Trials {
    suites: usize,
    stressed_suites: usize,
    rival_suites: usize,
    workloads: usize,
}

fn main() {
    // `cargo test --all-targets` runs benches unoptimised and without this flag: there a glance is enough.
    let trials = if std::env::args().any(|argument| argument == "--bench") {
        Trials { suites: 20_000, stressed_suites: 10_000, rival_suites: 500, workloads: 2_000 }
    } else {
        Trials { suites: 20, stressed_suites: 5, rival_suites: 5, workloads: 10 }
    };
    let rows = rows(trials);
    print_unchanged(trials, &rows);
    print_errors_at_the_line(trials, &rows);
    print_detection(&rows);
    print_power(trials.workloads);
}

/// What was counted for one kind of noise.
struct Row {
    noise: Noise,
    suites: usize,
    alarms: usize,
    improvements: usize,
    stressed_alarms: usize,
    rivals_alarms: Vec<usize>,
    /// At a change of 0 %, 1 % (the line), 2 % and 5 %.
    ours: [Outcomes; 4],
    /// At 2 % and 5 %.
    rivals_found: [Vec<usize>; 2],
}

/// What became of workloads, out of `Trials::workloads`.
#[derive(Default)]
struct Outcomes {
    slower: usize,
    not_slower: usize,
    units: Vec<usize>,
}

const CHANGES: [f64; 4] = [0.0, 0.01, 0.02, 0.05];

fn plan() -> Plan {
    Plan { workloads_count: WORKLOADS_COUNT, ..Plan::default() }
}

/// One thread for every other row: each row has seeds of its own, so threads change nothing.
fn rows(trials: Trials) -> Vec<Row> {
    let work = |start: usize| -> Vec<(usize, Row)> {
        let kinds = noise::ALL.iter().enumerate().skip(start).step_by(2);
        kinds.map(|(index, noise)| (index, row(*noise, index as u64, trials))).collect()
    };
    let mut rows = std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        let mut rows = work(0);
        rows.extend(other.join().into_iter().flatten());
        rows
    });
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(noise: Noise, index: u64, trials: Trials) -> Row {
    let mut seed = index << 40;
    let mut machine = || {
        seed += 1;
        Machine::new(noise, seed)
    };
    // Where most workloads stay undecided a suite takes long.
    let suites = if noise.is_loud() { trials.suites / 4 } else { trials.suites };
    let (mut alarms, mut improvements) = (0, 0);
    for _ in 0..suites {
        // Workloads of a suite take turns on one machine; here one after the other, which is the harder order.
        let mut suite = machine();
        let decisions: Vec<Decision> =
            (0..WORKLOADS_COUNT).map(|_| ours::decide(plan(), &mut suite, 0.0, ours::UNITS_MAX).0).collect();
        alarms += usize::from(decisions.contains(&Decision::Slower));
        improvements += usize::from(decisions.contains(&Decision::Faster));
    }
    let strict = Plan { tolerance: 0.0, ..plan() };
    let is_alarm = |suite: &mut Machine| {
        (0..WORKLOADS_COUNT).any(|_| ours::decide(strict, suite, 0.0, UNITS_UNSTOPPED).0 == Decision::Slower)
    };
    let stressed_alarms = (0..trials.stressed_suites).filter(|_| is_alarm(&mut machine())).count();
    let mut rivals_alarms = vec![0; rivals::ALL.len()];
    for _ in 0..trials.rival_suites {
        let mut suite = machine();
        let blocks: Vec<_> = (0..WORKLOADS_COUNT).map(|_| rivals::measure(&mut suite, 0.0)).collect();
        for (count, (_, rule)) in rivals_alarms.iter_mut().zip(rivals::ALL) {
            *count += usize::from(blocks.iter().any(|blocks| rule(blocks) == Some(true)));
        }
    }
    let ours = CHANGES.map(|change| outcomes(change, trials.workloads, &mut machine));
    let rivals_found = [0.02, 0.05].map(|change| found(change, trials.workloads, &mut machine));
    Row { noise, suites, alarms, improvements, stressed_alarms, rivals_alarms, ours, rivals_found }
}

fn outcomes(change: f64, workloads_count: usize, machine: &mut impl FnMut() -> Machine) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for _ in 0..workloads_count {
        let (decision, units) = ours::decide(plan(), &mut machine(), change.ln_1p(), ours::UNITS_MAX);
        outcomes.slower += usize::from(decision == Decision::Slower);
        outcomes.not_slower += usize::from(matches!(decision, Decision::NotSlower | Decision::Faster));
        outcomes.units.push(units);
    }
    outcomes.units.sort_unstable();
    outcomes
}

fn found(change: f64, workloads_count: usize, machine: &mut impl FnMut() -> Machine) -> Vec<usize> {
    let mut found = vec![0; rivals::ALL.len()];
    for _ in 0..workloads_count {
        let blocks = rivals::measure(&mut machine(), change.ln_1p());
        for (count, (_, rule)) in found.iter_mut().zip(rivals::ALL) {
            *count += usize::from(rule(&blocks) == Some(true));
        }
    }
    found
}

fn percent(count: usize, of: usize) -> String {
    format!("{:.0} %", 100.0 * count as f64 / of as f64)
}

/// The count and the largest rate it does not contradict.
fn bounded(count: usize, of: usize) -> String {
    let upper = binomial_upper(count, of, 0.95).unwrap_or(1.0);
    format!("{count} (≤ {:.3} %)", 100.0 * upper)
}

fn heading(columns: &[&str]) {
    println!("| {} |\n|---|{}", columns.join(" | "), "--:|".repeat(columns.len() - 1));
}

fn rival_names<'a>(first: &[&'a str]) -> Vec<&'a str> {
    first.iter().copied().chain(rivals::ALL.map(|(name, _)| name)).collect()
}

fn print_unchanged(trials: Trials, rows: &[Row]) {
    println!("### Unchanged suites of {WORKLOADS_COUNT} with a workload called slower\n");
    println!(
        "Ours: of {} suites (the last two kinds: a quarter), in brackets the exact 95 % upper bound of the rate; promised: 0.1 %. Tolerance 0 goes \
         on for {UNITS_UNSTOPPED} units unless it alarms or passes ({} suites). Others: of {} suites, {} samples a side.\n",
        trials.suites,
        trials.stressed_suites,
        trials.rival_suites,
        rivals::SAMPLES_PER_SIDE
    );
    heading(&rival_names(&["noise", "ours", "ours: faster", "ours, tolerance 0"]));
    for row in rows {
        let rivals: Vec<String> =
            row.rivals_alarms.iter().map(|count| percent(*count, trials.rival_suites)).collect();
        println!(
            "| {} | {} | {} | {} | {} |",
            row.noise.name(),
            bounded(row.alarms, row.suites),
            bounded(row.improvements, row.suites),
            bounded(row.stressed_alarms, trials.stressed_suites),
            rivals.join(" | ")
        );
    }
    let total = |count: fn(&Row) -> usize| rows.iter().map(count).sum();
    println!(
        "| all | {} | {} | {} |{}",
        bounded(total(|row| row.alarms), total(|row| row.suites)),
        bounded(total(|row| row.improvements), total(|row| row.suites)),
        bounded(total(|row| row.stressed_alarms), trials.stressed_suites * rows.len()),
        " |".repeat(rivals::ALL.len())
    );
}

fn print_errors_at_the_line(trials: Trials, rows: &[Row]) {
    println!("\n### A change of exactly the tolerance: the worst case of both errors\n");
    println!("Of {} workloads; promised: slower 0.0125 %, not slower 1 %.\n", trials.workloads);
    heading(&["noise", "called slower", "called not slower", "undecided"]);
    for row in rows {
        let Outcomes { slower, not_slower, .. } = &row.ours[1];
        println!(
            "| {} | {} | {} | {} |",
            row.noise.name(),
            bounded(*slower, trials.workloads),
            bounded(*not_slower, trials.workloads),
            percent(trials.workloads - slower - not_slower, trials.workloads)
        );
    }
    let total = |count: fn(&Outcomes) -> usize| rows.iter().map(|row| count(&row.ours[1])).sum();
    println!(
        "| all | {} | {} | |",
        bounded(total(|ours| ours.slower), trials.workloads * rows.len()),
        bounded(total(|ours| ours.not_slower), trials.workloads * rows.len())
    );
}

fn quantiles(units: &[usize]) -> String {
    let at = |share: f64| units.get((share * (units.len() - 1) as f64) as usize).copied().unwrap_or(0);
    format!("{} / {}", at(0.5), at(0.9))
}

fn print_detection(rows: &[Row]) {
    println!("\n### What is seen, and what it costs\n");
    println!(
        "Ours at a tolerance of 1 %: share decided rightly within {} units, and units used (median / 90 %); a unit is {} \
         samples a side in fresh processes. Others: share called slower, with {} samples a side.\n",
        ours::UNITS_MAX,
        ours::ROUNDS_PER_UNIT,
        rivals::SAMPLES_PER_SIDE
    );
    heading(&["noise", "unchanged: passed", "units", "2 %: found", "units", "5 %: found", "units"]);
    for row in rows {
        let [same, _, two, five] = &row.ours;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.noise.name(),
            percent(same.not_slower, same.units.len()),
            quantiles(&same.units),
            percent(two.slower, two.units.len()),
            quantiles(&two.units),
            percent(five.slower, five.units.len()),
            quantiles(&five.units)
        );
    }
    println!();
    heading(&rival_names(&["noise, 2 % / 5 % slower"]));
    for row in rows {
        let trials_count = row.ours[0].units.len();
        let cells: Vec<String> = (0..rivals::ALL.len())
            .map(|rule| {
                let [two, five] = [0, 1].map(|change| percent(row.rivals_found[change][rule], trials_count));
                format!("{two} / {five}")
            })
            .collect();
        println!("| {} | {} |", row.noise.name(), cells.join(" | "));
    }
}

fn print_power(trials_count: usize) {
    println!("\n### Units needed, by the noise of a unit\n");
    println!(
        "Normal units, tolerance 1 %, {WORKLOADS_COUNT} workloads, median / 90 % of {trials_count}; at most 400. In \
         brackets the median of signs alone.\n"
    );
    heading(&["sd of a unit", "unchanged: not slower", "2 %: slower", "5 %: slower"]);
    for sd in [0.005, 0.01, 0.02] {
        let cells = [0.0, 0.02, 0.05].map(|change: f64| power_cell(sd, change, trials_count));
        println!("| {:.1} % | {} |", 100.0 * sd, cells.join(" | "));
    }
}

fn power_cell(sd: f64, change: f64, trials_count: usize) -> String {
    const LIMIT: usize = 400;
    let (plan, mut both, mut signs) = (plan(), Vec::new(), Vec::new());
    for trial in 0..trials_count {
        let mut random = holdpoint_stats::random::Random::new(trial as u64);
        let units: Vec<f64> = (0..LIMIT).map(|_| change.ln_1p() + sd * random.normal()).collect();
        both.push(units_to_decide(plan, &units));
        let (mut sign, wanted) =
            (SignProcess::default(), if change > 0.0 { plan.alarm_e() } else { plan.pass_e() });
        let reached = units.iter().position(|x| {
            sign.push((*x > plan.line()) == (change > 0.0));
            sign.ln_e() >= wanted.ln()
        });
        signs.push(reached.map_or(LIMIT, |index| index + 1));
    }
    both.sort_unstable();
    signs.sort_unstable();
    format!("{} ({})", quantiles(&both), signs[signs.len() / 2])
}

fn units_to_decide(plan: Plan, units: &[f64]) -> usize {
    let Ok(mut sequential) = holdpoint_stats::sequential::Sequential::new(plan) else { return 0 };
    let decided = units.iter().position(|x| sequential.push(*x) != Decision::Undecided);
    decided.map_or(units.len(), |index| index + 1)
}
