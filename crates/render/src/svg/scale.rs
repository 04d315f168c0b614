//! Linear and bent scales, and the round numbers along them.

/// Share of its range that an axis leaves free at either end.
const ROOM: f64 = 0.06;

/// Values from one end of an axis to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// Linear up to about this value and logarithmic beyond it, on both sides of zero.
    bend: Option<f64>,
}

impl Scale {
    /// From one value to another, exactly.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        let (low, high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, bend: None }
    }

    /// Over all values, with some room, and at least `span` wide.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, span: f64) -> Self {
        let ends = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Self::new(0.0, 1.0);
        }
        let short = (span - (high - low)).max(0.0) / 2.0;
        let (low, high) = (low - short, high + short);
        let room = (high - low) * ROOM;
        Self::new(low - room, high + room)
    }

    /// The same values, logarithmic beyond `bend`: changes of 1 % and of 300 % are both to be seen.
    pub(crate) fn bent(self, bend: f64) -> Self {
        Self { bend: Some(bend).filter(|bend| *bend > 0.0), ..self }
    }

    /// Where a value lies, 0 to 1; what lies outside is put at the end.
    pub(crate) fn share(self, value: f64) -> f64 {
        let at = |value: f64| self.bend.map_or(value, |bend| (value / bend).asinh());
        let share = (at(value) - at(self.low)) / (at(self.high) - at(self.low));
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    pub(crate) fn ends(self) -> [f64; 2] {
        [self.low, self.high]
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Round numbers along a linear axis, about so many, each as short as they can be told apart.
pub(crate) fn nice_ticks([low, high]: [f64; 2], count: usize) -> Vec<(f64, String)> {
    let rough = (high - low) / count.max(1) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    let decade = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * decade >= rough).unwrap_or(10.0) * decade;
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let first = (low / step).ceil();
    let ticks = (0..=count * 2).map(|i| (first + i as f64) * step).take_while(|at| *at <= high + step * 1e-9);
    ticks
        .map(|at| {
            let text = format!("{at:.decimals$}");
            // Minus zero is zero.
            let text = if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
                text.trim_start_matches('-').to_owned()
            } else {
                text
            };
            (at, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let texts =
            |ends, count| nice_ticks(ends, count).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts([0.0, 1.0], 4), ["0.0", "0.5", "1.0"]);
        assert_eq!(texts([11.93, 12.61], 4), ["12.0", "12.2", "12.4", "12.6"]);
        assert_eq!(texts([-30.0, 170.0], 4), ["0", "50", "100", "150"]);
        assert!(texts([1.0, 1.0], 4).is_empty() && texts([f64::NAN, 1.0], 4).is_empty());
    }

    #[test]
    fn a_scale_holds_its_values_and_a_bent_one_keeps_small_ones_apart() {
        let scale = Scale::over([1.0, 3.0], 0.0);
        assert!(scale.share(1.0) > 0.0 && scale.share(3.0) < 1.0 && scale.share(2.0) == 0.5);
        assert_eq!((scale.share(-9.0), scale.share(9.0), scale.share(f64::NAN)), (0.0, 1.0, 0.0));
        let bent = Scale::new(-0.02, 3.0).bent(0.02);
        assert!(bent.share(0.02) - bent.share(0.0) > 0.1, "{}", bent.share(0.02));
        for values in [&[][..], &[5.0], &[f64::NAN]] {
            let [low, high] = Scale::over(values.iter().copied(), 0.0).ends();
            assert!(low < high, "{values:?}: {low} {high}");
        }
    }
}
