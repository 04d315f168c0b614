//! A line that moves, on a terminal only.

use crate::output::Output;
use holdpoint_measure::Event;
use holdpoint_model::ab::Ended;
use holdpoint_model::{AbReport, AbWorkload};
use holdpoint_render::{Style, for_terminal, units};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far a run has come.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For a run of so many workloads; hidden where nobody watches.
    #[must_use]
    pub fn new(workloads_count: usize, output: &Output) -> Self {
        Self { bar: bar(workloads_count, output) }
    }

    /// Takes note of an event.
    pub fn on(&self, event: Event) {
        match event {
            Event::Preparing(workload) => self.show(&format!("{workload}: warming up")),
            Event::Round { workload, rounds_count, p50_ms } => {
                let time = p50_ms.map(units::time).unwrap_or_default();
                self.show(&format!("{workload}: round {rounds_count}, {time}"));
            }
            Event::Done(_) => self.bar.inc(1),
        }
    }

    fn show(&self, text: &str) {
        self.bar.set_message(for_terminal(text, Style::default()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far a comparison of two sides has come.
pub struct AbProgress {
    bar: ProgressBar,
}

impl AbProgress {
    /// For a comparison; hidden where nobody watches.
    #[must_use]
    pub fn new(report: &AbReport, output: &Output) -> Self {
        Self { bar: bar(report.workloads.len(), output) }
    }

    /// Takes note of one more unit.
    pub fn on(&self, report: &AbReport) {
        let open = |w: &&AbWorkload| w.ended == Ended::Interrupted;
        let open_count = report.workloads.values().filter(open).count();
        self.bar.set_position((report.workloads.len() - open_count) as u64);
        let units = report.workloads.values().map(|w| w.units.len()).max().unwrap_or(0);
        self.bar.set_message(format!("pair {units}, {open_count} undecided"));
    }
}

impl Drop for AbProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(count: usize, output: &Output) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !output.quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(count as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed:>4}  {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
