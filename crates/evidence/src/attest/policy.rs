//! Judging an attestation by a release policy: pure, and every problem comes with a remedy.

use super::Problems;
use super::read;
use super::requirements::REQUIREMENTS;
use holdpoint_model::attest::{AttestedArtifact, AttestedGate, Compared, GateStatus};
use holdpoint_model::limits::clean_text;
use holdpoint_model::release_policy::takes_file;
use holdpoint_model::{Allowance, Attestation, Date, ReleasePolicy, SealFacts, SealState};
use std::collections::BTreeMap;

/// The relation of a base to the commit that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRelation {
    Ancestor,
    /// Another commit with the same files.
    SameTree,
    /// Not in the history of the release: it comes later, or is of another branch.
    Unrelated,
    Unknown,
}

/// Facts from outside the attestation and its files.
#[derive(Clone, Debug)]
pub struct Facts {
    pub today: Date,
    pub commit: Option<String>,
    /// The relations of bases to it, by their commits.
    pub bases: BTreeMap<String, BaseRelation>,
}

/// The signer of an attestation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    Nobody,
    /// It is about to be signed.
    NotYet,
    Key(String),
}

/// The commits of all bases of an attestation.
pub fn bases(attestation: &Attestation) -> Vec<&str> {
    let revisions = compared(attestation).filter_map(|compared| compared.base.as_ref());
    revisions.map(|revision| revision.commit.as_str()).collect()
}

fn compared(attestation: &Attestation) -> impl Iterator<Item = &Compared> {
    attestation.gates.iter().flat_map(|gate| &gate.inputs).filter_map(|input| input.compared.as_ref())
}

/// The problems with releasing this attestation under the policy.
pub fn judge_release(
    attestation: &Attestation,
    signer: &Signer,
    policy: &ReleasePolicy,
    facts: &Facts,
) -> Problems {
    let mut problems = Problems::new();
    problems.extend(judge_signer(signer, policy));
    problems.extend(judge_seals(attestation, policy));
    attestation.artifacts.iter().for_each(|artifact| problems.extend(judge_artifact(artifact, policy)));
    attestation.gates.iter().for_each(|gate| problems.extend(judge_gate(gate, policy)));
    problems.extend(judge_times(attestation, policy));
    problems.extend(judge_origin(attestation, policy, facts));
    problems.extend(judge_age(attestation, policy, facts));
    problems.extend(judge_bases(attestation, policy, facts));
    problems.extend(judge_files(attestation, policy));
    problems.extend(judge_names(attestation, policy));
    problems.into_iter().map(|problem| clean_text(&problem)).collect()
}

fn judge_signer(signer: &Signer, policy: &ReleasePolicy) -> Option<String> {
    match signer {
        Signer::Nobody if !policy.allows(Allowance::Unsigned) => {
            Some("it is not signed; sign it with \"holdpoint attest sign\"".to_owned())
        }
        Signer::Key(id) if !policy.signed_by.is_empty() && !policy.signed_by.contains(id) => {
            Some(format!("it is signed by {id}, which is none of the policy's keys (signed_by)"))
        }
        _ => None,
    }
}

/// A seal names its own key, so only a known key counts. A broken seal fails its artifact or gate already.
fn judge_seals(attestation: &Attestation, policy: &ReleasePolicy) -> Problems {
    if policy.allows(Allowance::Unsealed) {
        return Problems::new();
    }
    let problem = |(key, path, facts): (&str, &str, Option<&SealFacts>)| match facts.map(SealFacts::state) {
        Some(SealState::Broken(_)) => None,
        Some(SealState::SealedBy(id)) if policy.sealed_by.iter().any(|known| known == id) => None,
        Some(SealState::SealedBy(id)) => Some(format!(
            "{key} ({path}) is sealed by key {id}, which is none of the policy's keys; if it is your machine's or job's, add it to \"sealed_by\" or give --seal-keyid"
        )),
        Some(SealState::Unsealed) | None => Some(format!(
            "{key} ({path}) is unsealed: whoever could write the file could have invented it; measure with HOLDPOINT_SEAL_KEY or --seal-key"
        )),
    };
    super::seals(attestation).into_iter().filter_map(problem).collect()
}

fn judge_artifact(artifact: &AttestedArtifact, policy: &ReleasePolicy) -> Option<String> {
    let AttestedArtifact { key, status, detail, path, .. } = artifact;
    if read::declared_away(&artifact.without, detail).is_some() && !policy.without.contains(key) {
        return Some(declared_away("artifact", key));
    }
    let is_wanted = artifact.required || policy.artifacts.contains(key);
    let is_bad = *status == GateStatus::Fail || is_wanted && *status != GateStatus::Pass;
    is_bad.then(|| format!("artifact {key} ({path}) is {}: {detail}", status.as_str()))
}

fn judge_gate(gate: &AttestedGate, policy: &ReleasePolicy) -> Option<String> {
    let AttestedGate { key, status, evidence, .. } = gate;
    if read::declared_away(&gate.without, evidence).is_some() && !policy.without.contains(key) {
        return Some(declared_away("gate", key));
    }
    let is_enough = match status {
        GateStatus::Pass => true,
        _ if policy.gates.contains(key) => false,
        GateStatus::Pending => policy.allows(Allowance::Pending),
        GateStatus::NotApplicable => true,
        GateStatus::Fail => false,
    };
    (!is_enough).then(|| format!("gate {key} is {}: {evidence}", status.as_str()))
}

fn declared_away(what: &str, key: &str) -> String {
    format!(
        "{what} {key} was declared away, which the policy does not allow; provide it, or add it to \"without\""
    )
}

fn judge_times(attestation: &Attestation, policy: &ReleasePolicy) -> Option<String> {
    let mut about_times = attestation.gates.iter().filter(|gate| REQUIREMENTS.is_about_times(&gate.key));
    let is_enough = |gate: &AttestedGate| match gate.status {
        GateStatus::Pass => true,
        GateStatus::Pending => policy.allows(Allowance::Pending),
        _ => false,
    };
    let has_passed = about_times.any(is_enough);
    (!has_passed).then(|| {
        let keys: Vec<&str> = REQUIREMENTS.times_gates().map(|gate| gate.key.as_str()).collect();
        format!("neither {} has passed: it says nothing about speed", keys.join(" nor "))
    })
}

/// Commit, tree, tag and CI run.
fn judge_origin(attestation: &Attestation, policy: &ReleasePolicy, facts: &Facts) -> Problems {
    let release = &attestation.release_metadata;
    let mut problems = Problems::new();
    match (&facts.commit, &release.commit_sha) {
        _ if policy.allows(Allowance::AnyCommit) => {}
        (Some(wanted), found) if wanted == found => {}
        (Some(wanted), found) => problems.push(format!("it is of commit {found}, not of {wanted}")),
        (None, _) => problems.push(
            "no repository tells which commit is released; give --commit-sha, or run in the repository"
                .to_owned(),
        ),
    }
    match release.dirty {
        Some(false) => {}
        Some(true) => problems.push("it was made from a tree with uncommitted changes".to_owned()),
        None => {
            problems.push("whether the tree was clean is not known; create it in the repository".to_owned())
        }
    }
    if !policy.takes_tag(&release.release_tag) {
        let pattern = policy.tag.as_deref().unwrap_or_default();
        problems.push(format!("its tag is {:?}, and the policy wants {pattern:?}", release.release_tag));
    }
    if let Some(begin) = &policy.ci_run {
        match &release.ci_run_url {
            Some(url) if url.starts_with(begin) => {}
            Some(url) => problems.push(format!("its CI run is {url}, and the policy wants one of {begin}")),
            None => problems.push(format!("it names no CI run, and the policy wants one of {begin}")),
        }
    }
    problems
}

fn judge_age(attestation: &Attestation, policy: &ReleasePolicy, facts: &Facts) -> Option<String> {
    let built = &attestation.release_metadata.build_date_utc;
    let Some(day) = Date::parse(built) else {
        return Some(format!("its date is {built:?}, which is no date"));
    };
    match (facts.today.days_since(day), policy.age_days_max) {
        (days, _) if days < 0 => Some(format!("it is of {day}, which is after today, {}", facts.today)),
        (days, Some(most)) if days > i64::from(most) => {
            Some(format!("it is {days} days old, and the policy wants at most {most}; create it again"))
        }
        _ => None,
    }
}

fn judge_bases(attestation: &Attestation, policy: &ReleasePolicy, facts: &Facts) -> Problems {
    if policy.allows(Allowance::AnyBase) {
        return Problems::new();
    }
    let problem = |commit: &str| match facts.bases.get(commit).copied().unwrap_or(BaseRelation::Unknown) {
        BaseRelation::Ancestor => None,
        BaseRelation::SameTree => {
            Some(format!("base {commit} has the same files as the release: it was compared with itself"))
        }
        BaseRelation::Unrelated => Some(format!(
            "base {commit} is not in the history of the release; compare with an earlier commit"
        )),
        BaseRelation::Unknown => {
            Some(format!("base {commit} is not in the repository here; fetch the whole history"))
        }
    };
    let mut commits = bases(attestation);
    commits.sort_unstable();
    commits.dedup();
    commits.into_iter().filter_map(problem).collect()
}

fn judge_files(attestation: &Attestation, policy: &ReleasePolicy) -> Problems {
    let has =
        |pattern: &&String| attestation.release_files.iter().any(|file| takes_file(pattern, &file.path));
    let missing = policy.files.iter().filter(|pattern| !has(pattern));
    missing.map(|pattern| format!("it attests no released file {pattern:?}; give --policy or --release-file to \"attest create\"")).collect()
}

/// A key that nobody knows would never be missed.
fn judge_names(attestation: &Attestation, policy: &ReleasePolicy) -> Problems {
    let is_gate = |key: &str| attestation.gates.iter().any(|gate| gate.key == key);
    let is_artifact = |key: &str| attestation.artifacts.iter().any(|artifact| artifact.key == key);
    let gates = policy.gates.iter().filter(|key| !is_gate(key));
    let artifacts = policy.artifacts.iter().filter(|key| !is_artifact(key));
    let without = policy.without.iter().filter(|key| !is_gate(key) && !is_artifact(key));
    gates
        .chain(artifacts)
        .chain(without)
        .map(|key| format!("the policy names {key:?}, which there is not"))
        .collect()
}
