//! `holdpoint blame`: from a change point to its commit, by searching only among the commits where it must lie.

use crate::Watch;
use crate::ab::sides;
use crate::bisect::BisectRequest;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::request::{Decision, SuiteChoice};
use crate::suites;
use crate::{bisect, history};
use holdpoint_gate::history::find_changes;
use holdpoint_history::Location;
use holdpoint_model::{
    Bisection, Cause, Changes, Effect, EventMember, LevelChange, Series, SeriesFilter, Track,
};
use std::path::PathBuf;

/// A change of a history whose commit is to be found.
#[derive(Clone, Debug)]
pub struct BlameRequest {
    /// The workload that became slow; that of the newest worsening that nobody accepted, if absent.
    pub workload: Option<String>,
    /// The first commit of the worse level; the newest worsening, if absent.
    pub revision: Option<String>,
    pub history: Option<Location>,
    pub suite: SuiteChoice,
    pub decision: Decision,
    pub artifacts: PathBuf,
    /// Whether the unfinished search in that folder is continued.
    pub resume: bool,
}

impl BlameRequest {
    /// The search between these revisions.
    fn search(&self, good: String, bad: String, workload: String) -> BisectRequest {
        BisectRequest {
            good,
            bad,
            workload: Some(workload),
            suite: self.suite.clone(),
            decision: self.decision.clone(),
            artifacts: self.artifacts.clone(),
            resume: self.resume,
        }
    }
}

pub fn run(request: &BlameRequest, watch: &dyn Watch) -> Result<CommandResult<Bisection>, FlowError> {
    let suite = suites::load(&request.suite)?;
    let select = SeriesFilter {
        suite: Some(suite.name.clone()),
        workload: request.workload.clone(),
        ..SeriesFilter::default()
    };
    let series = history::read(request.history.as_ref(), &select, watch)?;
    let tracks: Vec<Track> = series.iter().map(Track::from).collect();
    let found = find_changes(&tracks);
    let member = choose(&found, request.revision.as_deref()).ok_or_else(|| no_change(request))?;
    let (series, change) = (&series[member.series], &found.series[member.series].changes[member.change]);
    let (good, bad) = ends(series, change)?;
    if let Some(doubt) = describe_cause(&found, member) {
        watch.note(&doubt);
    }
    watch.note(&format!(
        "{} became {:+.1} % worse between {} and {}; searching there",
        series.key.metric_name(),
        (change.ratio.unwrap_or(1.0) - 1.0) * 100.0,
        short(&good),
        short(&bad),
    ));
    let search = request.search(good, bad, series.key.workload.clone());
    bisect::search_with(&search, sides::as_revision_suite(suite, &request.suite)?, watch)
}

/// The newest worsening that nobody accepted, or that of a commit.
fn choose(found: &Changes, revision: Option<&str>) -> Option<EventMember> {
    let change = |member: &EventMember| &found.series[member.series].changes[member.change];
    let is_meant = |member: &EventMember| {
        let change = change(member);
        let commit = change.after.commit.as_deref().unwrap_or_default();
        change.effect == Effect::Worse
            && revision.map_or(!change.accepted, |revision| commit.starts_with(revision))
    };
    let members = found.events.iter().flat_map(|event| event.members.iter().copied());
    members.filter(is_meant).max_by_key(|member| (change(member).after.at, change(member).index))
}

fn no_change(request: &BlameRequest) -> FlowError {
    let what = match &request.revision {
        Some(revision) => format!("no worsening begins at {revision}"),
        None => "the history has no worsening that nobody accepted".to_owned(),
    };
    FlowError::Input(format!("{what}; \"holdpoint changes\" shows all changes"))
}

/// The last revision before the change for certain, and the first behind it.
fn ends(series: &Series, change: &LevelChange) -> Result<(String, String), FlowError> {
    let commit = |index: usize| Some(series.points.get(index)?.revision.as_ref()?.commit.clone());
    let [earliest, latest] = change.range;
    let ends = earliest.checked_sub(1).and_then(commit).zip(commit(latest));
    match ends {
        Some((good, bad)) if good == bad => Err(FlowError::Input(format!(
            "{} changed between two runs of one revision, {}: that is the machine, not the code",
            series.key.metric_name(),
            short(&good)
        ))),
        Some(ends) => Ok(ends),
        None => Err(FlowError::Input(format!(
            "the runs around the change of {} name no revision, so there is nothing to search among",
            series.key.metric_name()
        ))),
    }
}

/// Why the code may not be what changed.
fn describe_cause(found: &Changes, member: EventMember) -> Option<String> {
    let event = found.events.iter().find(|event| event.members.contains(&member))?;
    match &event.cause {
        Cause::Code => None,
        Cause::Machine { .. } => {
            Some("only one machine shows this change; it may be the machine's".to_owned())
        }
        Cause::Versions { changed } => {
            let names: Vec<&str> = changed.iter().map(|change| change.name.as_str()).collect();
            Some(format!("the change came with another {}; that may be its cause", names.join(", ")))
        }
    }
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
