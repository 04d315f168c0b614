//! `gate --history`: judge a run by the series of its metrics, and ask the sure question only where these leave a doubt.

use super::{GateResult, GateSides};
use crate::Watch;
use crate::ab;
use crate::ab::sides::{Base, PlannedSides, check_of_revision};
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{self, Writer};
use crate::evidence::sealing::Sealing;
use crate::histories::{self, Measured};
use crate::judgement_with_samples::JudgementWithSamples;
use crate::request::EvidenceFiles;
use crate::rules::Rules;
use crate::suites::{self, LoadedSuite};
use crate::{compare, run};
use holdpoint_gate::history::{
    accepted_revision_of, drifted, judge_history, last_good_of, level_of, needs_second_look,
};
use holdpoint_gate::{HasExitCode, tolerance_asked};
use holdpoint_history::{Access, Location, NewPoint, RunRecord, Store, is_future, series_id};
use holdpoint_measure::machine::machine_for;
use holdpoint_model::{Current, HistoryLevel, Report, Series, SeriesFilter, Suite, TimeRange, Track};
use holdpoint_process::git::Repository;
use holdpoint_render::markdown;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A gate with a history, all of whose rules have been read.
pub(super) struct HistoryGate<'a> {
    pub suite: &'a LoadedSuite,
    pub location: &'a Location,
    /// The revision to compare with where the history leaves a doubt; the newest that passed, if absent.
    pub last_good: Option<&'a str>,
    pub sides: &'a GateSides,
    pub files: &'a EvidenceFiles,
    pub rules: &'a Rules,
}

pub(super) fn run(gate: &HistoryGate<'_>, watch: &dyn Watch) -> Result<CommandResult<GateResult>, FlowError> {
    let HistoryGate { suite: LoadedSuite { as_run: suite, .. }, location, rules, .. } = *gate;
    let file = |name: &str| gate.files.artifacts.join(name);
    let mut sealing = Sealing::new(rules.key.clone(), &file(artifacts::REPORT));
    // Read before measuring: a history that cannot be read should not cost a run, and what is measured has no say in it. The
    // first run begins one.
    let known = read_series(histories::open(location, Access::Create, watch)?.as_ref(), suite, watch)?;
    let mut second_looks = SecondLooks::plan(gate, &known);
    let measured = suites::ready(suite.clone())?;
    holdpoint_store::check_writable(&file(artifacts::REPORT))?;
    artifacts::clear(&gate.files.artifacts, Writer::Gate)?;
    let report = run::measure(&measured, watch);
    sealing.write_json(&file(artifacts::REPORT), &report)?;
    let series = series_of(&known, &report)?;
    let mut judgement = judge_history(&Current::from(&report), &gate.levels(&series));
    rules.waivers.apply(&mut judgement);
    sealing.write_json(&file(artifacts::COMPARISON), &judgement)?;
    sealing.write_json(&file(artifacts::TREND), &compare::trend(&judgement))?;
    sealing.write_text(&file(artifacts::REPORT_PAGE), &markdown::report(&report, Some(&judgement)))?;
    let reports = [report];
    let runs = Measured::Runs { reports: &reports, judgement: Some(&judgement) };
    histories::keep(Some(location), &runs, watch);
    let [report] = reports;
    let unsealed = sealing.seal(&run::origins("gate", &measured, &report))?;
    let drifted = drifted(&judgement);
    let (doubt, revision) = match drifted.is_empty() {
        true => ("in doubt by its history", second_looks.last_good.take()),
        // Another one may have drifted as far already, and would turn the drift into a pass.
        false => (
            "a drift by its history",
            accepted_revision_of(drifted.iter().filter_map(|name| series.get(*name).copied())),
        ),
    };
    if needs_second_look(&judgement)
        && let Some(revision) = revision
        && let Some(planned) = second_looks.planned.remove(&revision)
    {
        watch.progress(&format!("{doubt}; comparing side by side with {revision}"));
        let decide = |planned| ab::decide(planned, rules, &gate.sides.how, gate.files, watch);
        match planned.and_then(decide) {
            Ok(done) => {
                let note = format!("{doubt} ({location}); decided side by side with {revision}");
                return Ok(done.map(GateResult::decided).with_note(note));
            }
            // The verdict of the history stands.
            Err(FlowError::Build(error)) => watch.note(&format!("no comparison side by side: {error}")),
            Err(FlowError::Input(error)) => watch.note(&format!("no comparison side by side: {error}")),
            Err(error) => return Err(error),
        }
    }
    let note = format!("evidence: {}{unsealed}", gate.files.artifacts.display());
    let exit = judgement.exit_code();
    let decided = JudgementWithSamples { judgement, sides: None, report: Some(report) };
    Ok(CommandResult::new(GateResult::decided(decided), exit).with_note(note))
}

/// The series of a suite on this machine, by their ids. A point of a time that has not come yet would stay the newest until it has.
fn read_series(
    store: &dyn Store,
    suite: &Suite,
    watch: &dyn Watch,
) -> Result<BTreeMap<String, Series>, FlowError> {
    let filter = SeriesFilter {
        suite: Some(suite.name.clone()),
        machine: Some(machine_for(suite).fingerprint),
        ..SeriesFilter::default()
    };
    let mut found = BTreeMap::new();
    for listed in store.list(&filter)? {
        let id = series_id(&listed.key);
        let mut series = store.read(&id, TimeRange::default())?;
        let points_count = series.points.len();
        series.points.retain(|point| !is_future(point.at));
        if series.points.len() < points_count {
            let ahead = points_count - series.points.len();
            watch.note(&format!(
                "history: {ahead} points of series {id} are of the future and left out: a clock was off"
            ));
        }
        found.insert(id, series);
    }
    Ok(found)
}

/// Those of them that a run adds to, by the name of the metric.
fn series_of<'a>(
    known: &'a BTreeMap<String, Series>,
    report: &Report,
) -> Result<BTreeMap<String, &'a Series>, FlowError> {
    let record = RunRecord::report(report).map_err(|error| FlowError::Input(error.to_string()))?;
    let named = |point: &NewPoint| Some((point.key.metric_name(), known.get(&series_id(&point.key))?));
    Ok(record.points.iter().filter_map(named).collect())
}

impl HistoryGate<'_> {
    /// The level of each series, with the tolerance that is asked for.
    fn levels(&self, series: &BTreeMap<String, &Series>) -> BTreeMap<String, HistoryLevel> {
        let (gate, flag) = (&self.suite.as_run.gate, self.sides.how.decision.question.tolerance);
        let level = |(name, series): (&String, &&Series)| {
            let tolerance = tolerance_asked(flag, gate, Some(&series.key.workload));
            Some((name.clone(), HistoryLevel { tolerance, ..level_of(&Track::from(*series))? }))
        };
        series.iter().filter_map(level).collect()
    }

    fn can_build(&self) -> bool {
        let suite = &self.suite.as_run;
        suite.build.is_some() || suite.harness.is_some()
    }
}

/// Comparisons that may settle a doubt. Their revisions are looked up before anything is measured: a benchmark could move them.
struct SecondLooks {
    last_good: Option<String>,
    /// By the revision to compare with, as it was named. A failure is of interest only if there is a doubt.
    planned: BTreeMap<String, Result<PlannedSides, FlowError>>,
}

impl SecondLooks {
    fn plan(gate: &HistoryGate<'_>, known: &BTreeMap<String, Series>) -> Self {
        let LoadedSuite { as_written, as_run, .. } = gate.suite;
        let last_good = last_good(gate, known);
        // Which series have drifted is known only once they are measured.
        let accepted = known.values().filter(|_| gate.can_build());
        let accepted = accepted.filter_map(|series| accepted_revision_of(std::iter::once(series)));
        let plan = |revision: String| {
            let sides =
                || PlannedSides::revisions(as_run.clone(), Base::named(&revision), &gate.sides.head());
            let planned = check_of_revision(as_written).and_then(|()| sides());
            (revision, planned)
        };
        let revisions: BTreeSet<String> = last_good.iter().cloned().chain(accepted).collect();
        Self { planned: revisions.into_iter().map(plan).collect(), last_good }
    }
}

/// The revision to compare with: the one that is named, or the last good one, where revisions can be built.
fn last_good(gate: &HistoryGate<'_>, known: &BTreeMap<String, Series>) -> Option<String> {
    if let Some(revision) = gate.last_good {
        return Some(revision.to_owned());
    }
    if !gate.can_build() {
        return None;
    }
    let here = Repository::open(Path::new(".")).and_then(|here| here.resolve("HEAD")).ok();
    last_good_of(known.values(), here.as_deref())
}
