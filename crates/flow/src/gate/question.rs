//! The choice of what a gate compares with: a revision side by side, a history or a stored baseline. A weaker comparison never
//! takes the place of one that was asked for, or of one that is only out of reach here.

use super::{BaselineQuestion, GateQuestion, GateSides};
use crate::ab::sides::{Base, check_of_revision, is_same_everywhere};
use crate::baseline::FOLDER_DEFAULT;
use crate::error::FlowError;
use crate::request::PolicyChoice;
use holdpoint_history::Location;
use holdpoint_measure::builds::{Builds, command_words};
use holdpoint_model::Suite;
use holdpoint_model::suite::GateSettings;
use holdpoint_process::git::{GitError, Repository};
use std::path::Path;

/// What a gate compares with, for this suite in this repository.
pub(super) enum Comparand<'a> {
    Revision(Base, &'a GateSides),
    History { location: &'a Location, last_good: Option<&'a str>, sides: &'a GateSides },
    Baseline(BaselineQuestion),
}

/// Chooses by the question, then by the suite, then by what there is to build in the repository around a folder.
pub(super) fn choose<'a>(
    question: &'a GateQuestion,
    suite: &Suite,
    here: &Path,
) -> Result<Comparand<'a>, FlowError> {
    let (sides, sides_flag) = match question {
        GateQuestion::Against { revision, sides } => {
            check_of_revision(suite)?;
            return Ok(Comparand::Revision(Base::named(revision), sides));
        }
        GateQuestion::History { location, last_good, sides } => {
            return Ok(Comparand::History { location, last_good: last_good.as_deref(), sides });
        }
        GateQuestion::Baseline(question) => return Ok(Comparand::Baseline(question.clone())),
        GateQuestion::Default { sides, sides_flag } => (sides, sides_flag),
    };
    let key = key_of_baseline(&suite.gate);
    if key.is_none() && is_of_repository(suite, here)? {
        return Ok(Comparand::Revision(find_base(here)?, sides));
    }
    match (key, sides_flag) {
        (_, None) => Ok(Comparand::Baseline(without_sides(sides))),
        (Some(key), Some(flag)) => Err(FlowError::Input(format!(
            "{flag} is for a gate side by side, {key} for one with a stored baseline"
        ))),
        (None, Some(flag)) => Err(FlowError::Input(format!(
            "{flag} is for a gate side by side; nothing here can be built to compare: give --against REV"
        ))),
    }
}

/// The same question to the stored baseline.
fn without_sides(sides: &GateSides) -> BaselineQuestion {
    BaselineQuestion {
        policy: PolicyChoice { policy: sides.how.policy, ..PolicyChoice::default() },
        tolerance: sides.how.decision.question.tolerance,
        ..BaselineQuestion::new(FOLDER_DEFAULT.into())
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

/// Whether revisions of the repository around a folder can differ in what the suite runs. A suite only part of which can differ is
/// refused: a baseline for all of it would be the weaker comparison for that part.
fn is_of_repository(suite: &Suite, here: &Path) -> Result<bool, FlowError> {
    let is_all_built_in = !suite.workloads.is_empty()
        && suite.harness.is_none()
        && suite.workloads.iter().all(|workload| is_same_everywhere(suite, workload));
    // Suites that come with holdpoint have no folder.
    if suite.dir.is_none() || Repository::around(here).root().is_none() || is_all_built_in {
        return Ok(false);
    }
    let is_built = suite.build.is_some()
        || suite.harness.is_some()
        || suite.workloads.iter().any(|workload| workload.task.kernel().is_some())
        || Builds::open(here)?.in_folder(suite.dir.as_deref()).tracks_any(command_words(suite))?;
    if is_built {
        check_of_revision(suite)?;
    }
    Ok(is_built)
}

/// The revision that a change is compared with where none is named.
fn find_base(here: &Path) -> Result<Base, FlowError> {
    let builds = Builds::open(here)?;
    let head = match builds.repository().resolve("HEAD") {
        Err(GitError::UnknownRevision { .. }) => {
            let what = "this repository has no commit to compare with; commit first, or give --baseline FILE";
            return Err(FlowError::Input(what.to_owned()));
        }
        head => head?,
    };
    let Some(branch) = builds.repository().default_branch_ref() else {
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
    builds.repository().parent(head)?.ok_or_else(|| {
        let what = "HEAD is the first commit, and nothing has changed since; change something, or give --baseline FILE";
        FlowError::Input(what.to_owned())
    })
}

#[cfg(test)]
mod tests;
