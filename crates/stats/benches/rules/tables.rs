//! What was counted, as Markdown.

use holdpoint_stats::classic::binomial_upper;
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::{Decision, Plan, Sequential, SignProcess};

use crate::recorded::Record;
use crate::{Row, Trials, UNITS_UNSTOPPED, WORKLOADS_COUNT, ours, plan, recorded_plan, rivals};

fn percent(count: usize, of: usize) -> String {
    format!("{:.0} %", 100.0 * count as f64 / of as f64)
}

/// The count and the largest rate it does not contradict.
fn bounded(count: usize, of: usize) -> String {
    let upper = binomial_upper(count, of, 0.95).unwrap_or(1.0);
    format!("{count} (≤ {:.3} %)", 100.0 * upper)
}

pub fn heading(columns: &[&str]) {
    println!("| {} |\n|---|{}", columns.join(" | "), "--:|".repeat(columns.len() - 1));
}

fn rival_names<'a>(first: &[&'a str]) -> Vec<&'a str> {
    first.iter().copied().chain(rivals::ALL.map(|(name, _)| name)).collect()
}

pub fn print_unchanged(trials: Trials, rows: &[Row]) {
    println!("### Unchanged suites of {WORKLOADS_COUNT} (recorded: 7) with a workload called slower\n");
    println!(
        "Ours: of {} suites (process bias and everything: a quarter), in brackets the exact 95 % upper bound of the rate; promised: 0.1 %. Tolerance 0 goes \
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
            row.name,
            bounded(row.alarms, row.suites),
            bounded(row.improvements, row.suites),
            bounded(row.stressed_alarms, trials.stressed_suites),
            rivals.join(" | ")
        );
    }
    let total = |count: fn(&Row) -> usize| rows.iter().map(count).sum::<usize>();
    println!(
        "| all | {} | {} | {} |{}",
        bounded(total(|row| row.alarms), total(|row| row.suites)),
        bounded(total(|row| row.improvements), total(|row| row.suites)),
        bounded(total(|row| row.stressed_alarms), trials.stressed_suites * rows.len()),
        " |".repeat(rivals::ALL.len())
    );
}

pub fn print_as_it_happened(record: &Record) {
    println!("\n### The records as they happened\n");
    println!(
        "No coin, no random start: units in their order, slower at an evidence of {}. Tolerance 0 goes on to the end; the \
         largest evidence ever held.\n",
        recorded_plan(record).alarm_e()
    );
    heading(&[
        "workload",
        "units",
        "median",
        "sd",
        "tolerance 1 %",
        "slower than 0: most evidence",
        "faster than 0: most evidence",
    ]);
    for workload in &record.workloads {
        print_one_as_it_happened(record, &workload.name, &workload.units);
    }
    for workload in &record.workloads {
        print_one_as_it_happened(record, &format!("{}, earlier", workload.name), &workload.again);
    }
}

fn print_one_as_it_happened(record: &Record, name: &str, units: &[f64]) {
    let plan = recorded_plan(record);
    let (decision, units_count) = ours::decide_units(plan, units.iter().copied());
    let decision = match decision {
        Decision::Undecided => "undecided",
        Decision::NotSlower => "not slower",
        Decision::Faster => "faster",
        Decision::Slower => "slower",
    };
    let Ok(mut strict) = Sequential::new(Plan { tolerance: 0.0, ..plan }) else { return };
    let mut most = [0.0_f64; 2];
    for x in units {
        strict.push(*x);
        most = [most[0].max(strict.e_slower()), most[1].max(strict.e_faster())];
    }
    let median = holdpoint_stats::median(units).unwrap_or(f64::NAN);
    let mean = holdpoint_stats::mean(units).unwrap_or(f64::NAN);
    let variance = units.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (units.len() - 1) as f64;
    println!(
        "| {name} | {} | {:+.2} % | {:.1} % | {decision} after {units_count} | {:.1} | {:.1} |",
        units.len(),
        100.0 * median,
        100.0 * variance.sqrt(),
        most[0],
        most[1]
    );
}

pub fn print_errors_at_the_line(trials: Trials, rows: &[Row]) {
    println!("\n### A change of exactly the tolerance: the worst case of both errors\n");
    println!(
        "Of {} workloads (recorded: of each of seven); promised: slower 0.0125 % (recorded: 0.0143 %), not slower 1 %.\n",
        trials.workloads
    );
    heading(&["noise", "called slower", "called not slower", "undecided"]);
    let count = |row: &Row| {
        let at_the_line = || row.seen.iter().map(|seen| &seen.ours[1]);
        let slower: usize = at_the_line().map(|ours| ours.slower).sum();
        let not_slower: usize = at_the_line().map(|ours| ours.not_slower).sum();
        [slower, not_slower, at_the_line().map(|ours| ours.units.len()).sum()]
    };
    let mut total = [0; 3];
    for row in rows {
        let [slower, not_slower, all] = count(row);
        println!(
            "| {} | {} | {} | {} |",
            row.name,
            bounded(slower, all),
            bounded(not_slower, all),
            percent(all - slower - not_slower, all)
        );
        total = [total[0] + slower, total[1] + not_slower, total[2] + all];
    }
    println!("| all | {} | {} | |", bounded(total[0], total[2]), bounded(total[1], total[2]));
}

fn quantiles(units: &[usize]) -> String {
    let at = |share: f64| units.get((share * (units.len() - 1) as f64) as usize).copied().unwrap_or(0);
    format!("{} / {}", at(0.5), at(0.9))
}

pub fn print_detection(rows: &[Row]) {
    println!("\n### What is seen, and what it costs\n");
    println!(
        "Ours at a tolerance of 1 %: share decided rightly within {} units, and units used (median / 90 %); a unit is {} \
         samples a side in fresh processes (recorded: 6 to 16 rounds). Others: share called slower, with {} samples a side.\n",
        ours::UNITS_MAX,
        ours::ROUNDS_PER_UNIT,
        rivals::SAMPLES_PER_SIDE
    );
    heading(&["noise", "unchanged: passed", "units", "2 %: found", "units", "5 %: found", "units"]);
    let seen = || rows.iter().flat_map(|row| &row.seen);
    for row in seen() {
        let [same, _, two, five] = &row.ours;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.name,
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
    for row in seen() {
        let trials_count = row.ours[0].units.len();
        let cells: Vec<String> = (0..rivals::ALL.len())
            .map(|rule| {
                let [two, five] = [0, 1].map(|change| percent(row.rivals_found[change][rule], trials_count));
                format!("{two} / {five}")
            })
            .collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
}

pub fn print_power(trials_count: usize) {
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
        let mut random = Random::new(trial as u64);
        let units: Vec<f64> = (0..LIMIT).map(|_| change.ln_1p() + sd * random.normal()).collect();
        both.push(ours::decide_units(plan, units.iter().copied()).1);
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
