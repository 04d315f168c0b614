//! Evidence that may be looked at after every unit, see METHODOLOGY.md; and the sentence beside each verdict: the change, and
//! for an undecided one what would help.

use super::Pair;
use holdpoint_model::ab::Ended;
use holdpoint_model::{AbWorkload, Trouble, Verdict};
use holdpoint_stats::sequential::Decision;

/// The error of a median of normals over that of their mean, √(π/2).
const MEDIAN_ERROR: f64 = 1.253_314_137_315_500_3;
/// Errors of the median within which a change cannot be told from the tolerance.
const CLOSE_ERRORS: f64 = 2.0;
/// ln of what it costs not to know the size of the change beforehand: the tables of docs/simulation.md are met by 1.5.
const LN_E_LOST: f64 = 1.5;
/// Nobody waits for more than this many times what they gave.
const LONGER_MAX: f64 = 10.0;

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
    let [slower, faster] = if pair.metric.is_none() { ["slower", "faster"] } else { ["worse", "better"] };
    let together = if deciding.is_called_together(index) { ", called together with others" } else { "" };
    match deciding.decision(index) {
        Decision::Slower => format!("{seen}, {slower} than the tolerance of {tolerance}{together}"),
        Decision::Faster => format!("{seen}, {faster} than the tolerance of {tolerance}{together}"),
        Decision::NotSlower => format!("{seen}, not {slower} than the tolerance of {tolerance}"),
        Decision::Undecided => {
            let units = match evidence.units_count {
                1 => "1 unit".to_owned(),
                count => format!("{count} units"),
            };
            let visible = visible(pair);
            let help = help(pair);
            format!("{seen} after {units}, undecided at the tolerance of {tolerance}; {visible}; {help}")
        }
    }
}

/// The ratio and its interval as changes: `+2.1 % [+1.5, +2.7]`; a metric of which more is better falls where it is worse.
fn seen(pair: &Pair<'_>) -> String {
    let evidence = pair.evidence;
    let turn = pair.metric.map_or(1.0, |metric| metric.plan.better.sign());
    let change = |ratio: f64| (ratio.powf(turn) - 1.0) * 100.0;
    let interval = evidence.ratio_interval.map(|ends| ends.map(change));
    let interval = interval.map(|[low, high]| [low.min(high), low.max(high)]);
    let interval = interval.map(|[low, high]| format!(" [{low:+.1}, {high:+.1}]")).unwrap_or_default();
    format!("{:+.1} %{interval}", change(evidence.ratio))
}

fn visible(pair: &Pair<'_>) -> String {
    let what = if pair.metric.is_none() { "slowdown" } else { "worsening" };
    match pair.evidence.smallest_visible_slowdown {
        Some(slowdown) => format!("a {what} of {} would have been seen", percent(slowdown)),
        None => format!("no {what} could have been seen in fewer than {} units", pair.plan.units_count_min()),
    }
}

/// The evidence that would have sufficed to decide.
fn help(pair: &Pair<'_>) -> String {
    let &Pair { workload, evidence, ended, .. } = pair;
    let plan = pair.plan;
    match ended {
        Ended::Interrupted => return "it was interrupted: --resume goes on".to_owned(),
        // It stopped early, because another question had been answered.
        Ended::Decided => return "its samples do not suffice for this question: measure again".to_owned(),
        _ => {}
    }
    let units_count = f64::from(evidence.units_count);
    let may_go_on = ended != Ended::UnitsMax;
    let (Some(sd), Some(_)) = (evidence.unit_sd, evidence.smallest_visible_slowdown) else {
        let seconds = workload.spent_s / units_count * plan.units_count_min() as f64;
        return match may_go_on {
            true => format!("that many take about {seconds:.1} s: give it a longer --budget"),
            false => "allow it more units".to_owned(),
        };
    };
    let flag = if pair.metric.is_none() { "--tolerance" } else { "tolerance" };
    let (x, line) = (evidence.ratio.ln(), plan.line());
    let median_error = MEDIAN_ERROR * sd / units_count.sqrt();
    let distance = (x - line).abs();
    // Only where the noise is well below the tolerance is it the change that is close, and not everything.
    if distance <= CLOSE_ERRORS * median_error && CLOSE_ERRORS * median_error < line {
        let (lower, upper) = (percent(plan.tolerance / 2.0), percent(2.0 * plan.tolerance));
        return format!(
            "the change is close to the tolerance itself: more time would decide little, a {flag} of {lower} \
             or {upper} would"
        );
    }
    // A change that may be noise is taken for none: luck so far is no reason to expect more of it.
    let may_be_none = evidence.ratio_interval.is_none_or(|[low, high]| low <= 1.0 && 1.0 <= high);
    let x = if may_be_none { 0.0 } else { x };
    let e_needed = if x > line { plan.alarm_e() } else { plan.pass_e() };
    let longer = units_needed(e_needed, (x - line).abs() / sd) / units_count;
    if may_go_on && longer <= LONGER_MAX {
        let seconds = workload.spent_s * longer.max(1.0);
        return format!(
            "about {seconds:.0} s would decide, {:.0} s were spent: give it a longer --budget",
            workload.spent_s
        );
    }
    // The tolerance at which a change like this would have been called not slower in as many units.
    let within = x.max(0.0) + sd * (2.0 * (plan.pass_e().ln() + LN_E_LOST) / units_count).sqrt();
    let quieter = match worst_trouble(workload) {
        Some(trouble) => format!("a quieter machine ({} in most rounds)", trouble.as_str()),
        None => "a quieter machine".to_owned(),
    };
    format!(
        "a {flag} of {} would have been decided; so would this one on {quieter}",
        percent(within.exp_m1())
    )
}

/// Units of normal noise until evidence is worth `e`, when the median lies `distance` standard deviations beyond the line:
/// each is worth half the square of that at best, and none more than double.
fn units_needed(e: f64, distance: f64) -> f64 {
    let ln_e = e.ln() + LN_E_LOST;
    (2.0 * ln_e / distance.powi(2)).max(ln_e / std::f64::consts::LN_2)
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
        Trouble::ClockStep,
    ];
    let count = |trouble: &Trouble| rounds().filter(|round| round.trouble.contains(trouble)).count();
    let worst = troubles.into_iter().max_by_key(count)?;
    (2 * count(&worst) > rounds().count()).then_some(worst)
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
