//! Charts: documents as plots. Drawing is left to `svg`, words and pages to `html`.

mod commits;
mod distribution;
mod evidence;
mod history;
mod overview;
mod rounds;
mod visible;

pub(crate) use commits::commits;
pub(crate) use distribution::{Samples, distribution};
pub(crate) use evidence::evidence;
pub(crate) use history::{Levels, history};
pub(crate) use overview::{RowMark, changes, dots, whole_percent};
pub(crate) use rounds::{pair_points, rounds, run_points, value_points};
pub(crate) use visible::visible;

/// Size of a chart, of which a phone shows one beside nothing and a wide screen several beside each other.
const SIZE: [f64; 2] = [440.0, 200.0];

/// A chart, and what stands below it.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) plot: crate::svg::Plot,
    pub(crate) caption: String,
}

/// Every so many of a list, so that at most `max` are left; and how many are passed over each time.
fn thin_out<T>(items: Vec<T>, max: usize) -> (Vec<T>, usize) {
    let step = items.len().div_ceil(max.max(1)).max(1);
    (items.into_iter().step_by(step).collect(), step)
}

/// ` (every 4th of 400)`, where not all are shown.
fn describe_step(step: usize, count: usize) -> String {
    match step {
        1 => String::new(),
        2 => format!(" (every other of {})", crate::units::count(count as u64)),
        3 => format!(" (every 3rd of {})", crate::units::count(count as u64)),
        n => format!(" (every {n}th of {})", crate::units::count(count as u64)),
    }
}

/// Ticks of an axis of counts from 1.
fn count_ticks(count: usize) -> Vec<(f64, String)> {
    let ticks = crate::svg::nice_ticks([1.0, count as f64], 5).into_iter();
    let whole: Vec<(f64, String)> =
        ticks.filter(|(at, _)| at.fract() == 0.0).map(|(at, _)| (at, format!("{at:.0}"))).collect();
    if whole.is_empty() { vec![(1.0, "1".to_owned())] } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_thinned_out_keeps_its_order_and_its_limit() {
        let (kept, step) = thin_out((0..400).collect(), 60);
        assert_eq!((kept.len(), step, kept[1]), (58, 7, 7));
        assert_eq!(thin_out(vec![1, 2], 60), (vec![1, 2], 1));
        assert_eq!(thin_out(Vec::<u8>::new(), 0), (vec![], 1));
        assert_eq!(describe_step(7, 400), " (every 7th of 400)");
        assert_eq!(describe_step(1, 9), "");
    }
}
