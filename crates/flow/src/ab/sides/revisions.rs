//! Two revisions of a repository as sides: each is built, and its workloads are listed from that build.

use super::{PreparedSides, with_settings};
use crate::Watch;
use crate::error::FlowError;
use crate::request::{Decision, SuiteChoice};
use crate::suites;
use holdpoint_measure::ReadySuite;
use holdpoint_measure::builds::{BuildError, Builds, Built};
use holdpoint_model::suite::{HarnessFrom, Reuse};
use holdpoint_model::{Revision, Side, Suite, Workload};
use std::path::Path;

/// The revision that is compared with.
pub struct Base {
    /// As git takes it.
    pub revision: String,
    /// Why this one, where nobody named it: ends the sentence "comparing the work tree with 45c20f2…".
    pub reason: Option<String>,
}

impl Base {
    /// One that was asked for.
    pub fn named(revision: &str) -> Self {
        Self { revision: revision.to_owned(), reason: None }
    }
}

/// The side under test, among revisions.
#[derive(Clone, Debug)]
pub enum Head {
    /// This one.
    Rev(String),
    /// The files as they are: HEAD, checked out elsewhere, where no tracked file differs from it.
    WorkTree {
        /// Whether it is built where it is in any case.
        in_place: bool,
    },
}

/// Two revisions of the repository around the current folder, as commits: names are looked up before any code of the change runs, which
/// may move branches and files.
pub struct Revisions {
    builds: Builds,
    base: Base,
    base_commit: String,
    /// Name of the side under test.
    head: String,
    commit: String,
    /// Tracked files that differ from the commit.
    changes: Vec<String>,
    /// Hash of the changes, where the work tree is built with them.
    in_place: Option<String>,
}

impl Revisions {
    pub(super) fn read(suite: &Suite, base: Base, head: &Head) -> Result<Self, FlowError> {
        let builds = Builds::open(Path::new("."))?.in_folder(suite.dir.as_deref());
        let base_commit = builds.repository().resolve(&base.revision)?;
        let (name, changes) = match head {
            Head::Rev(rev) => (rev.as_str(), Vec::new()),
            Head::WorkTree { .. } => ("HEAD", builds.changes()?),
        };
        let commit = builds.repository().resolve(name)?;
        let is_in_place = !changes.is_empty() || matches!(head, Head::WorkTree { in_place: true });
        let in_place = is_in_place.then(|| builds.changes_sha256()).transpose()?;
        let head = if is_in_place { "working tree" } else { name }.to_owned();
        let builds = with_benches_of(builds, &commit, suite);
        Ok(Self { builds, base, base_commit, head, commit, changes, in_place })
    }

    pub(super) fn head_revision(&self) -> Revision {
        Revision { commit: self.commit.clone(), dirty: !self.changes.is_empty() }
    }

    /// Refuses a work tree that is not the one that was looked at.
    fn check_work_tree(&self) -> Result<(), FlowError> {
        let Some(changes_sha256) = &self.in_place else { return Ok(()) };
        if self.builds.repository().resolve("HEAD")? == self.commit
            && self.builds.changes_sha256()? == *changes_sha256
        {
            return Ok(());
        }
        Err(FlowError::Input(format!(
            "{}: HEAD or tracked files changed while code ran, so what would be compared is not the change that was asked about; \
             let builds and benchmarks write to files that git does not track, or commit the change first",
            self.builds.root().display()
        )))
    }
}

/// Builds both revisions, and asks them for their workloads.
pub(super) fn prepare(
    suite: &Suite,
    revisions: Revisions,
    decide: &Decision,
    watch: &dyn Watch,
) -> Result<PreparedSides, FlowError> {
    let is_dirty = !revisions.changes.is_empty();
    if revisions.base.reason.is_some() || is_dirty {
        watch.note(&describe(&revisions.base, &revisions.base_commit, &revisions.changes));
    }
    let mut base_built = build(&revisions.builds, &revisions.base_commit, suite, Purpose::Verdict, watch)?;
    revisions.check_work_tree()?;
    let Revisions { builds, base, base_commit, head: label, commit, in_place, .. } = revisions;
    let is_in_place = in_place.is_some();
    let mut head_built = match is_in_place {
        true => builds.build_in_place(suite.build.as_ref())?,
        false => build(&builds, &commit, suite, Purpose::Verdict, watch)?,
    };
    builds.check(&base_built, &format!("{label} was built"))?;
    let is_measured = is_in_place || decide.measure_same_code(&suite.gate);
    let base_suite = listed(&builds, &mut base_built, suite).map_err(|error| of_base(error, suite))?;
    let meanwhile = |name: &str| format!("{name} listed its benchmarks");
    check_beside(&builds, &base_built, &mut head_built, &meanwhile(&base.revision))?;
    let head_suite = listed(&builds, &mut head_built, suite)?;
    check_beside(&builds, &head_built, &mut base_built, &meanwhile(&label))?;
    suites::check_gated(&[&base_suite, &head_suite])?;
    let same_build = if is_measured { None } else { builds.same(&base_built, &head_built, &head_suite) };
    let sides = with_settings(base_suite, head_suite, decide);
    // A hash says nothing to a reader; the subject does.
    let of = |name: &str, commit: String, dirty| {
        let subject = (name == commit).then(|| builds.repository().describe(&commit).ok()).flatten();
        let label = subject.map(|commit| commit.subject).filter(|subject| !subject.is_empty());
        let label = label.unwrap_or_else(|| name.to_owned());
        Side { label, revision: Some(Revision { commit, dirty }), ..Side::default() }
    };
    let mut prepared =
        PreparedSides::new(sides, of(&base.revision, base_commit, false), of(&label, commit, is_dirty));
    if let Some(changes_sha256) = in_place.filter(|_| is_dirty) {
        prepared.conditions.insert("uncommitted changes".to_owned(), changes_sha256);
    }
    let inventories = [base_built.inventory, head_built.inventory];
    Ok(PreparedSides { same_build, inventories, _builds: Some(builds), ..prepared })
}

/// The suite as it runs in a build, with the benchmarks that its harness and its workers list there.
pub fn listed(builds: &Builds, built: &mut Built, suite: &Suite) -> Result<ReadySuite, FlowError> {
    let at_built = suites::list(Suite { dir: Some(built.dir.clone()), ..suite.clone() })?;
    if suite.has_listed_workloads() {
        builds.take_inventory(built)?;
    }
    Ok(at_built)
}

/// Checks a build while only the other side's programs ran, unless both sides are one build.
fn check_beside(builds: &Builds, ran: &Built, other: &mut Built, meanwhile: &str) -> Result<(), FlowError> {
    if ran.dir == other.dir {
        other.inventory.clone_from(&ran.inventory);
    }
    Ok(builds.check(other, meanwhile)?)
}

/// One line about what is compared.
fn describe(base: &Base, commit: &str, changes: &[String]) -> String {
    let head = match changes {
        [] => "HEAD".to_owned(),
        [file] => format!("the work tree ({file} differs from HEAD)"),
        files => format!("the work tree ({} files differ from HEAD)", files.len()),
    };
    let short = commit.get(..SHORT_HASH).unwrap_or(commit);
    match &base.reason {
        Some(reason) => format!("comparing {head} with {short}, {reason}"),
        None => format!("comparing {head} with {}", base.revision),
    }
}

/// As long as git's own short hashes in a repository of medium size.
const SHORT_HASH: usize = 10;

/// Builds in which every revision has head's benchmarks, if the suite says so.
pub(crate) fn with_benches_of(builds: Builds, head: &str, suite: &Suite) -> Builds {
    match &suite.harness {
        Some(harness) => builds.with_files_of(head, harness.files_of_head()),
        None => builds,
    }
}

/// Base's benchmarks may be older than the harness.
fn of_base(error: FlowError, suite: &Suite) -> FlowError {
    match (error, &suite.harness) {
        (FlowError::Input(what), Some(harness)) if harness.harness_from == HarnessFrom::Each => {
            FlowError::Input(format!(
                "base: {what}; if its benchmarks are newer than base, set harness_from = \"head\" under [harness]"
            ))
        }
        (error, _) => error,
    }
}

/// A suite whose workloads come out of the revision that is measured.
pub(crate) fn revision_suite(choice: &SuiteChoice) -> Result<Suite, FlowError> {
    as_revision_suite(suites::load(choice)?, choice)
}

/// The same of a suite that was loaded.
pub(crate) fn as_revision_suite(as_written: Suite, choice: &SuiteChoice) -> Result<Suite, FlowError> {
    check_of_revision(&as_written)?;
    suites::in_own_process(as_written, choice)
}

/// Refuses a suite, as its file has it, with workloads that are the same at every revision.
pub(crate) fn check_of_revision(suite: &Suite) -> Result<(), FlowError> {
    let same: Vec<String> =
        suite.workloads.iter().filter(|workload| is_same_everywhere(suite, workload)).map(quoted).collect();
    if same.is_empty() {
        return Ok(());
    }
    let noun = if same.len() == 1 { "workload" } else { "workloads" };
    Err(FlowError::Input(format!(
        "suite {:?}, {noun} {}: built-in ops are holdpoint's own, the same at every revision of your code; use a `command`, a `kernel` \
         or a worker that is built from it (docs/ab.md), or move them to a suite of their own, which has a stored baseline",
        suite.name,
        same.join(", ")
    )))
}

/// Whether a workload is the same at every revision. A kernel of the user's own is compiled from the revision's source.
pub(crate) fn is_same_everywhere(suite: &Suite, workload: &Workload) -> bool {
    suites::is_own(suite, workload.worker()) && workload.task.kernel().is_none()
}

fn quoted(workload: &Workload) -> String {
    format!("{:?}", workload.name)
}

/// Purpose of a build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Verdict,
    /// A step of a search: the next one may be built in its place.
    Search,
}

/// Checks a revision out and builds it, unless that has been done before.
pub fn build(
    builds: &Builds,
    commit: &str,
    suite: &Suite,
    purpose: Purpose,
    watch: &dyn Watch,
) -> Result<Built, BuildError> {
    watch.progress(&format!("building {}", &commit[..commit.len().min(12)]));
    let build = suite.build.as_ref();
    let may_reuse = match build.map(|build| build.reuse) {
        Some(Reuse::Always) => true,
        Some(Reuse::Search) => purpose == Purpose::Search,
        // Where nothing is built, there is nothing to save.
        Some(Reuse::Never) | None => false,
    };
    let built = if may_reuse { builds.get_in_workshop(commit, build)? } else { builds.get(commit, build)? };
    built.note.iter().for_each(|note| watch.note(note));
    if !built.cached {
        watch.progress(&format!("built {} in {:.1} s", &commit[..commit.len().min(12)], built.seconds));
    }
    Ok(built)
}
