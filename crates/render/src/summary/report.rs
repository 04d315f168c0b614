//! The sentence about a run.

use crate::text::plural;
use crate::{remedy, units};
use holdpoint_model::report::Stopped;
use holdpoint_model::{Measured, Outcome, Report};

/// How the run came out, after its status word.
pub(crate) fn describe_run(r: &Report) -> String {
    let total = plural(r.benchmarks.len(), "workload");
    let took =
        if r.config.elapsed_s > 0.0 { format!(" in {:.1} s", r.config.elapsed_s) } else { String::new() };
    let count = |wanted: fn(&Outcome) -> bool| r.benchmarks.values().filter(|m| wanted(&m.outcome)).count();
    let measured = count(|outcome| matches!(outcome, Outcome::Measured(_)));
    let parts = [
        (count(|outcome| matches!(outcome, Outcome::Failed(_))), "failed"),
        (count(|outcome| matches!(outcome, Outcome::Skipped { .. })), "skipped"),
    ];
    if r.benchmarks.is_empty() {
        return r
            .reason
            .as_deref()
            .map_or_else(|| "there was no workload to measure".to_owned(), remedy::with);
    }
    let mut sentence = if measured == r.benchmarks.len() {
        format!("{total} measured{took}")
    } else {
        format!("{} of {total} measured{took}", units::count(measured as u64))
    };
    for (n, word) in parts.into_iter().filter(|(n, _)| *n > 0) {
        sentence.push_str(&format!(", {} {word}", units::count(n as u64)));
    }
    match &r.reason {
        Some(reason) => format!("{sentence}: {}", remedy::with(reason)),
        None => sentence,
    }
}

pub(crate) fn measured(r: &Report) -> impl Iterator<Item = (&String, &Measured)> {
    r.benchmarks.iter().filter_map(|(name, m)| match &m.outcome {
        Outcome::Measured(measured) => Some((name, measured.as_ref())),
        _ => None,
    })
}

pub(crate) fn samples_count(m: &Measured) -> u64 {
    m.samples.rounds.iter().map(|round| round.elapsed_ns.len() as u64).sum()
}

pub(crate) fn stopped(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::TargetWidth => "target width reached",
        Stopped::TimeBudget => "time budget spent",
        Stopped::RoundsMax => "rounds limit reached",
        Stopped::Iterations => "fixed iterations done",
    }
}
