//! Evidence that may be looked at after every unit, see METHODOLOGY.md; and the sentence beside each verdict: the change, and
//! for an undecided one what would help.

use super::Pair;
use holdpoint_model::ab::{Clock, Ended};
use holdpoint_model::{AbWorkload, Trouble, Verdict};
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::{Decision, PAIRS_LEAST, Plan, Sequential};

/// Nobody waits for more than this many times what they gave, or this many units.
const LONGER_MAX: usize = 10;
const UNITS_MAX: usize = 10_000;
/// Continuations that are drawn to see how long a decision would take.
const DRAWS: usize = 15;
/// How likely a change is one, where advice is given; nothing is decided by it.
const LIKELY: f64 = 0.95;
/// Tolerances that are tried to find one that would have been decided, each this much wider than the one before.
const WIDER: f64 = 1.25;
const WIDER_COUNT: usize = 24;

pub(super) fn judge(pair: &Pair<'_>) -> (Verdict, String) {
    let verdict = match pair.deciding.decision(pair.index) {
        Decision::Slower => Verdict::Regressed,
        Decision::NotSlower => Verdict::Pass,
        Decision::Faster => Verdict::Improved,
        Decision::Undecided => Verdict::Inconclusive,
    };
    (verdict, reason(pair))
}

fn reason(pair: &Pair<'_>) -> String {
    let &Pair { evidence, deciding, index, .. } = pair;
    let (seen, tolerance) = (seen(pair), percent(pair.plan.tolerance));
    let not_sure = format!("not yet sure at {}", one_in(pair.plan.alarm_rate));
    let [slower, faster] = if pair.metric.is_none() { ["slower", "faster"] } else { ["worse", "better"] };
    let together = if deciding.is_called_together(index) { ", called together with others" } else { "" };
    match deciding.decision(index) {
        Decision::Slower => format!("{seen}, {slower} than the tolerance of {tolerance}{together}"),
        Decision::Faster => format!("{seen}, {faster} than the tolerance of {tolerance}{together}"),
        Decision::NotSlower => {
            let not_slower = format!("not {slower} than the tolerance of {tolerance}");
            match looks_faster(pair) {
                true => format!("looks {faster}: {seen}, {not_sure}; {not_slower}"),
                false => format!("{seen}, {not_slower}"),
            }
        }
        Decision::Undecided => {
            let units = match evidence.units_count {
                1 => "1 unit".to_owned(),
                count => format!("{count} units"),
            };
            let visible = visible(pair);
            let help = help(pair);
            let seen = match () {
                () if looks_slower(pair) => format!("looks {slower}: {seen} after {units}, {not_sure}"),
                () if looks_faster(pair) => format!("looks {faster}: {seen} after {units}, {not_sure}"),
                () => format!("{seen} after {units}"),
            };
            format!("{seen}, undecided at the tolerance of {tolerance}; {visible}; {help}")
        }
    }
}

/// Whether the estimate lies beyond the tolerance.
fn looks_slower(pair: &Pair<'_>) -> bool {
    pair.evidence.ratio > 1.0 + pair.plan.tolerance
}

/// The same in the other direction.
fn looks_faster(pair: &Pair<'_>) -> bool {
    pair.evidence.ratio * (1.0 + pair.plan.tolerance) < 1.0
}

/// The ratio and its interval as changes: `+2.1 % [+1.5, +2.7]`; a metric of which more is better falls where it is worse.
fn seen(pair: &Pair<'_>) -> String {
    let evidence = pair.evidence;
    let turn = pair.metric.map_or(1.0, |metric| metric.plan.better.sign());
    let change = |ratio: f64| (ratio.powf(turn) - 1.0) * 100.0;
    let interval = evidence.ratio_interval.map(|ends| ends.map(change));
    let interval = interval.map(|[low, high]| [low.min(high), low.max(high)]);
    let interval = interval.map(|[low, high]| format!(" [{low:+.1}, {high:+.1}]")).unwrap_or_default();
    let clock = pair.workload.units.last().map(|unit| unit.clock).filter(|_| pair.metric.is_none());
    let clock = match clock {
        Some(Clock::Cpu | Clock::Tandem) => " of CPU time",
        Some(Clock::Wall) => " of wall time",
        _ => "",
    };
    format!("{:+.1} %{interval}{clock}", change(evidence.ratio))
}

fn visible(pair: &Pair<'_>) -> String {
    match pair.deciding.evidence(pair.index) {
        Some(known) if known.pairs_differ() => {
            return "its pairs of processes differ, so each counts once".to_owned();
        }
        Some(known) if known.lacks_pairs() => {
            return format!("fewer than {PAIRS_LEAST} pairs of processes say so");
        }
        _ => {}
    }
    let what = if pair.metric.is_none() { "slowdown" } else { "worsening" };
    match pair.evidence.smallest_visible_slowdown {
        Some(slowdown) => format!("a {what} of {} would have been seen", percent(slowdown)),
        None => format!("no {what} could have been seen in fewer than {} units", pair.plan.units_count_min()),
    }
}

/// How it could be decided.
fn help(pair: &Pair<'_>) -> String {
    let &Pair { workload, evidence, ended, .. } = pair;
    match ended {
        Ended::Interrupted => return "it was interrupted: --resume goes on".to_owned(),
        // It stopped early, because another question had been answered.
        Ended::Decided => return "its samples do not suffice for this question: measure again".to_owned(),
        _ => {}
    }
    let units_count = f64::from(evidence.units_count);
    if let Some(more) = units_to_decide(pair) {
        let units = units_count + more as f64;
        let seconds = workload.spent_s * units / units_count;
        let more_units = match ended {
            Ended::UnitsMax => format!(" --units-max {}", (units * 1.5).ceil()),
            _ => String::new(),
        };
        return format!(
            "about {seconds:.0} s would decide, {:.0} s were spent: --budget {:.0}{more_units}",
            workload.spent_s,
            (seconds * 1.5).ceil()
        );
    }
    let quieter = match worst_trouble(workload) {
        Some(trouble) => format!("a quieter machine ({} in most rounds)", trouble.as_str()),
        None => "a quieter machine".to_owned(),
    };
    match tolerance_decided(pair) {
        Some(tolerance) => {
            format!(
                "a --tolerance of {} would have been decided; so might this one on {quieter}",
                percent(tolerance)
            )
        }
        None => format!("it takes {quieter}, or a longer --budget"),
    }
}

/// Units that a decision would take beyond those there are, if further ones were like them: the median over draws. Absent where
/// most draws remain undecided for as long as anybody would wait.
fn units_to_decide(pair: &Pair<'_>) -> Option<usize> {
    let known = pair.deciding.evidence(pair.index)?;
    // A change that may be noise is taken for none: luck so far is no reason to expect more of it.
    let likely = known.median_ratio_interval(LIKELY);
    let may_be_none = likely.is_some_and(|[low, high]| low <= 1.0 && 1.0 <= high);
    let middle = pair.evidence.ratio.ln();
    let units: Vec<(bool, f64)> = match may_be_none {
        true => {
            known.units().flat_map(|(is_fresh, x)| [(is_fresh, x - middle), (is_fresh, middle - x)]).collect()
        }
        false => known.units().collect(),
    };
    let most = (LONGER_MAX * known.units_count().max(pair.plan.units_count_min())).min(UNITS_MAX);
    let mut random = Random::new(units.len() as u64);
    let mut draw = || {
        let mut continued = known.clone();
        let mut next = || units[random.below(units.len())];
        (1..=most).find(|_| {
            let (is_fresh, x) = next();
            continued.push_from(is_fresh, x) != Decision::Undecided
        })
    };
    let mut counts: Vec<Option<usize>> = (0..DRAWS).map(|_| draw()).collect();
    counts.sort_by_key(|count| count.unwrap_or(usize::MAX));
    counts[DRAWS / 2]
}

/// The narrowest tolerance, of some, at which these units would have decided.
fn tolerance_decided(pair: &Pair<'_>) -> Option<f64> {
    let known = pair.deciding.evidence(pair.index)?;
    let tolerances =
        std::iter::successors(Some(pair.plan.tolerance * WIDER), |tolerance| Some(tolerance * WIDER));
    tolerances.take(WIDER_COUNT).find(|tolerance| {
        let mut again = Sequential::new(Plan { tolerance: *tolerance, ..*pair.plan }).ok();
        again.as_mut().is_some_and(|again| {
            known.units().any(|(is_fresh, x)| again.push_from(is_fresh, x) != Decision::Undecided)
        })
    })
}

/// The disturbance of more than half of all rounds.
fn worst_trouble(workload: &AbWorkload) -> Option<Trouble> {
    let rounds = || workload.units.iter().flat_map(|unit| &unit.rounds);
    let troubles = [
        Trouble::Steal,
        Trouble::Competing,
        Trouble::SharedDevice,
        Trouble::Throttled,
        Trouble::Drift,
        Trouble::Waits,
        Trouble::ClockStep,
    ];
    let count = |trouble: &Trouble| rounds().filter(|round| round.trouble.contains(trouble)).count();
    let worst = troubles.into_iter().max_by_key(count)?;
    (2 * count(&worst) > rounds().count()).then_some(worst)
}

/// 0.001 as `1 in 1 000`.
fn one_in(rate: f64) -> String {
    let count = 1.0 / rate;
    if (count - count.round()).abs() > 1e-6 * count {
        return percent(rate);
    }
    let digits = format!("{count:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    format!("1 in {}", groups.collect::<Vec<_>>().join(" "))
}

/// 0.01 as `1.0 %`, 0.0025 as `0.25 %`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 && (percent * 10.0 - (percent * 10.0).round()).abs() > 0.05 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}
