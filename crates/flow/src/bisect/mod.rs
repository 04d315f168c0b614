//! `holdpoint bisect`: find the commit that slowed a workload.

mod candidates;
mod search;

use crate::Watch;
use crate::ab::sides::{self, Purpose};
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::request::{Decision, SuiteChoice};
use holdpoint_evidence::hash;
use holdpoint_gate::{HasExitCode, Policy, is_search_finished};
use holdpoint_measure::builds::{Builds, Range};
use holdpoint_measure::clock;
use holdpoint_model::suite::Metrics;
use holdpoint_model::{Bisection, CommitInfo, SCHEMA_VERSION, Suite};
use holdpoint_process::git::Commit;
use holdpoint_render::{markdown, units};
use search::Search;
use std::path::{Path, PathBuf};

/// A slow revision, and a good one to search from.
#[derive(Clone, Debug)]
pub struct BisectRequest {
    pub good: String,
    pub bad: String,
    /// The workload that became slow; whichever is found slower, if absent.
    pub workload: Option<String>,
    pub suite: SuiteChoice,
    pub decision: Decision,
    pub artifacts: PathBuf,
    /// Whether the unfinished search in that folder is continued.
    pub resume: bool,
}

pub fn run(request: &BisectRequest, watch: &dyn Watch) -> Result<CommandResult<Bisection>, FlowError> {
    search_with(request, sides::revision_suite(&request.suite)?, watch)
}

/// The search in a suite that was read before.
pub(crate) fn search_with(
    request: &BisectRequest,
    mut suite: Suite,
    watch: &dyn Watch,
) -> Result<CommandResult<Bisection>, FlowError> {
    // The hunt is for time.
    suite.workloads.iter_mut().for_each(|workload| workload.metrics = Metrics::default());
    let suite_sha256 = hash::json(&suite).map_err(|error| FlowError::Internal(error.to_string()))?;
    suite.gate.metrics = None;
    if let Some(name) = &request.workload {
        keep_only(&mut suite, name)?;
    }
    let path = request.artifacts.join("bisect.json");
    let _lock = artifacts::lock(&request.artifacts, watch)?;
    holdpoint_store::check_writable(&path)?;
    let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
    let bad = builds.repository().resolve(&request.bad)?;
    let builds = sides::with_benches_of(builds, &bad, &suite);
    let range = builds.range(&request.good, &request.bad)?;
    let mut bisection = Bisection { suite_sha256, ..begin(request, &suite, &builds, &range)? };
    if request.resume {
        bisection = resume(&path, bisection, request.workload.as_deref())?;
        if let Some(workload) = &bisection.workload {
            keep_only(&mut suite, workload)?;
        }
    }
    bisection.notes.iter().for_each(|note| watch.note(note));
    watch.keep_on_interrupt();
    let good_built = sides::build(&builds, &range.base.hash, &suite, Purpose::Verdict, watch)?;
    let mut search = Search { request, watch, builds: &builds, suite, good_built, bisection, path: &path };
    search.run(&range.commits)?;
    let bisection = search.bisection;
    crate::evidence::save(&path, &bisection)?;
    holdpoint_store::write_text(&request.artifacts.join("bisect.md"), &markdown::bisection(&bisection))?;
    let exit = bisection.exit_code();
    let unfinished = if is_search_finished(&bisection) { "" } else { "; --resume goes on from there" };
    Ok(CommandResult::new(bisection, exit).with_note(format!("evidence: {}{unfinished}", path.display())))
}

/// A search in which nothing has been measured yet.
fn begin(
    request: &BisectRequest,
    suite: &Suite,
    builds: &Builds,
    range: &Range,
) -> Result<Bisection, FlowError> {
    let (given, base) = (builds.repository().describe(&request.good)?, &range.base);
    let mut notes = Vec::new();
    if given.hash != base.hash {
        notes.push(format!(
            "{} is no ancestor of {}: their newest common ancestor {} ({}) stands for it, and what happened on the way from \
             there to {} is not looked at",
            request.good, request.bad, short(&base.hash), base.subject, request.good
        ));
    }
    Ok(Bisection {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        workload: None,
        tolerance: request.decision.plan(&suite.gate, Policy::Sequential).tolerance,
        line: None,
        suite_sha256: String::new(),
        good: info(base),
        bad: info(&builds.repository().describe(&request.bad)?),
        steps: Vec::new(),
        culprits: Vec::new(),
        evidence: None,
        judgement: None,
        notes,
    })
}

/// The search in the file, if it asks the same question as the one that `fresh` would begin.
fn resume(path: &Path, fresh: Bisection, workload: Option<&str>) -> Result<Bisection, FlowError> {
    let old = holdpoint_store::read_document::<Bisection>(path)?;
    let found = old.workload.as_deref();
    let differences = [
        ("good", old.good.commit == fresh.good.commit, short(&old.good.commit).to_owned()),
        ("bad", old.bad.commit == fresh.bad.commit, short(&old.bad.commit).to_owned()),
        ("suite", old.suite_sha256 == fresh.suite_sha256, format!("another version of {}", old.suite)),
        ("tolerance", old.tolerance == fresh.tolerance, units::setting(old.tolerance)),
        (
            "workload",
            workload.is_none() || found.is_none() || workload == found,
            found.unwrap_or_default().to_owned(),
        ),
    ];
    let refused = |what: String| FlowError::File {
        path: path.to_owned(),
        what: format!("cannot go on from this: {what}, or leave out --resume to search anew"),
    };
    if let Some((name, _, was)) = differences.into_iter().find(|(_, is_same, _)| !is_same) {
        return Err(refused(format!("its {name} is {was}; put that back as it was")));
    }
    if is_search_finished(&old) {
        return Err(refused("it is finished; read it".to_owned()));
    }
    // More time may be given than before.
    Ok(Bisection { culprits: Vec::new(), evidence: None, judgement: None, notes: fresh.notes, ..old })
}

fn keep_only(suite: &mut Suite, name: &str) -> Result<(), FlowError> {
    if suite.has_listed_workloads() {
        suite.workloads.retain(|workload| workload.name == name);
        suite.only = Some(name.to_owned());
        return Ok(());
    }
    let names: Vec<String> = suite.workloads.iter().map(|workload| workload.name.clone()).collect();
    suite.workloads.retain(|workload| workload.name == name);
    if suite.workloads.is_empty() {
        let names = names.join(", ");
        return Err(FlowError::Input(format!(
            "suite {:?} has no workload {name:?}; it has {names}",
            suite.name
        )));
    }
    Ok(())
}

fn info(commit: &Commit) -> CommitInfo {
    CommitInfo { commit: commit.hash.clone(), date: commit.date.clone(), subject: commit.subject.clone() }
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
