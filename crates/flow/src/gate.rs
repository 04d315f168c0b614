//! `holdpoint gate`: the whole flow in one command.

mod history;
mod question;
mod stored;

pub(crate) use stored::StoredGate;

use crate::ab::sides::{Base, Head, Planned};
use crate::decided::Decided;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::GateArgs;
use crate::support::artifacts;
use crate::support::rules::Rules;
use crate::support::suites;
use crate::{Watch, ab, baseline};
use holdpoint_model::{Baseline, Report, Suite};
use question::Question;
use std::path::{Path, PathBuf};

/// The outcome of a gate.
#[derive(Debug)]
pub enum Gated {
    Decided(Box<Decided>),
    /// There was no baseline; this one was recorded.
    Recorded(Box<Baseline>),
    /// There was no baseline, and none could be made of the runs; this is the last of them.
    Unrecorded(Box<Report>),
    /// There is no baseline, and one was required.
    NoBaseline,
}

impl Gated {
    pub(crate) fn decided(decided: Decided) -> Self {
        Self::Decided(Box::new(decided))
    }
}

pub fn run(args: &GateArgs, watch: &dyn Watch) -> Result<Done<Gated>, FlowError> {
    let _lock = artifacts::lock(&args.artifacts, watch)?;
    let as_written = suites::load(&args.suite)?;
    let question = question::choose(args, &as_written, Path::new("."))?;
    let suite = suites::in_own_process(as_written.clone(), &args.suite)?;
    let rules = Rules::read(&args.files(), &suite)?;
    match question {
        Question::Revision(base) => {
            if base.reason.is_some() {
                note_unused_baseline(args, &suite, watch);
            }
            Ok(against(args, suite, base, &rules, watch)?.map(Gated::decided))
        }
        Question::History(location) => history::run(args, &as_written, &location, &rules, watch),
        Question::Baseline => {
            let of_suite = baseline_of_suite(&suite);
            StoredGate::read(args, as_written, of_suite, &rules)?.run(watch)
        }
    }
}

/// The baseline that the suite names.
fn baseline_of_suite(suite: &Suite) -> Option<PathBuf> {
    let folder = suite.dir.as_deref().unwrap_or(Path::new("."));
    suite.gate.baseline.as_ref().map(|file| folder.join(file))
}

/// A stored baseline is no longer what a gate compares with unless it is named.
fn note_unused_baseline(args: &GateArgs, suite: &Suite, watch: &dyn Watch) {
    let own = baseline::this_machines(suite, &args.baseline_dir);
    if own.exists() {
        let own = own.display();
        watch.note(&format!("{own} is not used; \"holdpoint gate --baseline {own}\" compares with it"));
    }
}

/// Compares with a revision, both alive at the same time.
fn against(
    args: &GateArgs,
    suite: Suite,
    base: Base,
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<Done<Decided>, FlowError> {
    let head = Head::WorkTree { in_place: args.dirty };
    let planned = Planned::Revisions { suite: Box::new(suite), base, head };
    ab::decide(planned, rules, &args.decide, args.policy.policy, &args.files(), watch)
}
