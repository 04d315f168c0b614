//! A calibration in words and cells, for the terminal and Markdown alike. Not yet neutralised.

use super::sides::{busy_cell, out_of};
use crate::paint::Ink;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{list, plural};
use crate::units;
use holdpoint_model::Calibration;

/// Names of workloads that are too noisy.
const NOISY_SHOWN: usize = 6;
/// Times to see something in; a foreign file may have any number.
const TIMES_SHOWN: usize = 4;
/// Where the terminal is narrow, the last of the times goes first, as the title of the first explains the others.
const TIME_DROP: u8 = 5;

/// The sides, the tolerance and the number of trials.
pub(crate) fn facts(c: &Calibration) -> [String; 3] {
    let injected = if is_injected(c) {
        format!("{} slower head", units::setting(c.inject))
    } else {
        "base against itself".to_owned()
    };
    [injected, format!("tolerance {}", units::setting(c.tolerance)), plural(c.trials, "trial")]
}

/// Whether a slowdown was put into head.
pub(crate) fn is_injected(c: &Calibration) -> bool {
    c.inject > 0.0
}

/// The times for which it is known what is seen in them, in seconds.
fn times_s(c: &Calibration) -> Vec<f64> {
    let known = c.workloads.values().flat_map(|w| &w.visible).filter(|visible| visible.slowdown.is_some());
    let all = known.map(|visible| visible.seconds);
    let mut times: Vec<f64> = all.filter(|time| time.is_finite()).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times.truncate(TIMES_SHOWN);
    times
}

/// How often the rule was wrong, and what it sees, by workload.
pub(crate) fn workloads_table(c: &Calibration) -> Grid {
    let times_s = times_s(c);
    let mut columns: Vec<Column> = vec![
        names("workload"),
        numbers(if is_injected(c) { "detected" } else { "false alarms" }),
        numbers("undecided").drop(2),
        numbers("failed").drop(1),
        numbers("seconds").drop(4),
        numbers("busy").drop(6),
        numbers("p90").drop(6),
        numbers("units").drop(8),
        numbers("unit sd").drop(7),
    ];
    columns.extend(times_s.iter().enumerate().map(|(i, time)| {
        let word = if i == 0 { "sees in" } else { "in" };
        numbers("").titled(format!("{word} {time} s")).drop(TIME_DROP)
    }));
    columns.push(words("remark").drop(3));
    let any_failed = c.workloads.values().any(|w| w.failed > 0);
    let mut grid = Grid::new(&columns);
    for (name, w) in &c.workloads {
        let (called, ink) = match (is_injected(c), w.false_alarms) {
            (true, _) => (w.detected, Ink::Plain),
            (false, 0) => (0, Ink::Plain),
            (false, n) => (n, Ink::Doubt),
        };
        let mut row = vec![
            Cell::name(name),
            Cell::inked(ink, &out_of(called, if is_injected(c) { w.trials } else { w.decided() })),
            Cell::count(w.inconclusive),
            // A column for what never happened is left out.
            if any_failed { Cell::count(w.failed) } else { Cell::new("") },
            Cell::new(&units::seconds(w.seconds)),
            busy_cell(w.busy_share),
            Cell::new(&units::seconds(w.seconds_p90)),
            Cell::count(w.units.round() as u64),
            Cell::number(w.unit_sd, units::small_share),
        ];
        row.extend(times_s.iter().map(|time| {
            let at = w.visible.iter().find(|visible| visible.seconds == *time);
            Cell::number(at.and_then(|visible| visible.slowdown), units::share)
        }));
        row.push(Cell::inked(Ink::Doubt, if w.too_noisy { "too noisy" } else { "" }));
        grid.push(row);
    }
    grid
}

/// Notes for the reader, each with a label.
pub(crate) fn notes(c: &Calibration) -> Vec<(&'static str, String)> {
    let noisy = c.workloads.iter().filter(|(_, w)| w.too_noisy).map(|(name, _)| name.as_str());
    let noisy: Vec<&str> = noisy.collect();
    let mut notes = Vec::new();
    if !noisy.is_empty() {
        let names = list(&noisy, NOISY_SHOWN);
        let tolerance = units::setting(c.tolerance);
        notes.push((
            "too noisy",
            format!(
                "{names}: undecided more often than not, so not to be gated at {tolerance}; raise the \
                 tolerance to what is seen, or give more time"
            ),
        ));
    }
    notes.extend(c.advice.iter().map(|advice| ("advice", format!("{}: {}", advice.detail, advice.remedy))));
    if c.toolchain.profile == "debug" {
        notes.push(("warning", super::DEBUG_BUILD.to_owned()));
    }
    if !c.finished {
        notes.push(("unfinished", format!("ended early after {}", plural(c.trials, "trial"))));
    }
    notes
}

/// How it came out: the words that count, and a sentence.
pub(crate) fn describe_calibration(c: &Calibration) -> (String, String) {
    let trials = plural(c.trials, "trial");
    if c.trials == 0 || c.workloads.is_empty() {
        return ("nothing is known".to_owned(), format!("{trials} of {}", workloads(c)));
    }
    let failed: u64 = c.workloads.values().map(|workload| u64::from(workload.failed)).sum();
    if failed > 0 {
        let of = format!("{} of {}", units::count(failed), plural(c.comparisons, "comparison"));
        return (
            "failed".to_owned(),
            format!("{of} failed, so nothing is known about verdicts, and nothing was kept"),
        );
    }
    if is_injected(c) {
        return ("detected".to_owned(), detected(c));
    }
    let trials = match c.decided {
        Some(decided) if decided < c.trials => format!("{} that were decided", plural(decided, "trial")),
        _ => trials,
    };
    let alarms = match c.false_alarms {
        0 if c.decided == Some(0) => {
            return (
                "nothing is known".to_owned(),
                format!("none of {} was decided", plural(c.trials, "trial")),
            );
        }
        0 => format!("no false alarm in {trials}"),
        n => format!("{} in {trials}", plural(n, "false alarm")),
    };
    let seconds =
        c.suite_seconds.map(|s| format!(", median {} s per trial", units::seconds(s))).unwrap_or_default();
    let stated = format!("stated {}{seconds}", units::setting(c.alarm_rate));
    let sentence = match c.false_alarm_rate_upper {
        Some(upper) => format!(
            "the rate is at most {} per suite with 95 % confidence; {stated}",
            units::small_share(upper)
        ),
        None => stated,
    };
    (alarms, sentence)
}

/// An alarm where nothing changed is cause for doubt; how many are too many is not for a page to say.
pub(crate) fn ink(c: &Calibration) -> Ink {
    match c.false_alarms {
        _ if !c.is_evidence() => Ink::Doubt,
        _ if is_injected(c) => Ink::Strong,
        0 if c.trials > 0 => Ink::Calm,
        _ => Ink::Doubt,
    }
}

fn workloads(c: &Calibration) -> String {
    plural(c.workloads.len(), "workload")
}

fn detected(c: &Calibration) -> String {
    let total = u64::from(c.comparisons);
    let share = units::share(f64::from(c.detected) / total as f64);
    let undecided = match c.inconclusive {
        0 => String::new(),
        n => format!(", {} undecided", units::count(n.into())),
    };
    let [n, total] = [c.detected.into(), total].map(units::count);
    let suite = c.suite_seconds.map(|s| format!(", {} s per trial", units::seconds(s))).unwrap_or_default();
    let busy =
        c.busy_share.map(|busy| format!(", the device busy in {}", units::share(busy))).unwrap_or_default();
    format!("{n} of {total} ({share}){undecided}, {} s per workload{suite}{busy}", units::seconds(c.seconds))
}
