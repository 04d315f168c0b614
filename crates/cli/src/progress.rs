//! A line that moves on a terminal; elsewhere a line now and then, so that a log shows that something is under way.

use crate::streams::write_stderr;
use holdpoint_flow::{Estimate, Progress};
use holdpoint_measure::Event;
use holdpoint_render::{Style, for_terminal, units};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How long nothing is said where stderr is no terminal; then twice as long after every line.
const FIRST_LINE_AFTER: Duration = Duration::from_secs(1);

/// Shows how far a measurement has come.
pub struct Bar {
    bar: ProgressBar,
    /// Absent on a terminal, and where nothing is to be said.
    log: Option<Cell<Pause>>,
}

/// When the last line was written, and how long none follows it.
#[derive(Clone, Copy)]
struct Pause {
    since: Instant,
    lasts: Duration,
}

impl Pause {
    fn new(since: Instant) -> Self {
        Self { since, lasts: FIRST_LINE_AFTER }
    }

    /// The next pause, if this one is over.
    fn next(self, now: Instant) -> Option<Self> {
        (now.duration_since(self.since) >= self.lasts).then(|| Self { since: now, lasts: self.lasts * 2 })
    }
}

impl Bar {
    /// Hidden where nobody watches.
    pub fn new(workloads_count: usize, is_quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal && !is_quiet {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let log = (!is_terminal && !is_quiet).then(|| Cell::new(Pause::new(Instant::now())));
        let bar = ProgressBar::with_draw_target(Some(workloads_count as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed:>4}  {wide_msg}") {
            bar.set_style(style);
        }
        Self { bar, log }
    }

    fn show(&self, text: &str) {
        self.say(text, text);
    }

    /// Shows `message` on a terminal, and writes `text` to a log.
    fn say(&self, message: &str, text: &str) {
        self.bar.set_message(for_terminal(message, Style::default()));
        let Some(log) = &self.log else { return };
        if let Some(next) = log.get().next(Instant::now()) {
            log.set(next);
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            write_stderr(&format!("{done} of {all}: {text}"));
        }
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
        let (estimate, budget_s) = (estimate(now), now.budget_s);
        // First what a narrow terminal must not cut off; the seconds that have passed are beside the bar.
        let message = format!("of at most {budget_s:.0}s  {estimate}");
        self.say(&message, &format!("{estimate} · {:.0} of at most {budget_s:.0} s", now.elapsed_s));
    }
}

/// `sort +2.1 %, +0.4 … +3.8 % · slower 63 %, not slower 0 %`, of the evidence that each answer needs.
fn estimate(now: &Estimate) -> String {
    let change = units::percent(now.ratio - 1.0);
    let interval = now.interval.map(|[low, high]| units::percent_interval(low - 1.0, high - 1.0));
    let interval = interval.map(|interval| format!(", {interval}")).unwrap_or_default();
    format!(
        "{} {change}{interval} · slower {:.0} %, not slower {:.0} %",
        now.workload,
        now.slower * 100.0,
        now.not_slower * 100.0
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
    fn a_log_has_a_line_after_a_second_and_then_ever_fewer() {
        let start = Instant::now();
        let (mut pause, mut said) = (Pause::new(start), Vec::new());
        for tenths in 0..400 {
            if let Some(next) = pause.next(start + Duration::from_millis(100 * tenths)) {
                (pause, _) = (next, said.push(tenths));
            }
        }
        assert_eq!(said, [10, 30, 70, 150, 310]);
    }

    #[test]
    fn an_estimate_has_its_evidence() {
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
        assert_eq!(estimate(&now), "sort +2.1 %, +0.4 … +3.8 % · slower 63 %, not slower 0 %");
        now.interval = None;
        assert_eq!(estimate(&now), "sort +2.1 % · slower 63 %, not slower 0 %");
    }
}
