//! The choice of what a gate compares with: a revision side by side, a history or a stored baseline. A weaker comparison never
//! takes the place of one that was asked for, or of one that is only out of reach here.

use crate::ab::sides::{Base, check_of_revision};
use crate::error::FlowError;
use crate::options::{GateArgs, PolicyArgs};
use holdpoint_history::Location;
use holdpoint_measure::builds::{BuildError, Builds, command_words};
use holdpoint_model::Suite;
use holdpoint_model::suite::GateSettings;
use holdpoint_process::git;
use std::path::Path;

/// The question that a gate asks: against a revision, a baseline or a history.
pub(super) enum Question {
    Revision(Base),
    History(Location),
    Baseline,
}

/// Chooses by the flags, then by the suite, then by what there is to build in the repository around a folder.
pub(super) fn choose(args: &GateArgs, suite: &Suite, here: &Path) -> Result<Question, FlowError> {
    let (of_baseline, of_sides) = (args.flag_of_baseline(), args.flag_of_sides());
    let is_stray = |flag: &str, why: &str| Err(FlowError::Input(format!("{flag} is for a gate {why}")));
    if let Some(revision) = &args.against {
        PolicyArgs::check_for_sides(args.policy.policy)?;
        if let Some(flag) = of_baseline {
            return is_stray(flag, "with a stored baseline, without --against");
        }
        check_of_revision(suite)?;
        return Ok(Question::Revision(Base::named(revision)));
    }
    if let (Some(place), None) = (&args.history.history, &args.baseline) {
        if let Some(flag) = of_baseline {
            return is_stray(flag, "with a stored baseline, without --history");
        }
        return Ok(Question::History(Location::parse(place)));
    }
    match (of_baseline.or_else(|| key_of_baseline(&suite.gate)), of_sides) {
        (Some(asks), Some(flag)) => {
            return is_stray(flag, &format!("side by side, {asks} for one with a stored baseline"));
        }
        (Some(_), None) => return Ok(Question::Baseline),
        (None, _) => {}
    }
    if is_of_repository(suite, here)? {
        return Ok(Question::Revision(find_base(here)?));
    }
    match of_sides {
        Some(flag) => {
            is_stray(flag, "side by side; nothing here can be built to compare: give --against REV")
        }
        None => Ok(Question::Baseline),
    }
}

/// A key of the suite that asks for a stored baseline.
fn key_of_baseline(gate: &GateSettings) -> Option<&'static str> {
    let is_for_baseline = |name: &String| ["allowed-max", "threshold"].contains(&name.as_str());
    match gate {
        GateSettings { baseline: Some(_), .. } => Some("[gate] baseline"),
        GateSettings { threshold: Some(_), .. } => Some("[gate] threshold"),
        GateSettings { policy: Some(policy), .. } if is_for_baseline(policy) => Some("[gate] policy"),
        _ => None,
    }
}

/// Whether revisions of the repository around a folder can differ in what the suite runs.
fn is_of_repository(suite: &Suite, here: &Path) -> Result<bool, FlowError> {
    // Suites that come with holdpoint have no folder.
    if suite.dir.is_none() || git::root(here).is_none() || check_of_revision(suite).is_err() {
        return Ok(false);
    }
    let is_built = suite.build.is_some()
        || suite.harness.is_some()
        || suite.workloads.iter().any(|workload| workload.kernel.is_some());
    Ok(is_built || Builds::open(here)?.in_folder(suite.dir.as_deref()).tracks_any(command_words(suite))?)
}

/// The revision that a change is compared with where none is named.
fn find_base(here: &Path) -> Result<Base, FlowError> {
    let builds = Builds::open(here)?;
    let head = match builds.resolve("HEAD") {
        Err(BuildError::UnknownRevision { .. }) => {
            let what = "this repository has no commit to compare with; commit first, or give --baseline FILE";
            return Err(FlowError::Input(what.to_owned()));
        }
        head => head?,
    };
    let Some(branch) = git::default_branch_ref(here) else {
        return Err(FlowError::Input(
            "no default branch is known here: there is no origin/HEAD, main, master or trunk; fetch it (in CI: the whole \
             history, fetch-depth: 0), run \"git remote set-head origin --auto\", or give --against REV"
                .to_owned(),
        ));
    };
    let base = builds.merge_base(&branch, &head)?;
    let (revision, reason) = match base == head {
        false => (base, format!("the merge base with {branch}")),
        true if !builds.changes()?.is_empty() => (base, "which is HEAD".to_owned()),
        true => (parent_of(&builds, &head)?, format!("its parent, because {branch} has HEAD already")),
    };
    Ok(Base { revision, reason: Some(reason) })
}

fn parent_of(builds: &Builds, head: &str) -> Result<String, FlowError> {
    builds.parent(head)?.ok_or_else(|| {
        let what = "HEAD is the first commit, and nothing has changed since; change something, or give --baseline FILE";
        FlowError::Input(what.to_owned())
    })
}

#[cfg(test)]
mod tests;
