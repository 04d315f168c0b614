//! Generated tables between marks in pages: the constants of METHODOLOGY.md and the exit codes.

use holdpoint_flow::ab::UNITS_AT_ONCE;
use holdpoint_flow::baseline::RUNS_DEFAULT;
use holdpoint_gate::ab::{estimate, unit_plan};
use holdpoint_gate::{PASS_TIMES, THRESHOLD_PCT, compare, disjoint_ci, noise, tolerance};
use holdpoint_measure::constants as measure;
use holdpoint_model::ab;
use holdpoint_model::exit::EXIT_CODES;
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};

/// The page with the constants between their marks.
pub fn print_constants(text: &str) -> String {
    print_between(text, "constants", &table())
}

/// The page with the exit codes between their marks.
pub fn print_exit_codes(text: &str) -> String {
    let line = |(code, meaning): &(&str, &str)| format!("| {code} | {meaning} |\n");
    let lines: String = EXIT_CODES.iter().map(line).collect();
    print_between(text, "exit codes", &format!("\n| exit code | meaning |\n|--:|---|\n{lines}\n"))
}

/// The page with the generated text between the marks of that name; unchanged where it has none.
fn print_between(text: &str, name: &str, generated: &str) -> String {
    let begin = format!("<!-- {name}: printed by `cargo xtask gen` -->\n");
    let end = format!("<!-- end of {name} -->\n");
    let between = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    match between {
        Some((before, after)) => format!("{before}{begin}{generated}{end}{after}"),
        None => text.to_owned(),
    }
}

fn table() -> String {
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    let rows = [
        ("`ALARM_RATE`", percent(ALARM_RATE), "of unchanged suites may be called slower; `--alarm-rate`"),
        ("`MISS_RATE`", percent(MISS_RATE), "of workloads slower than the tolerance may pass; `--miss-rate`"),
        (
            "`UNITS_AT_ONCE`",
            UNITS_AT_ONCE.to_string(),
            "units measured at the same time, each on a CPU of its own; `--at-once`",
        ),
        (
            "`SAMPLES`",
            unit_plan::SAMPLES.to_string(),
            "samples of one side in one round that count, of which the fastest stands for the round",
        ),
        (
            "`LEVEL`",
            percent(unit_plan::LEVEL),
            "above the rest of its turn, a sample has not levelled off yet",
        ),
        (
            "`TURN_S_MAX`",
            format!("{} ms", unit_plan::TURN_S_MAX * 1e3),
            "longest turn of one side in one round, unless one sample is longer",
        ),
        (
            "`ROUNDS`",
            "1 to 32".to_owned(),
            "rounds of a unit; more where a budget would not be spent otherwise",
        ),
        (
            "`DRIFT`",
            percent(estimate::DRIFT.exp_m1()),
            "by which both sides together may differ from the unit's other rounds",
        ),
        (
            "`LEFT_MIN`",
            percent(ab::LEFT_MIN),
            "of a sample must be left without its wait for it to stand for a round",
        ),
        ("`CALM_LEFT`", percent(ab::CALM_LEFT), "of a sample that hardly waited is left"),
        (
            "`CLOCK_STEP_NS`",
            format!("{} ms", measure::CLOCK_STEP_NS / 1_000_000),
            "by which the system's clock may move against the steady one",
        ),
        ("`STEAL`", percent(measure::STEAL), "of CPU time may go to other machines"),
        ("`FREQUENCY`", percent(measure::FREQUENCY), "of the highest frequency seen is not throttled"),
        ("`WAIT`", percent(measure::WAIT), "of a round may a process wait for a CPU"),
        (
            "`STEPS_PER_SAMPLE`",
            measure::STEPS_PER_SAMPLE.to_string(),
            "steps of the clock that a sample lasts at least",
        ),
        (
            "`WARM_DIFFERENCE`",
            percent(measure::WARM_DIFFERENCE),
            "between the medians of windows ends warm-up",
        ),
        ("`WARM_WINDOWS`", measure::WARM_WINDOWS.to_string(), "times in a row"),
        (
            "`SPEEDUP_MAX`",
            format!("{} times", holdpoint_gate::too_fast::SPEEDUP_MAX),
            "faster is to be checked before it counts; `--speedup-max`",
        ),
        ("`TOLERANCE`", percent(tolerance::TOLERANCE), "tolerance where none is asked for; `--tolerance`"),
        ("`RUNS_DEFAULT`", RUNS_DEFAULT.to_string(), "runs behind a baseline; `--runs`"),
        (
            "`RUNS_MIN`",
            tolerance::RUNS_MIN.to_string(),
            "runs without which it is not known how far they differ",
        ),
        (
            "`SESSION_DRIFT`",
            tolerance::SESSION_DRIFT.to_string(),
            "assumed standard deviation of the difference between sessions, in units of that between a baseline's runs",
        ),
        (
            "`HIDING_DRIFT`",
            tolerance::HIDING_DRIFT.to_string(),
            "the same where it would hide a slowdown, which no further run confirms",
        ),
        (
            "`MISS_MARGIN`",
            tolerance::MISS_MARGIN.to_string(),
            "by which a pass is surer than the miss rate by Student's t, because recorded runs lie far out more often",
        ),
        (
            "`PASS_TIMES`",
            PASS_TIMES.to_string(),
            "a change that is surely below so many times the tolerance passes too, and says so; a history passes runs within so much noise",
        ),
        (
            "`BUSIER`",
            percent(compare::BUSIER),
            "of the CPUs more in use by others than for the baseline is busier, less is quieter",
        ),
        (
            "`SHARING_TIMES`",
            compare::SHARING_TIMES.to_string(),
            "longer may a call take because others share caches and memory",
        ),
        (
            "`SPREAD_FACTOR`",
            noise::SPREAD_FACTOR.to_string(),
            "noise of a baseline that does not say what it sees, in units of its runs' spread",
        ),
        (
            "`THRESHOLD_PCT`",
            format!("{} %", THRESHOLD_PCT),
            "policy `threshold`: the least improvement that passes",
        ),
        (
            "`REGRESSION_PCT`, `IMPROVEMENT_PCT`",
            format!("{} %, {} %", disjoint_ci::REGRESSION_PCT, disjoint_ci::IMPROVEMENT_PCT),
            "policy `disjoint-ci`: slower, faster",
        ),
        (
            "`EFFECT_MIN`",
            disjoint_ci::EFFECT_MIN.to_string(),
            "policy `disjoint-ci`: the least size of Cliff's delta",
        ),
        ("`P_MAX`", disjoint_ci::P_MAX.to_string(), "policy `disjoint-ci`: the largest Mann-Whitney p"),
    ];
    let line = |(name, value, what): &(&str, String, &str)| format!("| {name} | {value} | {what} |\n");
    let lines: String = rows.iter().map(line).collect();
    format!("\n| constant | value | what |\n|---|--:|---|\n{lines}\n")
}
