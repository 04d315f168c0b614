//! The page of a baseline.

use super::rows::{self, ListRow};
use super::{Banner, Extras, banner_page, escape, figures, ink_class, markup, section};
use crate::charts;
use crate::paint::Ink;
use crate::summary::baseline::{describe_baseline, metrics_table};
use crate::svg::{Mark, Scale, Strips};
use crate::table::EmptyColumns;
use crate::text;
use crate::units;
use holdpoint_model::metric::METRIC_TIME;
use holdpoint_model::{Baseline, BaselineMetric, Machine};

const METRICS_MAX: usize = 60;
const RUNS_MAX: usize = 120;
/// A scale that would reach further than this is bent.
const BENT_FROM: f64 = 0.5;

const READING: &str = "The dot is the baseline's value, the ticks are its runs, and the line spans them. The shaded band is the \
    tolerance and the dashed line its limit: a band much wider than the line allows more than the noise explains. Open a row for the runs in order.";

pub fn baseline(b: &Baseline, extras: &Extras<'_>) -> String {
    let sentence = describe_baseline(b);
    let revisions = b.runs.iter().filter_map(|run| run.revision.as_ref());
    let promoted = b.promoted.iter().map(|promotion| promotion.commit.as_str());
    let mut commits: Vec<&str> = revisions.map(|at| at.commit.as_str()).chain(promoted).collect();
    commits.sort_unstable();
    commits.dedup();
    let banner = Banner {
        title: format!("holdpoint: {}, baseline", b.suite),
        ink: ink_class(Ink::Plain),
        word: "baseline",
        sentence: &sentence,
        facts: vec![b.machine.as_ref().map(Machine::describe).unwrap_or_default(), b.baseline_notes.clone()],
    };
    let table = markup(&metrics_table(b).markdown(EmptyColumns::Drop), None);
    let parts = [list(b), section("Metrics", &table), section("Runs", &runs(b, extras, &commits))];
    banner_page(&banner, &parts, extras, &commits)
}

fn list(b: &Baseline) -> String {
    let change = |metric: &BaselineMetric, ms: f64| ms / metric.value_ms - 1.0;
    let limit = |metric: &BaselineMetric| change(metric, metric.allowed_max_ms());
    let shown = || b.metrics.iter().filter(|(_, metric)| metric.value_ms > 0.0).take(METRICS_MAX);
    let ends = shown().flat_map(|(_, metric)| {
        let runs = metric.runs_ms.iter().map(|run| change(metric, *run));
        runs.chain([limit(metric), -limit(metric)]).collect::<Vec<_>>()
    });
    let scale = Scale::over(ends, 0.02);
    let scale = if scale.ends()[1] > BENT_FROM { scale.bent(0.05) } else { scale };
    let strips = Strips::new(scale);
    let listed: Vec<ListRow> = shown()
        .map(|(name, metric)| {
            let others: Vec<f64> = metric.runs_ms.iter().map(|run| change(metric, *run)).collect();
            let finite = others.iter().copied().filter(|other| other.is_finite());
            let interval = finite.fold(None, |ends: Option<[f64; 2]>, value| {
                let [low, high] = ends.unwrap_or([value, value]);
                Some([low.min(value), high.max(value)])
            });
            let (word, limit) = (text::plural(others.len(), "run"), limit(metric));
            let described =
                interval.map(|[low, high]| format!(", runs {}", units::percent_interval(low, high)));
            let described =
                format!("{name}: allowed {}{}", units::percent(limit), described.unwrap_or_default());
            let mark = Mark {
                class: "dot",
                value: Some(0.0),
                interval,
                band: Some([-limit, limit]),
                limit: Some(limit),
                others,
            };
            let allowed = Some((metric.allowed_max_ms(), "allowed"));
            let chart = Some(&metric.runs_ms).filter(|runs| runs.len() > 1).and_then(|runs| {
                let points = charts::value_points(runs.chunks(1));
                charts::rounds(points, "run", RUNS_MAX, METRIC_TIME, allowed)
            });
            ListRow {
                class: ink_class(Ink::Plain),
                word,
                name: name.clone(),
                number: units::time(metric.value_ms),
                strip: strips.row(&mark, &described),
                body: figures(&chart),
                wants_attention: false,
            }
        })
        .collect();
    let ticks = [0.0, 0.1, -0.1, 0.5, -0.5, 0.01, -0.01, 0.02, -0.02, 0.05, -0.05, 0.2, -0.2, 1.0];
    rows::list(&listed, &strips.axis(&ticks, charts::whole_percent), READING)
}

fn runs(b: &Baseline, extras: &Extras<'_>, commits: &[&str]) -> String {
    let line = |began: &str, words: &str| {
        format!("<li>{} {}</li>\n", escape(began), extras.links.in_text(&escape(words), commits))
    };
    let mut lines: String = b
        .runs
        .iter()
        .map(|run| {
            let revision = run.revision.as_ref().map_or_else(|| "no revision".to_owned(), text::revision);
            line(&run.timestamp_utc, &revision)
        })
        .collect();
    if let Some(promoted) = &b.promoted {
        let words = format!("{} promoted by {}", text::short_commit(&promoted.commit), promoted.by);
        lines += &line(&promoted.timestamp_utc, &words);
    }
    if lines.is_empty() { lines } else { format!("<ul>\n{lines}</ul>\n") }
}
