//! The report of a routing step beside its tensors. Plain numbers of fixed size, so filling it never allocates.

pub const BINS: usize = 8;

/// Equal-width histogram as NumPy builds it; no values give zeros over 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Histogram {
    pub counts: [u32; BINS],
    pub bin_edges: [f64; BINS + 1],
    pub min: f64,
    pub max: f64,
    pub mean: f64,
}

impl Histogram {
    /// Counts finite values.
    pub fn new(values: &[f64]) -> Self {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for &value in values {
            (low, high, sum) = (low.min(value), high.max(value), sum + value);
        }
        if values.is_empty() {
            (low, high) = (0.0, 1.0);
        }
        let (min, max) = if values.is_empty() { (0.0, 0.0) } else { (low, high) };
        let mean = if values.is_empty() { 0.0 } else { sum / values.len() as f64 };
        if low == high {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let step = (high - low) / BINS as f64;
        let mut bin_edges: [f64; BINS + 1] = std::array::from_fn(|i| low + step * i as f64);
        bin_edges[BINS] = high;
        let mut counts = [0; BINS];
        for &value in values {
            counts[bin(value, low, high, &bin_edges)] += 1;
        }
        Self { counts, bin_edges, min, max, mean }
    }
}

/// NumPy's rule: scale, then correct by the edges themselves; the last bin includes its upper edge.
fn bin(value: f64, low: f64, high: f64, edges: &[f64; BINS + 1]) -> usize {
    let scaled = (value - low) / (high - low) * BINS as f64;
    let mut at = (scaled as usize).min(BINS - 1);
    if value < edges[at] && at > 0 {
        at -= 1;
    }
    if at < BINS - 1 && value >= edges[at + 1] {
        at += 1;
    }
    at
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetUse {
    pub used: f64,
    pub budget: f64,
}

impl BudgetUse {
    /// Used over budget; a budget of zero counts as unused.
    pub fn ratio(&self) -> f64 {
        if self.budget > 0.0 { self.used / self.budget } else { 0.0 }
    }
}

/// The routing report; arrays are by level, L0 to L2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagnostics {
    pub selected_counts: [u64; 3],
    pub total_counts: [u64; 3],
    /// Utilities of level 0.
    pub utility_histogram: Histogram,
    pub budgets: [BudgetUse; 3],
    /// Over all levels.
    pub total: BudgetUse,
    /// Last value of the dual variable; constant, since the built-in ops never update it.
    pub mu_last: f64,
}

impl Diagnostics {
    pub fn empty() -> Self {
        Self {
            selected_counts: [0; 3],
            total_counts: [0; 3],
            utility_histogram: Histogram::new(&[]),
            budgets: [BudgetUse::default(); 3],
            total: BudgetUse::default(),
            mu_last: 0.0,
        }
    }

    /// KernelChoice over existing tiles of a level; no tiles give 0.
    pub(crate) fn selected_ratio(&self, level: usize) -> f64 {
        match self.total_counts[level] {
            0 => 0.0,
            total => self.selected_counts[level] as f64 / total as f64,
        }
    }

    /// The numbers in a fixed order, for comparing two reports. Without the histogram's counts: shared code makes them of the
    /// utilities, and one on the edge of two bins falls into either by a rounding.
    pub fn numbers(&self) -> Vec<f64> {
        let histogram = &self.utility_histogram;
        let mut all = vec![self.mu_last, self.total.used, self.total.budget, self.total.ratio()];
        all.extend([histogram.min, histogram.max, histogram.mean]);
        all.extend(histogram.bin_edges);
        for level in 0..3 {
            let budget = &self.budgets[level];
            all.extend([self.selected_counts[level] as f64, self.total_counts[level] as f64]);
            all.extend([self.selected_ratio(level), budget.used, budget.budget, budget.ratio()]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bin_includes_its_upper_edge() {
        let h = Histogram::new(&[0.0, 1.0, 2.0, 7.9, 8.0]);
        assert_eq!(h.counts, [1, 1, 1, 0, 0, 0, 0, 2]);
        assert_eq!((h.min, h.max, h.bin_edges[8]), (0.0, 8.0, 8.0));
    }

    #[test]
    fn a_single_value_sits_in_the_middle_and_no_values_span_zero_to_one() {
        let one = Histogram::new(&[0.5]);
        assert_eq!((one.bin_edges[0], one.bin_edges[8], one.counts[4]), (0.0, 1.0, 1));
        let none = Histogram::new(&[]);
        assert_eq!((none.counts, none.bin_edges[8], none.mean), ([0; 8], 1.0, 0.0));
    }
}
