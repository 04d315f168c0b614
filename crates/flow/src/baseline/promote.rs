//! `holdpoint baseline promote`: reports of a merged revision become the baseline.

use crate::Watch;
use crate::baseline;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use holdpoint_evidence::hash;
use holdpoint_gate::Policy;
use holdpoint_gate::promote::promote;
use holdpoint_measure::clock;
use holdpoint_model::{Baseline, Current, Machine, Promotion, Report, document};
use holdpoint_process::git::Repository;
use std::path::{Path, PathBuf};

/// Reports to become the baseline.
#[derive(Clone, Debug)]
pub struct PromoteRequest {
    /// Of the revision, from one machine.
    pub reports: Vec<PathBuf>,
    /// The revision that they must be of.
    pub rev: String,
    /// The person who promotes them; CI's or git's, if absent.
    pub by: Option<String>,
    /// Also accepts a machine that has no baseline yet.
    pub new_machine: bool,
    /// The file; the machine's own, if absent.
    pub baseline: Option<PathBuf>,
    pub baseline_dir: PathBuf,
}

pub(crate) fn run(request: &PromoteRequest, watch: &dyn Watch) -> Result<CommandResult<Baseline>, FlowError> {
    let commit = Repository::open(Path::new("."))?.resolve(&request.rev)?;
    let mut report_sha256 = Vec::new();
    let mut currents = Vec::new();
    let mut edited: Option<(PathBuf, String)> = None;
    for path in &request.reports {
        // The hash is of the very bytes that were read.
        let text = holdpoint_store::read_text(path)?;
        let report = document::read::<Report>(&text)
            .map_err(|error| FlowError::File { path: path.clone(), what: error.to_string() })?;
        edited = edited.or_else(|| Some((path.clone(), holdpoint_gate::contradiction(&report)?)));
        report_sha256.push(hash::bytes(text.as_bytes()));
        currents.push(Current::from(&report));
    }
    let promotion = Promotion {
        commit,
        by: crate::person::person(request.by.as_deref(), "promotes")?,
        timestamp_utc: clock::timestamp_utc(),
        report_sha256,
    };
    let path = place(request, &currents)?;
    let _lock = baseline::lock_of(&path, watch)?;
    let before = path.exists().then(|| holdpoint_store::read_baseline(&path)).transpose()?;
    let baseline = promote(&currents, before.as_ref(), promotion)
        .map_err(|error| FlowError::Input(format!("not promoted: {error}")))?;
    if let Some((path, what)) = edited {
        return Err(FlowError::File { path, what: format!("not promoted: {what}: it was edited") });
    }
    let done = baseline::finish(&path, baseline)?;
    // It was promoted all the same.
    baseline::say_what_it_serves(&done.document, Policy::Stored, watch);
    Ok(done)
}

/// The file it goes to: the machine's own, which must be there if others are.
fn place(request: &PromoteRequest, currents: &[Current]) -> Result<PathBuf, FlowError> {
    if let Some(path) = &request.baseline {
        return Ok(path.clone());
    }
    let machine = |current: &Current| current.machine.clone();
    let Some((first, machine)) = currents.first().and_then(|run| Some((run, machine(run)?))) else {
        return Err(FlowError::Input("not promoted: report 1 names no machine".to_owned()));
    };
    let dir = &request.baseline_dir;
    let path = holdpoint_store::baseline_path(dir, &first.suite, &machine.fingerprint);
    if !path.exists() && !request.new_machine {
        refuse_new(dir, &first.suite, &machine)?;
    }
    Ok(path)
}

/// A machine without a baseline among machines that have one is most likely the wrong machine.
fn refuse_new(dir: &Path, suite: &str, machine: &Machine) -> Result<(), FlowError> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = names.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let others: Vec<String> = files
        .filter_map(|path| holdpoint_store::read_baseline(&path).ok())
        .filter(|baseline| baseline.suite == suite)
        .filter_map(|baseline| Some(baseline.machine?.describe()))
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(FlowError::Input(format!(
        "not promoted: the reports are of another machine ({}) than the baselines in {} ({}); --new-machine takes it in",
        machine.describe(),
        dir.display(),
        others.join("; ")
    )))
}
