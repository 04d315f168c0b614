//! Whoever watches a command while it runs.

use holdpoint_measure::Event;

/// Hears notes and progress, and may call a command off. Everything but the documents of a command goes here.
pub trait Watch: Sync {
    /// Something the user should know; not part of the result.
    fn note(&self, _text: &str) {}
    /// How far things have come, in a line of its own.
    fn progress(&self, _text: &str) {}
    /// Measuring begins.
    fn start(&self, _workloads_count: usize) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }
    /// From now on an interruption only ends the workloads' processes: the command notices it, keeps what it has and ends by itself.
    fn keep_on_interrupt(&self) {}
    /// Whether the command was called off.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// How far a measurement has come.
pub trait Progress {
    /// After each step of a run.
    fn on_event(&self, _event: Event) {}
    /// After each unit of two sides.
    fn on_unit(&self, _estimate: &Estimate) {}
}

/// The state of a workload after a unit of it.
pub struct Estimate<'a> {
    pub workload: &'a str,
    /// The median of head's time over base's, and its interval.
    pub ratio: f64,
    pub interval: Option<[f64; 2]>,
    /// Shares of the evidence that each answer needs.
    pub slower: f64,
    pub not_slower: f64,
    /// Workloads that need no more units.
    pub decided_count: usize,
    pub elapsed_s: f64,
    /// For all workloads.
    pub budget_s: f64,
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}
impl Progress for Unwatched {}
