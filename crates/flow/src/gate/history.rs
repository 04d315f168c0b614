//! `gate --history`: judge a run by the series of its metrics, and ask the sure question only where these leave a doubt.

use super::{Artifacts, Gated, against};
use crate::Watch;
use crate::decided::Decided;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::GateArgs;
use crate::support::histories::{self, Measured};
use crate::support::sealing::Sealing;
use crate::support::waivers::InForce;
use crate::{compare, run};
use holdpoint_gate::HasExitCode;
use holdpoint_gate::history::{judge_history, last_good_of, level_of, needs_second_look};
use holdpoint_history::{Access, Location, RunRecord, Store, series_id};
use holdpoint_model::{Current, HistoryLevel, Report, Series, SeriesFilter, Suite, Track};
use holdpoint_render::markdown;
use std::collections::BTreeMap;

pub(super) fn run(
    args: &GateArgs,
    suite: &Suite,
    location: &Location,
    artifacts: &Artifacts<'_>,
    mut sealing: Sealing,
    watch: &dyn Watch,
) -> Result<Done<Gated>, FlowError> {
    let waivers = InForce::read(&args.waivers)?;
    // Opened before measuring: a history that cannot be read should not cost a run. The first run begins one.
    let mut store = histories::open(location, Access::Create, watch)?;
    holdpoint_store::check_writable(&artifacts.report())?;
    artifacts.clear()?;
    let report = run::measure(suite, watch);
    sealing.write_json(&artifacts.report(), &report)?;
    let series = read_series(store.as_mut(), &report)?;
    drop(store);
    let mut judgement = judge_history(&Current::from(&report), &levels(&series));
    waivers.apply(&mut judgement);
    sealing.write_json(&artifacts.comparison(), &judgement)?;
    sealing.write_json(&artifacts.trend(), &compare::trend(&judgement))?;
    sealing.write_text(&artifacts.markdown(), &markdown::report(&report, Some(&judgement)))?;
    let reports = [report];
    let measured = Measured::Runs { reports: &reports, judgement: Some(&judgement) };
    histories::keep(Some(location), &measured, watch);
    let [report] = reports;
    let unsealed = sealing.seal(&run::origins("gate", suite, &report))?;
    if needs_second_look(&judgement)
        && let Some(revision) = last_good(args, suite, &series, &report)
    {
        watch.progress(&format!("in doubt by its history; comparing side by side with {revision}"));
        match against(args, &revision, watch) {
            Ok(done) => {
                let note =
                    format!("in doubt by its history ({location}); decided side by side with {revision}");
                return Ok(done.map(Gated::decided).with_note(note));
            }
            // The verdict of the history stands.
            Err(FlowError::Build(error)) => watch.note(&format!("no comparison side by side: {error}")),
            Err(FlowError::Input(error)) => watch.note(&format!("no comparison side by side: {error}")),
            Err(error) => return Err(error),
        }
    }
    let note = format!("evidence: {}{unsealed}", artifacts.dir.display());
    let exit = judgement.exit_code();
    let decided = Decided { judgement, sides: None, report: Some(report) };
    Ok(Done::new(Gated::decided(decided), exit).with_note(note))
}

/// The series that the run adds to, by the name of the metric.
fn read_series(store: &mut dyn Store, report: &Report) -> Result<BTreeMap<String, Series>, FlowError> {
    let record = RunRecord::report(report).map_err(|error| FlowError::Input(error.to_string()))?;
    let mut found = BTreeMap::new();
    for point in &record.points {
        let id = series_id(&point.key);
        let filter = SeriesFilter { id: Some(id.clone()), ..SeriesFilter::default() };
        if !store.list(&filter)?.is_empty() {
            found.insert(point.key.metric_name(), store.read(&id)?);
        }
    }
    Ok(found)
}

fn levels(series: &BTreeMap<String, Series>) -> BTreeMap<String, HistoryLevel> {
    let level = |(name, series): (&String, &Series)| Some((name.clone(), level_of(&Track::from(series))?));
    series.iter().filter_map(level).collect()
}

/// The revision to compare with: the one that is named, or the newest clean one that passed, where revisions can be built.
fn last_good(
    args: &GateArgs,
    suite: &Suite,
    series: &BTreeMap<String, Series>,
    report: &Report,
) -> Option<String> {
    if let Some(revision) = &args.last_good {
        return Some(revision.clone());
    }
    if suite.build.is_none() && suite.harness.is_none() {
        return None;
    }
    let here = report.revision.as_ref().map(|revision| revision.commit.as_str());
    last_good_of(series.values(), here)
}
