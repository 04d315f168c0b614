//! `holdpoint gate`: the whole flow in one command.

mod history;
mod question;
mod stored;

pub(crate) use stored::StoredGate;

use crate::ab::sides::{Head, PlannedSides};
use crate::baseline::FOLDER_DEFAULT;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::judgement_with_samples::JudgementWithSamples;
use crate::request::{EvidenceFiles, Location, PolicyChoice, SidesRequest, SuiteChoice};
use crate::rules::Rules;
use crate::suites::LoadedSuite;
use crate::{Watch, ab, baseline};
use history::HistoryGate;
use holdpoint_model::{Baseline, Report, Suite};
use question::Comparand;
use std::path::{Path, PathBuf};

/// Runs that are added when the first is slower than allowed.
pub const CONFIRM_DEFAULT: u32 = 2;

/// A change to be gated.
#[derive(Clone, Debug)]
pub struct GateRequest {
    pub suite: SuiteChoice,
    pub question: GateQuestion,
    pub files: EvidenceFiles,
}

/// What a gate compares with.
#[derive(Clone, Debug)]
pub enum GateQuestion {
    /// A revision, side by side.
    Against {
        revision: String,
        sides: GateSides,
    },
    /// The history of its metrics; where that leaves a doubt, a revision: this one, or the newest that passed.
    History {
        location: Location,
        last_good: Option<String>,
        sides: GateSides,
    },
    Baseline(BaselineQuestion),
    /// What the suite and the repository are made for: the default branch side by side, or a stored baseline.
    Default {
        sides: GateSides,
        /// The flag, if any, that means something side by side only: then nothing else will do.
        sides_flag: Option<&'static str>,
    },
}

/// How the work tree is compared side by side.
#[derive(Clone, Debug, Default)]
pub struct GateSides {
    /// Whether it is built where it is even if no tracked file differs from HEAD.
    pub in_place: bool,
    pub how: SidesRequest,
}

impl GateSides {
    fn head(&self) -> Head {
        Head::WorkTree { in_place: self.in_place }
    }
}

/// How a run is compared with a stored baseline.
#[derive(Clone, Debug)]
pub struct BaselineQuestion {
    /// The file; the suite's, or this machine's own, if absent.
    pub baseline: Option<PathBuf>,
    pub baseline_dir: PathBuf,
    pub policy: PolicyChoice,
    pub tolerance: Option<f64>,
    /// Whether the gate ends as inconclusive where there is no baseline yet, instead of recording one.
    pub require_baseline: bool,
    /// Runs to record where there is none.
    pub runs: Option<u32>,
    /// Runs to add when the first is slower than allowed.
    pub confirm: Option<u32>,
}

impl BaselineQuestion {
    /// Is it slower than the baseline in this folder?
    pub fn new(baseline_dir: PathBuf) -> Self {
        Self {
            baseline: None,
            baseline_dir,
            policy: PolicyChoice::default(),
            tolerance: None,
            require_baseline: false,
            runs: None,
            confirm: None,
        }
    }
}

/// The outcome of a gate.
#[derive(Debug)]
pub enum GateResult {
    Judged(Box<JudgementWithSamples>),
    /// There was no baseline; this one was recorded.
    Recorded(Box<Baseline>),
    /// There was no baseline, and none could be made of the runs; this is the last of them.
    Unrecorded(Box<Report>),
    /// There is no baseline, and one was required.
    NoBaseline,
}

impl GateResult {
    pub(crate) fn decided(decided: JudgementWithSamples) -> Self {
        Self::Judged(Box::new(decided))
    }
}

pub fn run(request: &GateRequest, watch: &dyn Watch) -> Result<CommandResult<GateResult>, FlowError> {
    let files = &request.files;
    let _lock = artifacts::lock(&files.artifacts, watch)?;
    let suite = LoadedSuite::read(&request.suite)?;
    let comparand = question::choose(&request.question, &suite.as_written, Path::new("."))?;
    let rules = &Rules::read(files, &suite.as_run)?;
    match comparand {
        Comparand::Revision(base, sides) => {
            if base.reason.is_some() {
                note_unused_baseline(&suite.as_run, watch);
            }
            let planned = PlannedSides::revisions(suite.as_run, base, &sides.head())?;
            Ok(ab::decide(planned, rules, &sides.how, files, watch)?.map(GateResult::decided))
        }
        Comparand::History { location, last_good, sides } => {
            history::run(&HistoryGate { suite: &suite, location, last_good, sides, files, rules }, watch)
        }
        Comparand::Baseline(question) => {
            let of_suite = baseline_of_suite(&suite.as_run);
            StoredGate::read(suite, question, of_suite, files, rules)?.run(watch)
        }
    }
}

/// The baseline that the suite names.
fn baseline_of_suite(suite: &Suite) -> Option<PathBuf> {
    let folder = suite.dir.as_deref().unwrap_or(Path::new("."));
    suite.gate.baseline.as_ref().map(|file| folder.join(file))
}

/// A stored baseline is no longer what a gate compares with unless it is named.
fn note_unused_baseline(suite: &Suite, watch: &dyn Watch) {
    let own = baseline::this_machines(suite, Path::new(FOLDER_DEFAULT));
    if own.exists() {
        let own = own.display();
        watch.note(&format!("{own} is not used; \"holdpoint gate --baseline {own}\" compares with it"));
    }
}
