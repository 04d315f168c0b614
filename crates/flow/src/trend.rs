//! `holdpoint trend`: keep and show a suite's history.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::histories::refuse_future;
use crate::history;
use crate::interchange::imports;
use crate::links;
use crate::request::{SuiteChoice, default_suite};
use crate::suites;
use holdpoint_gate::history::{find_changes, trend_status};
use holdpoint_history::Location;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{
    Changes, ExitCode, Point, SCHEMA_VERSION, SeriesFilter, Timestamp, Track, Trend, TrendMetric,
};
use holdpoint_render::html;
use holdpoint_store::Appended;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// What to do with trends.
#[derive(Clone, Debug)]
pub enum TrendRequest {
    /// Appends points to the file of their suite in the folder.
    Append {
        trends: Vec<PathBuf>,
        dir: PathBuf,
    },
    Show(TrendPage),
}

/// A trend to be shown, and the pages to be made of it.
#[derive(Clone, Debug)]
pub struct TrendPage {
    pub source: TrendSource,
    pub html: Option<PathBuf>,
    pub svg: Option<PathBuf>,
    /// The address of the repository whose commits are linked.
    pub repository: Option<String>,
}

/// Where the points of a trend are.
#[derive(Clone, Debug)]
pub enum TrendSource {
    File(PathBuf),
    /// The suite's file in a folder; without a name, the suite of this repository.
    Suite {
        name: Option<String>,
        dir: PathBuf,
    },
    History {
        location: Location,
        suite: Option<String>,
        workload: Option<String>,
    },
}

/// A trend that is shown, and where the levels of its metrics changed.
#[derive(Debug)]
pub struct ShownHistory {
    pub points: Vec<Trend>,
    pub changes: Changes,
    /// The file whose points these are some of; as JSON all of them are shown.
    thinned: Option<PathBuf>,
}

impl Serialize for ShownHistory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(path) = &self.thinned else { return self.points.serialize(serializer) };
        let mut points = serializer.serialize_seq(None)?;
        // One at a time: together they may not fit into memory.
        let mut failed = None;
        let read = holdpoint_store::for_each_trend::<FlowError>(path, |point| {
            points.serialize_element(&point).map_err(|error| {
                let text = error.to_string();
                failed = Some(error);
                FlowError::Internal(text)
            })
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(serde::ser::Error::custom(error)),
            (None, Ok(())) => points.end(),
        }
    }
}

/// Runs the command. Only `show` has points to show.
pub fn run(
    request: &TrendRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<Option<ShownHistory>>, FlowError> {
    match request {
        TrendRequest::Append { trends, dir } => {
            for path in trends {
                let trend = imports::read_trend(path)?;
                if let Some(at) = Timestamp::parse(&trend.timestamp_utc) {
                    refuse_future(at, path)?;
                }
                let (file, appended) = holdpoint_store::append_trend(dir, &trend)?;
                let done = match appended {
                    Appended::Added => "appended to",
                    Appended::AddedAfterRepair => "appended, once a cut-off line had been moved aside, to",
                    Appended::Already => "already in",
                };
                watch.note(&format!("{} {done} {}", path.display(), file.display()));
            }
        }
        TrendRequest::Show(page) => {
            let shown = read(&page.source, watch)?;
            let files = [&page.html, &page.svg].map(Option::as_deref);
            draw(&shown, files, page.repository.as_deref(), watch)?;
            return Ok(CommandResult::new(Some(shown), ExitCode::Ok));
        }
    }
    Ok(CommandResult::new(None, ExitCode::Ok))
}

fn read(source: &TrendSource, watch: &dyn Watch) -> Result<ShownHistory, FlowError> {
    match source {
        TrendSource::File(file) => read_file(file, watch),
        TrendSource::Suite { name: Some(name), dir } => {
            read_file(&holdpoint_store::trend_path(dir, name), watch)
        }
        TrendSource::Suite { name: None, dir } => {
            let suite = suites::load(&SuiteChoice::new(&default_suite(), None))?;
            read_file(&holdpoint_store::trend_path(dir, &suite.name), watch)
        }
        TrendSource::History { location, suite, workload } => {
            let select =
                SeriesFilter { suite: suite.clone(), workload: workload.clone(), ..SeriesFilter::default() };
            read_store(location, &select, watch)
        }
    }
}

/// The trend of a file with its changes, thinned out where it is long.
pub fn read_file(path: &Path, watch: &dyn Watch) -> Result<ShownHistory, FlowError> {
    let shown = holdpoint_store::read_shown_trend(path)?;
    let changes = find_changes(&holdpoint_store::read_tracks(path)?);
    let is_thinned = shown.step > 1;
    if is_thinned {
        watch.note(&format!(
            "{} runs: the newest and one in {} of the others are shown; changes were looked for in all",
            shown.points_count, shown.step
        ));
    }
    Ok(ShownHistory { points: shown.points, changes, thinned: is_thinned.then(|| path.to_owned()) })
}

/// The series of a store, each as a trend of its own: points of different identity are never joined.
fn read_store(
    location: &Location,
    select: &SeriesFilter,
    watch: &dyn Watch,
) -> Result<ShownHistory, FlowError> {
    let all = history::read(Some(location), select, watch)?;
    let mut tracks: Vec<Track> = all.iter().map(Track::from).collect();
    let mut points = Vec::new();
    for (series, track) in all.iter().zip(&mut tracks) {
        track.suite = match &track.machine {
            Some(machine) => format!("{} on {}", track.suite, machine.get(..8).unwrap_or(machine)),
            None => track.suite.clone(),
        };
        points.extend(series.points.iter().map(|point| trend_point(&track.suite, &track.name, point)));
    }
    points.sort_by(|a, b| a.timestamp_utc.cmp(&b.timestamp_utc));
    Ok(ShownHistory { points: join_runs(points), changes: find_changes(&tracks), thinned: None })
}

fn trend_point(suite: &str, metric: &str, point: &Point) -> Trend {
    let status = trend_status(point);
    Trend {
        schema_version: SCHEMA_VERSION,
        suite: suite.to_owned(),
        timestamp_utc: point.at.to_string(),
        overall_status: status.to_owned(),
        total_metrics: 1,
        failed_metrics: usize::from(!["pass", UNJUDGED].contains(&status)),
        metrics: vec![TrendMetric {
            metric: metric.to_owned(),
            status: status.to_owned(),
            baseline_ms: None,
            allowed_max_ms: None,
            current_ms: Some(point.value),
            regression_ratio: None,
        }],
        revision: point.revision.clone(),
    }
}

/// Metrics of one run as one point.
fn join_runs(points: Vec<Trend>) -> Vec<Trend> {
    let mut joined: Vec<Trend> = Vec::new();
    for mut point in points {
        let is_same =
            |other: &&mut Trend| other.suite == point.suite && other.timestamp_utc == point.timestamp_utc;
        // Runs of other machines may have begun in the same millisecond.
        let mut newest = joined.iter_mut().rev().take(SAME_TIME_MAX);
        match newest.find(is_same) {
            Some(run) => {
                run.total_metrics += 1;
                run.failed_metrics += point.failed_metrics;
                if badness(&point.overall_status) > badness(&run.overall_status) {
                    run.overall_status.clone_from(&point.overall_status);
                }
                run.metrics.append(&mut point.metrics);
            }
            None => joined.push(point),
        }
    }
    joined
}

/// The order in which one metric's status speaks for the run: nothing hides behind what was not judged.
fn badness(status: &str) -> usize {
    let order = ["pass", UNJUDGED, "skipped", "inconclusive"];
    order.iter().position(|known| *known == status).unwrap_or(order.len())
}

/// Runs that are looked through for one of the same time.
const SAME_TIME_MAX: usize = 8;

/// Writes the page and the picture, where they are wanted.
pub fn draw(
    shown: &ShownHistory,
    [page, picture]: [Option<&Path>; 2],
    repository: Option<&str>,
    watch: &dyn Watch,
) -> Result<(), FlowError> {
    if page.or(picture).is_none() {
        return Ok(());
    }
    let (points, changes) = (&shown.points, Some(&shown.changes));
    let newest = points.iter().rev().find_map(|point| point.revision.as_ref());
    let links = links::find(repository, newest.map(|revision| revision.commit.as_str()))?;
    if let Some(path) = picture {
        let nothing = || FlowError::Input("there is nothing to draw: no run has a value".to_owned());
        holdpoint_store::write_text(
            path,
            &html::trend_picture(points, changes, &links).ok_or_else(nothing)?,
        )?;
        watch.note(&format!("picture: {}", path.display()));
    }
    if let Some(path) = page {
        let extras = html::Extras { links, ..html::Extras::default() };
        holdpoint_store::write_text(path, &html::trend(points, changes, &extras))?;
        watch.note(&format!("html: {}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_metric_speaks_for_its_run_whatever_the_order() {
        let point = |status: &str| Trend {
            schema_version: SCHEMA_VERSION,
            suite: "s".to_owned(),
            timestamp_utc: "2026-11-18T10:00:00Z".to_owned(),
            overall_status: status.to_owned(),
            total_metrics: 1,
            failed_metrics: 0,
            metrics: Vec::new(),
            revision: None,
        };
        for (statuses, want) in [
            (["pass", UNJUDGED, "fail"], "fail"),
            ([UNJUDGED, "fail", "pass"], "fail"),
            (["inconclusive", "fail", "pass"], "fail"),
            (["pass", "inconclusive", UNJUDGED], "inconclusive"),
            ([UNJUDGED, "pass", "pass"], UNJUDGED),
        ] {
            let joined = join_runs(statuses.map(point).to_vec());
            assert_eq!((joined.len(), joined[0].overall_status.as_str()), (1, want), "{statuses:?}");
        }
    }
}
