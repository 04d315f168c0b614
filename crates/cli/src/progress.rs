//! A line that moves, on a terminal only.

use holdpoint_flow::{Estimate, Progress};
use holdpoint_measure::Event;
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
            Event::Checking(workload) => self.show(&format!("{workload}: checking answers")),
            Event::Preparing(workload) => self.show(&format!("{workload}: warming up")),
            Event::Round { workload, rounds_count, p50_ms } => {
                let time = p50_ms.map(units::time).unwrap_or_default();
                self.show(&format!("{workload}: round {rounds_count}, {time}"));
            }
            Event::Done(_) => self.bar.inc(1),
        }
    }

    fn on_unit(&self, now: &Estimate) {
        self.bar.set_position(now.decided_count as u64);
        self.show(&line(now));
    }
}

/// `sort +2.1 %, +0.4 … +3.8 % · slower 63 %, not slower 0 % · 3 of 20 s`, of the evidence that each answer needs.
fn line(now: &Estimate) -> String {
    let change = units::percent(now.ratio - 1.0);
    let interval = now.interval.map(|[low, high]| units::percent_interval(low - 1.0, high - 1.0));
    let interval = interval.map(|interval| format!(", {interval}")).unwrap_or_default();
    format!(
        "{} {change}{interval} · slower {:.0} %, not slower {:.0} % · {:.0} of {:.0} s",
        now.workload,
        now.slower * 100.0,
        now.not_slower * 100.0,
        now.elapsed_s,
        now.budget_s
    )
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_estimate_the_evidence_and_the_time() {
        let mut now = Estimate {
            workload: "sort",
            ratio: 1.021,
            interval: Some([1.004, 1.038]),
            slower: 0.63,
            not_slower: 0.0,
            decided_count: 3,
            elapsed_s: 3.2,
            budget_s: 140.0,
        };
        assert_eq!(line(&now), "sort +2.1 %, +0.4 … +3.8 % · slower 63 %, not slower 0 % · 3 of 140 s");
        now.interval = None;
        assert_eq!(line(&now), "sort +2.1 % · slower 63 %, not slower 0 % · 3 of 140 s");
    }
}
