//! What a release must show by the policy, and the files that are released.

use super::{BASE, COMMIT, asked, attested, complete, facts, verified};
use holdpoint_evidence::attest::{
    BaseRelation, Facts, Places, Signed, Signer, create, judge_release, released, statement, verify,
};
use holdpoint_model::attest::{GateStatus, RuntimeTarget};
use holdpoint_model::{Allowance, Attestation, Date, ReleasePolicy, SealFacts};
use std::path::Path;

const KEY: &str = "946bbfb4fd58b1aeac3ddb00f68fd8c8dea7e9a84e6c149b1c10b36b707c38fd";

/// A policy of one that has no seals.
fn policy(text: &str) -> ReleasePolicy {
    let mut policy = ReleasePolicy::parse(&format!("schema_version = 1\n{text}")).unwrap();
    policy.allow.push(Allowance::Unsealed);
    policy
}

fn signed() -> Signer {
    Signer::Key(KEY.to_owned())
}

/// The only problem that an edited attestation has.
fn only(edit: impl Fn(&mut Attestation), rules: &str) -> String {
    let dir = complete();
    let mut attestation = attested(dir.path());
    edit(&mut attestation);
    let mut found = judge_release(&attestation, &signed(), &policy(rules), &facts());
    assert!(found.len() < 2, "{found:?}");
    found.pop().unwrap_or_default()
}

fn pending(attestation: &mut Attestation) {
    attestation.gates[5].status = GateStatus::Pending;
}

#[test]
fn without_a_policy_nothing_may_be_missing() {
    assert_eq!(only(|_| {}, ""), "");
    assert!(only(pending, "").contains("gate security_review is PENDING"));
    assert!(only(|a| a.gates[0].status = GateStatus::Fail, "").contains("is FAIL"));
    assert!(
        only(|a| a.artifacts[2].status = GateStatus::Fail, "").contains("trt_engine"),
        "also where it is not needed"
    );
    assert!(only(|a| a.release_metadata.dirty = Some(true), "").contains("uncommitted changes"));
    assert!(only(|a| a.release_metadata.dirty = None, "").contains("not known"));
    let attestation = attested(complete().path());
    let strict = |signer, facts: &Facts| judge_release(&attestation, &signer, &policy(""), facts).join("; ");
    assert!(strict(Signer::Nobody, &facts()).starts_with("it is not signed"));
    assert_eq!(strict(Signer::NotYet, &facts()), "");
    let other = Facts { commit: Some("f".repeat(40)), ..facts() };
    assert!(strict(signed(), &other).contains("not of ffff"));
    assert!(strict(signed(), &Facts { commit: None, ..facts() }).contains("--commit-sha"));
}

#[test]
fn times_are_sealed_by_a_key_of_the_policy() {
    let dir = complete();
    let mut attestation = attested(dir.path());
    let judged = |attestation: &Attestation, text: &str| {
        let policy = ReleasePolicy::parse(&format!("schema_version = 1\n{text}")).unwrap();
        judge_release(attestation, &signed(), &policy, &facts())
    };
    let found = judged(&attestation, "");
    assert!(found.len() == 2 && found.iter().all(|problem| problem.contains("is unsealed")), "{found:?}");
    assert_eq!(judged(&attestation, "allow = [\"unsealed\"]"), Vec::<String>::new());
    let seal = |keyid: Option<&str>| {
        let (path, sha256) = ("report.seal.json".to_owned(), "0".repeat(64));
        Some(SealFacts { path, sha256, keyid: keyid.map(str::to_owned), problems: Vec::new() })
    };
    let mut with = |keyid: Option<&str>, text: &str| {
        attestation.artifacts[5].seal = seal(keyid);
        attestation.gates[1].inputs[0].seal = seal(keyid);
        judged(&attestation, text).join("; ")
    };
    let own = format!("sealed_by = [{KEY:?}]");
    assert_eq!(with(Some(KEY), &own), "");
    assert!(with(Some(KEY), "").contains("none of the policy's keys"), "anybody can make a key");
    assert!(with(None, &own).contains("is unsealed"), "a hash alone is no seal");
}

#[test]
fn what_is_declared_away_must_be_in_the_policy() {
    let dir = complete();
    std::fs::remove_file(dir.path().join("eval.json")).unwrap();
    std::fs::remove_file(dir.path().join("needs.json")).unwrap();
    let mut asked = asked(dir.path(), RuntimeTarget::Cpu);
    asked.without = ["eval_report", "lint_type_tests"].map(|key| (key.to_owned(), "x".to_owned())).into();
    let attestation = create(&asked).unwrap();
    let judged = |text: &str| judge_release(&attestation, &signed(), &policy(text), &facts());
    let found = judged("");
    assert!(found.len() == 2 && found.iter().all(|problem| problem.contains("declared away")), "{found:?}");
    assert_eq!(judged("without = [\"eval_report\"]").len(), 1);
    assert_eq!(judged("without = [\"eval_report\", \"lint_type_tests\"]"), Vec::<String>::new());
    let both = "without = [\"eval_report\", \"lint_type_tests\"]\n";
    assert!(judged(&format!("{both}gates = [\"lint_type_tests\"]"))[0].contains("lint_type_tests is N/A"));
    assert!(judged(&format!("{both}artifacts = [\"trt_engine\"]"))[0].contains("trt_engine"));
}

#[test]
fn a_policy_asks_for_keys_tag_run_age_and_knows_what_it_asks_for() {
    assert_eq!(only(|_| {}, &format!("signed_by = [{KEY:?}]")), "");
    assert!(
        only(|_| {}, &format!("signed_by = [{:?}]", "0".repeat(64))).contains("none of the policy's keys")
    );
    assert_eq!(only(|_| {}, "tag = \"v*\""), "");
    assert!(only(|_| {}, "tag = \"release-*\"").contains("its tag is \"v1\""));
    let run = "ci_run = \"https://ci.example/me/\"";
    assert!(only(|_| {}, run).contains("names no CI run"));
    let at =
        |url: &'static str| move |a: &mut Attestation| a.release_metadata.ci_run_url = Some(url.to_owned());
    assert_eq!(only(at("https://ci.example/me/7"), run), "");
    assert!(only(at("https://ci.example/metoo/7"), run).contains("wants one of"));
    assert!(only(|_| {}, "gates = [\"gpu_perf_regression\"]").contains("gpu_perf_regression is N/A"));
    assert!(only(|_| {}, "gates = [\"speed\"]").contains("which there is not"));
    assert!(only(|_| {}, "without = [\"everything\"]").contains("which there is not"));
    let old = |rules: &str, today: Date| {
        let attestation = attested(complete().path());
        judge_release(&attestation, &signed(), &policy(rules), &Facts { today, ..facts() }).join("; ")
    };
    assert_eq!(old("age_days_max = 30", Date::new(2026, 2, 1).unwrap()), "");
    assert!(old("age_days_max = 30", Date::new(2026, 2, 2).unwrap()).contains("31 days old"));
    assert!(old("", Date::new(2026, 1, 1).unwrap()).contains("after today"));
}

#[test]
fn a_looser_policy_says_what_it_lets_pass() {
    assert_eq!(only(pending, "allow = [\"pending\"]"), "");
    assert!(only(pending, "allow = [\"pending\"]\ngates = [\"security_review\"]").contains("is PENDING"));
    assert!(only(|a| a.gates[5].status = GateStatus::Fail, "allow = [\"pending\"]").contains("is FAIL"));
    let attestation = attested(complete().path());
    let nothing = Facts { commit: None, bases: Default::default(), ..facts() };
    let loose = policy("allow = [\"unsigned\", \"any_commit\", \"any_base\"]");
    assert_eq!(judge_release(&attestation, &Signer::Nobody, &loose, &nothing), Vec::<String>::new());
}

#[test]
fn a_base_is_an_earlier_commit_with_other_files() {
    let attestation = attested(complete().path());
    let judged = |relation| {
        let bases = [(BASE.to_owned(), relation)].into();
        judge_release(&attestation, &signed(), &policy(""), &Facts { bases, ..facts() }).join("; ")
    };
    assert_eq!(judged(BaseRelation::Ancestor), "");
    assert!(judged(BaseRelation::SameTree).contains("compared with itself"));
    assert!(judged(BaseRelation::Unrelated).contains("not in the history"));
    assert!(judged(BaseRelation::Unknown).contains("fetch the whole history"));
    assert_eq!(attestation.release_metadata.commit_sha, COMMIT);
}

/// A folder with two files to release, attested by the policy.
fn with_files(dir: &Path, released_dir: &Path) -> (Attestation, ReleasePolicy) {
    std::fs::create_dir_all(released_dir.join("dist")).unwrap();
    for name in ["a.whl", "b.whl", "notes.txt"] {
        std::fs::write(released_dir.join("dist").join(name), name).unwrap();
    }
    let policy = policy("files = [\"dist/*.whl\"]");
    let paths = released::find(&policy, released_dir).unwrap();
    assert_eq!(paths.iter().map(String::as_str).collect::<Vec<_>>(), ["dist/a.whl", "dist/b.whl"]);
    let mut asked = asked(dir, RuntimeTarget::Cpu);
    asked.release_files =
        paths.iter().map(|path| released::read(released_dir, path).unwrap().unwrap()).collect();
    (create(&asked).unwrap(), policy)
}

#[test]
fn released_files_are_subjects_and_are_held_against_what_lies_there() {
    let (dir, released_dir) = (complete(), tempfile::tempdir().unwrap());
    let (attestation, policy) = with_files(dir.path(), released_dir.path());
    let names: Vec<String> = statement(attestation.clone()).subject.into_iter().map(|s| s.name).collect();
    assert!(names.contains(&"dist/a.whl".to_owned()) && names.len() == 13, "{names:?}");
    assert_eq!(judge_release(&attestation, &signed(), &policy, &facts()), Vec::<String>::new());
    let check = || {
        let places = Places { artifacts: dir.path(), released: released_dir.path() };
        verify(Signed::Bare(Box::new(attestation.clone())), places, &policy).unwrap().0.join("; ")
    };
    assert_eq!(check(), "");
    let at = |name: &str| released_dir.path().join("dist").join(name);
    std::fs::write(at("c.whl"), "late").unwrap();
    assert_eq!(check(), "released file dist/c.whl was not attested");
    std::fs::rename(at("c.whl"), at("a.whl")).unwrap();
    assert!(check().starts_with("released file dist/a.whl is another file"), "{}", check());
    std::fs::remove_file(at("a.whl")).unwrap();
    assert!(check().contains("dist/a.whl is not in"));
    std::os::unix::fs::symlink(at("b.whl"), at("a.whl")).unwrap();
    assert!(check().contains("dist/a.whl is not in"), "a link is no file");
    assert!(
        verified(Signed::Bare(Box::new(attestation.clone())), dir.path()).0.len() == 2,
        "not where they should be"
    );
}

#[test]
fn a_policy_with_files_wants_one_at_least_of_each() {
    assert!(only(|_| {}, "files = [\"dist/*.whl\"]").contains("it attests no released file \"dist/*.whl\""));
}
