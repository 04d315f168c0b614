//! A line that moves, on a terminal only.

use holdpoint_flow::Progress;
use holdpoint_measure::Event;
use holdpoint_model::ab::Ended;
use holdpoint_model::{AbReport, AbWorkload};
use holdpoint_render::{Style, for_terminal, units};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Shows how far a measurement has come.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Hidden where nobody watches.
    pub fn new(workloads_count: usize, is_quiet: bool) -> Self {
        let target = if std::io::stderr().is_terminal() && !is_quiet {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(workloads_count as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed:>4}  {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    fn show(&self, text: &str) {
        self.bar.set_message(for_terminal(text, Style::default()));
    }
}

impl Progress for Bar {
    fn on_event(&self, event: Event) {
        match event {
            Event::Preparing(workload) => self.show(&format!("{workload}: warming up")),
            Event::Round { workload, rounds_count, p50_ms } => {
                let time = p50_ms.map(units::time).unwrap_or_default();
                self.show(&format!("{workload}: round {rounds_count}, {time}"));
            }
            Event::Done(_) => self.bar.inc(1),
        }
    }

    fn on_unit(&self, report: &AbReport) {
        let is_open = |w: &&AbWorkload| w.ended == Ended::Interrupted;
        let open_count = report.workloads.values().filter(is_open).count();
        self.bar.set_position((report.workloads.len() - open_count) as u64);
        let units = report.workloads.values().map(|w| w.units.len()).max().unwrap_or(0);
        self.show(&format!("pair {units}, {open_count} undecided"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
