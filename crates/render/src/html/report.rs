//! The page of a run, with or without its comparison with a baseline.

use super::rows::{self, ListRow};
use super::{Banner, Extras, banner_page, figures, ink_class, markup, sides};
use crate::charts::{self, RowMark, Samples};
use crate::judged::Judged;
use crate::markdown::report_sections;
use crate::paint::Ink;
use crate::svg::{Mark, Scale, Strips};
use crate::{summary, text, units};
use holdpoint_model::metric::METRIC_TIME;
use holdpoint_model::{Machine, Measured, Outcome, Report, RunStatus, Source, Stated};
use holdpoint_stats as stats;
use std::collections::HashSet;

const CHARTS_MAX: usize = 60;
const POINTS_MAX: usize = 120;
/// The strips of a run without a baseline show this part of its samples.
const SPREAD: [f64; 2] = [0.05, 0.95];

const READING: &str = "Each dot is the change against the baseline; the shaded band is the tolerance, the dashed line its limit, and the small ticks are the baseline's own runs. \
    Open a row for the distribution of the times, with the range of the baseline's runs shaded and the limit dashed, and the median of each round above the machine's load.";
const SPREAD_READING: &str = "Each line spans the middle 90 % of a workload's samples, relative to their median: how much it varies. \
    Open a row for the distribution of the times and the median of each round above the machine's load (✕: the device was throttled).";

/// The page of a judgement with its samples; absent where there are none to show.
pub fn judgement(judged: Judged<'_>, extras: &Extras<'_>) -> Option<String> {
    if judged.is_sides() {
        return Some(sides::sides(judged, extras));
    }
    judged.run().map(|run| report(run, Some(judged.judgement), extras))
}

pub fn report(r: &Report, j: Option<&Stated>, extras: &Extras<'_>) -> String {
    let judged = j.map(|j| Judged::new(j, Some(Source::Run(r))));
    let sentence = judged.map_or_else(|| summary::describe_run(r), |judged| judged.sentence());
    let commit = r.revision.as_ref();
    let baseline = j.map(|j| format!("policy {}", j.policy));
    let facts = vec![
        commit.map(text::revision).unwrap_or_default(),
        r.machine.as_ref().map(Machine::describe).unwrap_or_default(),
        baseline.unwrap_or_default(),
        r.timestamp_utc.clone(),
    ];
    let banner = match j {
        Some(j) => Banner::of_verdict(&r.suite, j.verdict, &sentence, facts),
        None => {
            let ink = match r.status {
                RunStatus::Ok => Ink::Plain,
                RunStatus::Partial | RunStatus::Skipped => Ink::Doubt,
                RunStatus::Failed => Ink::Bad,
            };
            let (word, title) = (r.status.as_str(), format!("holdpoint: {}", r.suite));
            Banner { title, ink: ink_class(ink), word, sentence: &sentence, facts }
        }
    };
    let commits: Vec<&str> = commit.map(|at| at.commit.as_str()).into_iter().collect();
    let list = judged.map_or_else(|| spreads(r), |judged| changes(r, judged));
    let sections = extras.links.in_text(&markup(&report_sections(r, j), None), &commits);
    banner_page(&banner, &[list, sections], extras, &commits)
}

/// The metrics against their baseline.
fn changes(r: &Report, judged: Judged<'_>) -> String {
    let Some((marked, axis)) = charts::changes(judged, judged.rows()) else { return spreads(r) };
    let mut drawn: HashSet<&str> = HashSet::new();
    let listed: Vec<ListRow> = marked
        .into_iter()
        .take(CHARTS_MAX)
        .map(|RowMark { row, svg }| {
            let workload = row.check.workload.as_deref().filter(|workload| drawn.insert(workload));
            let measured = workload.and_then(|workload| measured(r, workload));
            let limit = row.check.allowed_max_ms.map(|limit| (limit, "allowed"));
            let body = measured.map(|m| charts_of(r, m, limit, baseline_range(judged, &row.check.metric)));
            ListRow { body: body.unwrap_or_default(), ..sides::list_row(&row, svg) }
        })
        .collect();
    rows::list(&listed, &axis, READING)
}

/// The least and the largest value of the baseline's runs.
fn baseline_range(judged: Judged<'_>, metric: &str) -> Option<[f64; 2]> {
    let basis = judged.judgement.basis.as_ref()?.baseline()?;
    let runs = &basis.baseline.metrics.get(metric)?.runs_ms;
    let (low, high) =
        runs.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), run| (low.min(*run), high.max(*run)));
    (runs.len() > 1 && high > low).then_some([low, high])
}

/// How much each workload varies.
fn spreads(r: &Report) -> String {
    let all: Vec<(&str, &Measured, [f64; 2])> = r
        .benchmarks
        .keys()
        .filter_map(|name| {
            let m = measured(r, name)?;
            let times: Vec<f64> = times_ms(m);
            let ends = SPREAD.map(|q| stats::quantile(&times, q).map_or(0.0, |time| time / m.p50_ms - 1.0));
            Some((name.as_str(), m, ends)).filter(|(_, _, ends)| ends.iter().all(|end| end.is_finite()))
        })
        .take(CHARTS_MAX)
        .collect();
    let scale = Scale::over(all.iter().flat_map(|(_, _, ends)| *ends).chain([0.0]), 0.02);
    let scale = if scale.ends()[1] > 0.5 { scale.bent(0.05) } else { scale };
    let strips = Strips::new(scale);
    let listed: Vec<ListRow> = all
        .into_iter()
        .map(|(name, m, ends)| {
            let mark = Mark { class: "dot", value: Some(0.0), interval: Some(ends), ..Mark::default() };
            let [low, high] = ends;
            let described = format!("{name}: 90 % of samples within {}", units::percent_interval(low, high));
            ListRow {
                class: ink_class(Ink::Plain),
                word: "measured".to_owned(),
                name: name.to_owned(),
                number: units::time(m.p50_ms),
                strip: strips.row(&mark, &described),
                body: charts_of(r, m, None, None),
                wants_attention: false,
            }
        })
        .collect();
    let ticks = [0.0, 0.1, -0.1, 0.01, -0.01, 0.05, -0.05, 0.2, -0.2, 0.5, -0.5, 1.0, 2.0, 5.0, 10.0];
    rows::list(&listed, &strips.axis(&ticks, charts::whole_percent), SPREAD_READING)
}

fn measured<'a>(r: &'a Report, workload: &str) -> Option<&'a Measured> {
    match &r.benchmarks.get(workload)?.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Skipped { .. } | Outcome::Failed(_) => None,
    }
}

fn times_ms(m: &Measured) -> Vec<f64> {
    m.samples
        .rounds
        .iter()
        .flat_map(|round| round.per_call_ns(m.samples.calls_per_sample.max(1)))
        .map(|ns| ns / 1e6)
        .collect()
}

fn charts_of(r: &Report, m: &Measured, limit_ms: Option<(f64, &str)>, before_ms: Option<[f64; 2]>) -> String {
    let cpus = r.machine.as_ref().map_or(1.0, |machine| f64::from(machine.cpus));
    let side = Samples { class: "base", times_ms: times_ms(m) };
    let all = [
        charts::distribution(&[side], limit_ms, before_ms),
        charts::rounds(charts::run_points(m, cpus), "round", POINTS_MAX, METRIC_TIME, limit_ms),
    ];
    figures(all.iter().flatten())
}
