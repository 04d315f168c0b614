//! The page of a comparison of two sides.

use super::rows::{self, ListRow};
use super::{Banner, Extras, banner_page, figures, markup};
use crate::charts::{self, RowMark, Samples};
use crate::judged::{CheckRow, Judged};
use crate::markdown::sides_sections;
use crate::summary::sides::{causes, describe_promise, describe_sides};
use crate::units;
use holdpoint_model::metric::METRIC_TIME;
use holdpoint_model::{AbWorkload, Machine, MetricKeys, PairRound, SideName, Verdict};

/// Workloads with charts; the worst come first, and the table has all.
const CHARTS_MAX: usize = 60;
/// Points of all charts of one kind together, and of one chart: a page stays below 300 kB.
const POINTS_MAX: usize = 1_200;
const POINTS_OF_CHART: std::ops::RangeInclusive<usize> = 24..=160;

const READING: &str = "Each line is the interval from which the verdict is read (the changes that the evidence has not ruled out), the dot the estimate; the shaded band is the tolerance and the dashed line its limit. \
    Open a row for the pairs of base and head in the order measured, above the machine's load or the device's clock (✕: left out, ●: disturbed but kept), \
    the evidence after each unit, which decided where it reached 100 %, and the distribution of the times.";

pub(super) fn sides(judged: Judged<'_>, extras: &Extras<'_>) -> String {
    let sentence = judged.sentence();
    let facts = vec![
        describe_sides(judged),
        judged.machine().map(Machine::describe).unwrap_or_default(),
        describe_promise(judged),
        judged.began().map(str::to_owned).unwrap_or_default(),
    ];
    let banner = Banner::of_verdict(&judged.judgement.suite, judged.judgement.verdict, &sentence, facts);
    let commits = commits(judged);
    banner_page(&banner, &body(judged, extras, &commits), extras, &commits)
}

/// All below the banner.
pub(super) fn body(judged: Judged<'_>, extras: &Extras<'_>, commits: &[&str]) -> Vec<String> {
    let sections = extras.links.in_text(&markup(&sides_sections(judged), None), commits);
    vec![list(judged), sections]
}

/// The commits that the sides are at.
pub(super) fn commits(judged: Judged<'_>) -> Vec<&str> {
    let sides = judged.judgement.sides.iter().flat_map(|sides| [&sides.base, &sides.head]);
    sides.filter_map(|side| side.revision.as_ref()).map(|at| at.commit.as_str()).collect()
}

fn list(judged: Judged<'_>) -> String {
    let rows = judged.rows();
    let drawn = rows.len().clamp(1, CHARTS_MAX);
    let points = (POINTS_MAX / drawn).clamp(*POINTS_OF_CHART.start(), *POINTS_OF_CHART.end());
    let (marked, axis) = match charts::changes(judged, rows) {
        Some(drawn) => drawn,
        None => {
            let rows = judged.rows().into_iter();
            (rows.map(|row| RowMark { row, svg: String::new() }).collect(), String::new())
        }
    };
    let more = marked.len().saturating_sub(CHARTS_MAX);
    let listed: Vec<ListRow> = marked
        .into_iter()
        .take(CHARTS_MAX)
        .map(|RowMark { row, svg }| ListRow { body: charts_of(judged, &row, points), ..list_row(&row, svg) })
        .collect();
    let more = match more {
        0 => String::new(),
        n => format!(" {} more are in the table only.", units::count(n as u64)),
    };
    rows::list(&listed, &axis, &format!("{READING}{more}"))
}

/// A row of a judgement without its charts.
pub(super) fn list_row(row: &CheckRow<'_>, strip: String) -> ListRow {
    ListRow {
        class: row.verdict.as_str(),
        word: row.verdict.as_str().to_owned(),
        name: crate::judged::shown_name(row.name()).to_owned(),
        number: units::number(row.change, units::percent),
        strip,
        body: String::new(),
        wants_attention: row.verdict > Verdict::Pass,
    }
}

fn charts_of(judged: Judged<'_>, row: &CheckRow<'_>, points: usize) -> String {
    let found = judged.sides().and_then(|report| {
        let workload = report.workloads.get(row.check.workload.as_ref()?)?;
        (!workload.units.is_empty()).then_some((report, workload))
    });
    let Some((report, workload)) = found else { return String::new() };
    if let Some(keys) = row.check.metric_keys() {
        return figures(metric_charts(judged, row, keys, points).iter().flatten());
    }
    let cpus = report.machine.as_ref().map_or(1.0, |machine| f64::from(machine.cpus));
    let (pairs, word) = charts::pair_points(workload, cpus, points);
    let pairs = charts::rounds(pairs, word, points, METRIC_TIME, None).map(|chart| {
        let caption = chart.caption + &describe_trouble(workload);
        charts::Chart { caption, ..chart }
    });
    let all = [pairs, evidence(judged, row, points), charts::distribution(&samples(workload), None, None)];
    figures(all.iter().flatten())
}

/// `; 3 rounds left out: competing 2, steal 1`, where the machine was troubled.
fn describe_trouble(workload: &AbWorkload) -> String {
    let rounds = || workload.units.iter().flat_map(|unit| &unit.rounds);
    let left_out: Vec<&PairRound> = rounds().filter(|round| round.left_out).collect();
    let kept: Vec<&PairRound> =
        rounds().filter(|round| !round.left_out && !round.trouble.is_empty()).collect();
    let all = [(left_out, "left out"), (kept, "troubled and kept")];
    let texts = all.iter().filter(|(rounds, _)| !rounds.is_empty());
    texts
        .map(|(rounds, word)| format!("; {} {word}{}", units::count(rounds.len() as u64), causes(rounds)))
        .collect()
}

/// The samples of both sides as they are compared.
fn samples(workload: &AbWorkload) -> [Samples; 2] {
    [(SideName::Base, "base"), (SideName::Head, "head")].map(|(side, class)| {
        let per_call = 1e-6 / workload.calls_per_sample.max(1) as f64;
        let rounds =
            workload.units.iter().flat_map(|unit| unit.rounds.iter().map(move |round| (unit, round)));
        let times = rounds.flat_map(|(unit, round)| round.times_ns(side, unit.clock));
        Samples { class, times_ms: times.map(|ns| ns as f64 * per_call).collect() }
    })
}

/// Both sides' values of a metric beside the median time, and the evidence about it.
fn metric_charts(
    judged: Judged<'_>,
    row: &CheckRow<'_>,
    keys: &MetricKeys,
    points: usize,
) -> [Option<charts::Chart>; 2] {
    let pairs = charts::value_points(keys.units.iter().map(<[f64; 2]>::as_slice));
    [charts::rounds(pairs, "unit", points, &keys.name, None), evidence(judged, row, points)]
}

/// The evidence of the rule that decides unit by unit; other rules have none.
fn evidence(judged: Judged<'_>, row: &CheckRow<'_>, points: usize) -> Option<charts::Chart> {
    let evidence = row.check.evidence().filter(|_| !judged.is_disjoint_ci())?;
    charts::evidence(&evidence.growth, points)
}
