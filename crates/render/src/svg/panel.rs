//! A field with logarithmic axes.

use super::{Area, Canvas};

/// A range of values along one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all these values, with room at either end, as factors; at least two decades.
    pub(super) fn over(values: &[f64], below: f64, above: f64) -> Self {
        let usable = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
        let low = usable().fold(f64::INFINITY, f64::min);
        let high = usable().fold(0.0, f64::max);
        let (low, high) = if low <= high { (low.log10(), high.log10()) } else { (0.0, 1.0) };
        let (low, high) = (low - below.log10(), high + above.log10());
        let short = (2.0 - (high - low)).max(0.0) / 2.0;
        Self { low: low - short, high: high + short }
    }

    /// Where a value lies, 0 to 1.
    pub(super) fn share(self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    pub(super) fn ends(self) -> [f64; 2] {
        [self.low, self.high].map(|end| 10_f64.powf(end))
    }

    fn decades(self) -> impl Iterator<Item = i32> {
        self.low.ceil() as i32..=self.high.floor() as i32
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    pub area: Area,
    pub x: Option<Axis>,
    pub y: Axis,
}

impl Panel {
    /// The place of a value; without an axis along the bottom the x is a share of the width.
    pub(super) fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let across = self.x.map_or(x, |axis| axis.share(x));
        [self.area.x + across * self.area.width, self.area.bottom() - self.y.share(y) * self.area.height]
    }

    /// Grid, numbers and frame.
    pub(super) fn draw(&self, canvas: &mut Canvas, titles: [&str; 2]) {
        let Area { x, y, .. } = self.area;
        let (right, bottom) = (self.area.right(), self.area.bottom());
        for decade in self.y.decades() {
            let [_, at] = self.at(0.5, 10_f64.powi(decade));
            canvas.line("grid", [x, at], [right, at]);
            canvas.text("tick end", [x - 5.0, at + 4.0], &si(decade + 9));
        }
        for decade in self.x.iter().flat_map(|axis| axis.decades()) {
            let [at, _] = self.at(10_f64.powi(decade), self.y.ends()[0]);
            canvas.line("grid", [at, y], [at, bottom]);
            canvas.text("tick middle", [at, bottom + 15.0], &plain(decade));
        }
        for (from, to) in [([x, y], [x, bottom]), ([x, bottom], [right, bottom])] {
            canvas.line("axis", from, to);
        }
        canvas.text("title", [x, y - 8.0], titles[0]);
        canvas.text("title middle", [x + self.area.width / 2.0, bottom + 33.0], titles[1]);
    }
}

/// A power of ten with its prefix: `100 G`.
fn si(decade: i32) -> String {
    const PREFIXES: [&str; 7] = ["", " k", " M", " G", " T", " P", " E"];
    match usize::try_from(decade.div_euclid(3)).ok().and_then(|i| PREFIXES.get(i)) {
        Some(prefix) => format!("{}{prefix}", 10_i32.pow(decade.rem_euclid(3) as u32)),
        None => format!("1e{decade}"),
    }
}

/// A power of ten.
fn plain(decade: i32) -> String {
    match decade {
        -3..0 => format!("{:.*}", decade.unsigned_abs() as usize, 10_f64.powi(decade)),
        0..4 => 10_i32.pow(decade as u32).to_string(),
        _ => format!("1e{decade}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_their_logarithms_do() {
        let area = Area { x: 100.0, y: 0.0, width: 400.0, height: 200.0 };
        let panel = Panel {
            area,
            x: Some(Axis::over(&[0.1, 1000.0], 1.0, 1.0)),
            y: Axis::over(&[1.0, 100.0], 1.0, 1.0),
        };
        assert_eq!(panel.at(0.1, 1.0), [100.0, 200.0]);
        assert_eq!(panel.at(10.0, 10.0), [300.0, 100.0]);
        assert_eq!(panel.at(1000.0, 100.0), [500.0, 0.0]);
        // Nothing to show, and nothing but one value: still an axis.
        for values in [&[][..], &[5.0], &[f64::NAN, -1.0, 0.0]] {
            let [low, high] = Axis::over(values, 1.0, 1.0).ends();
            assert!(low > 0.0 && high / low > 99.0, "{values:?}: {low} {high}");
        }
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([9, 11, 12, 15].map(si), ["1 G", "100 G", "1 T", "1 P"]);
        assert_eq!([-2, -1, 0, 3, 5].map(plain), ["0.01", "0.1", "1", "1000", "1e5"]);
    }
}
