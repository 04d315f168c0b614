//! Strips: one picture per row of a list, all on the same scale and as wide as the page lets them be.
//!
//! Their places are percentages, so text keeps its size on a phone and on a wide screen.

use super::{Area, Canvas, Scale, escaped};

const HEIGHT: f64 = 22.0;
const MIDDLE: f64 = HEIGHT / 2.0;
/// Share of the width, in percent, that stays free at either end for the marks and numbers there.
const EDGE: f64 = 4.0;
/// Least distance between two numbers of the axis, in percent.
const APART: f64 = 11.0;

/// One row's marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark<'a> {
    /// Class of the dot: a verdict, or another word of the style.
    pub(crate) class: &'a str,
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<[f64; 2]>,
    /// Tolerated values.
    pub(crate) band: Option<[f64; 2]>,
    /// Beyond this it is too much.
    pub(crate) limit: Option<f64>,
    /// Other values to compare with, as small ticks.
    pub(crate) others: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Strips {
    scale: Scale,
}

impl Strips {
    pub(crate) fn new(scale: Scale) -> Self {
        Self { scale }
    }

    fn at(self, value: f64) -> f64 {
        EDGE + self.scale.share(value) * (100.0 - 2.0 * EDGE)
    }

    /// The strip of a row, with its name for those who cannot see it.
    pub(crate) fn row(self, mark: &Mark<'_>, name: &str) -> String {
        let mut canvas = Canvas { unit: "%", ..Canvas::default() };
        let finite = |ends: [f64; 2]| Some(ends).filter(|ends| ends.iter().all(|end| end.is_finite()));
        if let Some([low, high]) = mark.band.and_then(finite) {
            let (x, right) = (self.at(low), self.at(high));
            canvas.rect("band", Area { x, y: 0.0, width: right - x, height: HEIGHT });
        }
        if self.scale.holds(0.0) {
            canvas.line("a", [self.at(0.0), 0.0], [self.at(0.0), HEIGHT]);
        }
        if let Some(limit) = mark.limit.filter(|limit| limit.is_finite()) {
            canvas.line("limit", [self.at(limit), 0.0], [self.at(limit), HEIGHT]);
        }
        for other in mark.others.iter().filter(|other| other.is_finite()) {
            canvas.line("o", [self.at(*other), MIDDLE + 3.0], [self.at(*other), HEIGHT]);
        }
        if let Some([low, high]) = mark.interval.and_then(finite) {
            canvas.line("ci", [self.at(low), MIDDLE], [self.at(high), MIDDLE]);
            for end in [low, high].map(|end| self.at(end)) {
                canvas.line("ci", [end, MIDDLE - 4.0], [end, MIDDLE + 4.0]);
            }
        }
        if let Some(value) = mark.value.filter(|value| value.is_finite()) {
            canvas.circle(mark.class, [self.at(value), MIDDLE], 4.5, "");
        }
        let (name, body) = (escaped(name), canvas.body);
        format!("<svg class=\"hp strip\" role=\"img\" aria-label=\"{name}\">\n{body}</svg>")
    }

    /// The numbers below all rows: of these values those that have room, the first ones first.
    pub(crate) fn axis(self, values: &[f64], format: impl Fn(f64) -> String) -> String {
        let mut canvas = Canvas { unit: "%", ..Canvas::default() };
        let mut taken: Vec<f64> = Vec::new();
        for value in values.iter().copied().filter(|value| self.scale.holds(*value)) {
            let at = self.at(value);
            if taken.iter().all(|other| (other - at).abs() >= APART) {
                taken.push(at);
                canvas.line("a", [at, 0.0], [at, 4.0]);
                canvas.text("m", [at, 16.0], &format(value));
            }
        }
        format!("<svg class=\"hp strip\" aria-hidden=\"true\">\n{}</svg>", canvas.body)
    }
}
