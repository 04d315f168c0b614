//! Noise as it was recorded: `recorded.txt` says how. Nothing had changed, so whoever is called slower is called wrongly.

use holdpoint_stats::random::Random;

use crate::rivals::{Blocks, SAMPLES_PER_SIDE};

/// A suite's record, workload by workload.
pub struct Record {
    pub workloads: Vec<Workload>,
}

/// What was recorded of one workload.
#[derive(Default)]
pub struct Workload {
    pub name: String,
    /// ln(head time / base time) of each unit, in order.
    pub units: Vec<f64>,
    /// The same of an earlier, shorter record.
    pub again: Vec<f64>,
    /// Stretches of times, each in order.
    stretches: Vec<Vec<f64>>,
}

impl Record {
    pub fn read() -> Self {
        let mut workloads: Vec<Workload> = Vec::new();
        let lines = include_str!("recorded.txt").lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let mut words = line.split(' ');
            let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
            let values: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
            let index = workloads.iter().position(|workload| workload.name == name).unwrap_or_else(|| {
                workloads.push(Workload { name: name.into(), ..Workload::default() });
                workloads.len() - 1
            });
            let in_millionths = |values: &[f64]| values.iter().map(|value| value / 1e6).collect();
            match kind {
                "units" => workloads[index].units = in_millionths(&values),
                "again" => workloads[index].again = in_millionths(&values),
                _ => workloads[index].stretches.push(values),
            }
        }
        Self { workloads }
    }
}

impl Workload {
    /// Units from a random place on, round and round, each with its labels swapped or not by a coin. Unchanged code is
    /// symmetric by design; the coin makes the record so too, and leaves sizes, their order and their company alone:
    /// with the same seed all workloads of a suite start at the same unit and share its coin, as they shared its processes.
    pub fn draw(&self, seed: u64, change: f64) -> impl Iterator<Item = f64> {
        let mut random = Random::new(seed);
        let start = random.below(self.units.len());
        self.units.iter().cycle().skip(start).map(move |x| {
            let is_swapped = random.bits() & 1 == 1;
            change + if is_swapped { -x } else { *x }
        })
    }

    /// A block of base, and the samples after it as head's, `change` being the true one.
    pub fn blocks(&self, random: &mut Random, change: f64) -> Blocks {
        let stretch = &self.stretches[random.below(self.stretches.len())];
        let start = random.below(stretch.len() + 1 - 2 * SAMPLES_PER_SIDE);
        let (base, head) = stretch[start..start + 2 * SAMPLES_PER_SIDE].split_at(SAMPLES_PER_SIDE);
        Blocks::new(base.to_vec(), head.iter().map(|time| time * change.exp()).collect())
    }
}
