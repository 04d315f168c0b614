//! The two sides of a comparison: planned from requests and files first, so that all of these are read before any code of
//! either side runs, then built and started.

mod commands;
mod revisions;

pub use commands::CommandPair;
pub use revisions::{Base, Head, Revisions, build, listed};
pub(crate) use revisions::{
    Purpose, as_revision_suite, check_of_revision, is_same_everywhere, revision_suite, with_benches_of,
};

use crate::Watch;
use crate::ab::AbSides;
use crate::error::FlowError;
use crate::request::{Decision, SuiteChoice};
use crate::suites;
use commands::CommandLine;
use holdpoint_measure::ReadySuite;
use holdpoint_measure::ab::{Sides, conditions};
use holdpoint_measure::builds::{Builds, Inventory};
use holdpoint_model::ab::SameBuild;
use holdpoint_model::suite::{WORKER_BUILTIN, WORKER_COMMAND, WORKER_CUDA, WorkerSpec};
use holdpoint_model::{Revision, Side, Suite};
use std::collections::{BTreeMap, BTreeSet};

/// Two sides that can be started.
pub(crate) struct PreparedSides {
    pub sides: Sides,
    pub base: Side,
    pub head: Side,
    /// Everything that the units depend on apart from the plan.
    pub conditions: BTreeMap<String, String>,
    /// The proof that both sides are the same build, where they are.
    pub same_build: Option<SameBuild>,
    /// The files of base's and of head's build.
    pub inventories: [Option<Inventory>; 2],
    /// Keeps the checkouts from being cleared away.
    pub _builds: Option<Builds>,
}

impl PreparedSides {
    /// Sides that need no checkouts.
    pub fn new(sides: Sides, base: Side, head: Side) -> Self {
        let inventories = [None, None];
        Self {
            conditions: conditions(&sides),
            sides,
            base,
            head,
            same_build: None,
            inventories,
            _builds: None,
        }
    }
}

/// The sides as requests and files describe them; no code of theirs has run.
pub(crate) enum PlannedSides {
    /// Suites whose workers may have workloads to list.
    Suites { suites: Box<[Suite; 2]>, sides: Box<[Side; 2]> },
    /// Revisions of the repository around the current folder.
    Revisions { suite: Box<Suite>, revisions: Box<Revisions> },
}

impl PlannedSides {
    /// Reads the suites of the sides.
    pub fn read(sides: &AbSides) -> Result<Self, FlowError> {
        match sides {
            AbSides::Commands(pair) => commands::plan(pair),
            AbSides::Revisions { suite, base, head } => {
                Self::revisions(revision_suite(suite)?, Base::named(base), head)
            }
            AbSides::Workers { suite, base, head } => {
                let suite = suites::load(suite)?;
                let side = |program: &str| with_worker(suite.clone(), program);
                Ok(Self::suites([side(base)?, side(head)?], [labelled(base), labelled(head)]))
            }
            AbSides::Suites { base, head } => {
                let side = |choice: &SuiteChoice| suites::separate(suites::load(choice)?, choice, 0.0);
                Ok(Self::suites([side(base)?, side(head)?], [labelled(&base.name), labelled(&head.name)]))
            }
        }
    }

    /// Looks two revisions up.
    pub fn revisions(suite: Suite, base: Base, head: &Head) -> Result<Self, FlowError> {
        let revisions = Box::new(Revisions::read(&suite, base, head)?);
        Ok(Self::Revisions { suite: Box::new(suite), revisions })
    }

    fn suites(suites: [Suite; 2], sides: [Side; 2]) -> Self {
        Self::Suites { suites: Box::new(suites), sides: Box::new(sides) }
    }

    /// The suite whose settings decide: head's.
    pub fn suite(&self) -> &Suite {
        match self {
            Self::Suites { suites, .. } => &suites[1],
            Self::Revisions { suite, .. } => suite,
        }
    }

    /// The revision under test.
    pub(crate) fn head_revision(&self) -> Option<Revision> {
        match self {
            Self::Suites { sides, .. } => sides[1].revision.clone(),
            Self::Revisions { revisions, .. } => Some(revisions.head_revision()),
        }
    }

    /// Builds the sides and asks them for their workloads: from here on, their code runs.
    pub fn prepare(self, decide: &Decision, watch: &dyn Watch) -> Result<PreparedSides, FlowError> {
        match self {
            Self::Suites { suites, sides } => {
                let ([base, head], [of_base, of_head]) = (*suites, *sides);
                let (base, head) = (suites::list(base)?, suites::list(head)?);
                suites::check_gated(&[&base, &head])?;
                Ok(PreparedSides::new(with_settings(base, head, decide), of_base, of_head))
            }
            Self::Revisions { suite, revisions } => revisions::prepare(&suite, *revisions, decide, watch),
        }
    }
}

/// Both sides, measured as the decision and head's suite say.
fn with_settings(base: ReadySuite, head: ReadySuite, decide: &Decision) -> Sides {
    let gate = &head.gate;
    let (pin, measure_same_code) = (decide.pin(gate), decide.measure_same_code(gate));
    Sides { base, head, pin, measure_same_code }
}

fn labelled(label: &str) -> Side {
    Side { label: label.to_owned(), ..Side::default() }
}

/// A suite with this program in place of every worker but `command`.
fn with_worker(mut suite: Suite, program: &str) -> Result<Suite, FlowError> {
    let named =
        suite.workloads.iter().map(|workload| workload.worker()).filter(|name| *name != WORKER_COMMAND);
    // Those that list their workloads may have none in the suite yet.
    let listing =
        suite.workers.iter().filter(|(_, worker)| worker.all_workloads).map(|(name, _)| name.as_str());
    let names: BTreeSet<String> = named.chain(listing).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(FlowError::Input(format!(
            "suite {:?} has only commands, no worker to replace",
            suite.name
        )));
    }
    // What was typed is relative to the current folder.
    let dir = std::env::current_dir().ok();
    for name in names {
        let declared = suite.workers.get(&name);
        let all_workloads = declared.is_some_and(|worker| worker.all_workloads);
        let single_threaded = declared.map_or(name == WORKER_BUILTIN, |worker| worker.single_threaded);
        let units_per_process = match declared {
            Some(worker) => worker.units_per_process,
            None if name == WORKER_CUDA => suites::UNITS_PER_CUDA_PROCESS,
            None => 1,
        };
        suite.workers.insert(
            name,
            WorkerSpec {
                command: CommandLine::parse(program).into_words(),
                single_threaded,
                units_per_process,
                all_workloads,
                dir: dir.clone(),
            },
        );
    }
    Ok(suite)
}
