//! A search over commits: how slow each was that was measured, from the good one to the bad one.

use super::Chart;
use crate::links::Links;
use crate::summary::bisection::short;
use crate::svg::{Frame, Plot, Scale, nice_ticks};
use crate::units;
use holdpoint_model::{BisectStep, Bisection, CommitInfo, StepOutcome};

const WIDTH_MIN: f64 = 640.0;
const WIDTH_MAX: f64 = 1000.0;
/// A commit's place along the axis: seven digits and a gap.
const COMMIT_WIDTH: f64 = 62.0;
const HEIGHT: f64 = 260.0;
const COMMIT_CHARS: usize = 7;

/// The steps in the order of their commits, each commit once.
///
/// Slower ones come after those that are not: of the latter a search goes on to newer ones, of the former to older ones. Commits that
/// were left out go where their dates put them.
pub(crate) fn in_history(b: &Bisection) -> Vec<&BisectStep> {
    let mut last: Vec<&BisectStep> = Vec::new();
    for step in &b.steps {
        last.retain(|before| before.commit.commit != step.commit.commit);
        last.push(step);
    }
    let of = |outcome: StepOutcome| last.iter().copied().filter(move |step| step.outcome == outcome);
    let slower: Vec<&BisectStep> = of(StepOutcome::Slower).collect();
    let mut order: Vec<&BisectStep> = of(StepOutcome::NotSlower).collect();
    let border = order.len();
    order.extend(slower.into_iter().rev());
    let decided = [StepOutcome::Slower, StepOutcome::NotSlower];
    for step in last.iter().copied().filter(|step| !decided.contains(&step.outcome)) {
        let newer = order.iter().position(|other| other.commit.date > step.commit.date);
        order.insert(newer.unwrap_or(border.min(order.len())), step);
    }
    order
}

/// Nothing where nothing was measured.
pub(crate) fn commits(b: &Bisection, links: &Links) -> Option<Chart> {
    let steps = in_history(b);
    let line = b.line.or_else(|| steps.iter().find_map(|step| step.line));
    let is_good = |step: &&&BisectStep| step.commit.commit == b.good.commit;
    let has_good = steps.iter().any(|step| is_good(&step));
    let count = steps.len() + usize::from(!has_good);
    let change = |step: &BisectStep| step.ratio.map(|ratio| ratio - 1.0).filter(|change| change.is_finite());
    let interval = |step: &BisectStep| step.ratio_interval.map(|ends| ends.map(|ratio| ratio - 1.0));
    steps.iter().find_map(|step| change(step))?;
    let ends = steps.iter().flat_map(|step| interval(step).into_iter().flatten().chain(change(step)));
    let y = Scale::over(ends.chain([0.0]).chain(line), 0.02);
    let width = (COMMIT_WIDTH * (count as f64 + 1.0)).clamp(WIDTH_MIN, WIDTH_MAX);
    let every = (COMMIT_WIDTH * (count as f64 + 1.0) / width).ceil() as usize;
    let mut plot =
        Plot::new(Frame { size: [width, HEIGHT], x: Scale::new(0.0, count as f64 + 1.0), y, lane: 0.0 });
    let is_culprit = |commit: &CommitInfo| b.culprits.iter().any(|culprit| culprit.commit == commit.commit);
    let first = usize::from(!has_good) + 1;
    let numbered = || steps.iter().copied().enumerate().map(|(i, step)| ((i + first) as f64, step));
    let name = |commit: &CommitInfo| short(commit).chars().take(COMMIT_CHARS).collect::<String>();
    let mut ticks: Vec<(f64, String)> = numbered()
        .filter(|(at, step)| (*at as usize).is_multiple_of(every) || is_culprit(&step.commit))
        .map(|(at, step)| (at, name(&step.commit)))
        .collect();
    if !has_good {
        ticks.insert(0, (1.0, name(&b.good)));
    }
    let percents = nice_ticks(y.ends().map(|end| end * 100.0), 5).into_iter();
    let percents: Vec<(f64, String)> = percents.map(|(at, text)| (at / 100.0, format!("{text} %"))).collect();
    plot.axes(&ticks, &percents, ["change against good", "commits, good to bad"]);
    plot.level("base", 0.0, "");
    if let Some(line) = line {
        plot.level("bound", line, "slower above this line");
    }
    let start = (!has_good).then_some(Some([1.0, 0.0]));
    let places = numbered().filter_map(|(at, step)| Some(Some([at, change(step)?])));
    plot.line("", start.into_iter().chain(places));
    plot.spans("ci", numbered().filter_map(|(at, step)| Some((at, interval(step)?))));
    if !has_good {
        let title = format!("good: {} {}", short(&b.good), b.good.subject);
        plot.dot("pass", [1.0, 0.0], &title, links.commit(&b.good.commit).as_deref());
    }
    for (at, step) in numbered() {
        let class = match step.outcome {
            StepOutcome::Slower => "regressed",
            StepOutcome::NotSlower => "pass",
            StepOutcome::Undecided | StepOutcome::NotBuilt | StepOutcome::Broken => "inconclusive",
        };
        let shown = change(step);
        let outcome = step.outcome.as_str();
        let title = format!(
            "{} {}: {outcome}, {}",
            short(&step.commit),
            step.commit.subject,
            units::number(shown, units::percent)
        );
        let y = shown.unwrap_or(0.0);
        if is_culprit(&step.commit) {
            plot.ring("ring", [at, y], 9.0);
            plot.words("culprit", [at, interval(step).map_or(y, |[_, high]| high.max(y))], "▲ culprit");
        } else if shown.is_none() {
            plot.words("", [at, y], outcome);
        }
        plot.dot(class, [at, y], &title, links.commit(&step.commit.commit).as_deref());
    }
    Some(Chart { plot, caption: "Each measured commit against the good one, with its interval".to_owned() })
}
