//! Slower code against stored baselines, on noise as it was recorded, judged by the gate's own rules.

use super::simulate::{Judged, judge_gate, one_run};
use holdpoint_gate::record::record;
use holdpoint_model::Current;
use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::ALARM_RATE;

/// The machine while runs were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Nothing else running.
    Quiet,
    /// Two busy loops and builds on two cores.
    Loaded,
    /// Half of the runs so, half so.
    Mixed,
}

impl State {
    pub const ALL: [Self; 3] = [Self::Quiet, Self::Loaded, Self::Mixed];

    /// Share of the CPUs that others use.
    fn others_cpu(self) -> f64 {
        if self == Self::Quiet { 0.02 } else { 0.9 }
    }
}

/// Logarithms of the times of runs of unchanged code, about their median: by workload and stretch.
pub struct Record {
    quiet: Vec<Vec<Vec<f64>>>,
    loaded: Vec<Vec<Vec<f64>>>,
}

/// Samples that stand for one run of the loaded record, which holds samples in place of runs.
const SAMPLES: usize = 20;
/// Runs of the baseline.
const RUNS: usize = 10;
/// A loaded machine slows the same code down by up to this, as a logarithm.
const LOADED_MAX: f64 = 0.5;

impl Record {
    pub fn read() -> Self {
        let quiet = include_str!("quiet.txt").lines().filter(|line| !line.starts_with('#'));
        let quiet = quiet.map(|line| vec![numbers(line.split(' ').skip(1))]).collect();
        let mut loaded: Vec<(&str, Vec<Vec<f64>>)> = Vec::new();
        for line in include_str!("../../../stats/benches/rules/recorded.txt").lines() {
            let mut words = line.split(' ');
            let (Some("samples"), Some(name)) = (words.next(), words.next()) else { continue };
            let runs = numbers(words).chunks(SAMPLES).filter_map(holdpoint_stats::median).collect();
            match loaded.iter_mut().find(|(known, _)| *known == name) {
                Some((_, stretches)) => stretches.push(runs),
                None => loaded.push((name, vec![runs])),
            }
        }
        let loaded = loaded.into_iter().map(|(_, stretches)| stretches).collect();
        Self { quiet: centred(quiet), loaded: centred(loaded) }
    }

    /// So many runs in a row, from a random place of a random workload.
    fn draw(&self, state: State, workload: usize, random: &mut Random, count: usize) -> Vec<f64> {
        let stretches = &if state == State::Quiet { &self.quiet } else { &self.loaded }[workload];
        let stretch = &stretches[random.below(stretches.len())];
        let start = random.below(stretch.len() + 1 - count);
        stretch[start..start + count].to_vec()
    }

    /// A baseline and the three runs of a gate in another session, of code that is slower by `slowdown`. The record's noise is
    /// `scale` times as large as it was recorded: quieter machines have the same kind of noise.
    pub fn judge(&self, [before, now]: [State; 2], slowdown: f64, scale: f64, random: &mut Random) -> Judged {
        let workload = random.below(self.quiet.len());
        let load = LOADED_MAX * random.uniform();
        let mut runs = |state: State, count: usize, level: f64| -> Vec<Current> {
            let level = level + if state == State::Loaded { load } else { 0.0 };
            let noise = self.draw(state, workload, random, count);
            let run = |noise: f64| {
                let others_cpu = Some(state.others_cpu());
                Current { others_cpu, ..one_run(std::iter::once((level + scale * noise).exp())) }
            };
            noise.into_iter().map(run).collect()
        };
        let baseline = match before {
            State::Mixed => [runs(State::Quiet, RUNS / 2, 0.0), runs(State::Loaded, RUNS / 2, 0.0)].concat(),
            state => runs(state, RUNS, 0.0),
        };
        let later = runs(now, 3, slowdown.ln_1p());
        judge_gate(&record(&baseline, ALARM_RATE).expect("runs of one suite"), &later)
    }
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Vec<f64> {
    words.filter_map(|word| word.parse().ok()).collect()
}

fn centred(mut workloads: Vec<Vec<Vec<f64>>>) -> Vec<Vec<Vec<f64>>> {
    for stretches in &mut workloads {
        let middle = holdpoint_stats::median(&stretches.concat()).unwrap_or(1.0);
        stretches.iter_mut().flatten().for_each(|time| *time = (*time / middle).ln());
    }
    workloads
}

/// Slowdowns of 5 % to 600 %, small ones as often as large ones.
pub fn slowdown(random: &mut Random) -> f64 {
    0.05 * 120.0_f64.powf(random.uniform())
}
