//! Whoever watches a command while it runs.

use holdpoint_measure::Event;
use holdpoint_model::AbReport;

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
    fn on_unit(&self, _report: &AbReport) {}
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}
impl Progress for Unwatched {}
