//! Names beside points, none over another.

use super::{Area, FONT_SIZE, text_width};

/// Distance of a label from its point, and of one tried place from the next.
const GAP: f64 = 8.0;
const STEP: f64 = FONT_SIZE + 3.0;
/// Places tried above and below a point before a label is put where it may overlap.
const STEPS_MAX: i32 = 24;

/// The parts of a picture that are taken, and the area for labels.
pub(super) struct Labels {
    within: Area,
    taken: Vec<Area>,
}

/// Where a label goes, and whether it needs a line to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub area: Area,
    pub side: Side,
    pub is_far: bool,
}

/// On which side of its point a label is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    Right,
    Left,
    Over,
}

impl Labels {
    pub(super) fn new(within: Area) -> Self {
        Self { within, taken: Vec::new() }
    }

    /// Nothing may go here.
    pub(super) fn take(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// A free place at the right end, just above a height, just below it, or as near as can be.
    pub(super) fn place_at_end(&mut self, y: f64, name: &str) -> Area {
        let width = text_width(name);
        let at = |step: i32| Area {
            x: self.within.right() - width - 4.0,
            y: y - STEP - 2.0 + f64::from(step) * (STEP + 4.0) / 2.0,
            width,
            height: STEP,
        };
        // One above, one below, then by halves.
        let steps = [0, 2].into_iter().chain((1..STEPS_MAX).flat_map(|step| [-step, 2 + step]));
        let place = steps.map(at).find(|area| self.is_free(area)).unwrap_or(at(0));
        self.taken.push(place);
        place
    }

    /// Whether something may go here.
    fn is_free(&self, area: &Area) -> bool {
        self.within.holds(area) && !self.taken.iter().any(|taken| taken.overlaps(area))
    }

    /// The nearest free place for a name: beside its point, then a little higher or lower, further and further.
    pub(super) fn place(&mut self, [x, y]: [f64; 2], name: &str) -> Place {
        let width = text_width(name);
        let beside = |side: Side| match side {
            Side::Right => x + GAP,
            Side::Left => x - GAP - width,
            Side::Over => {
                (x - width / 2.0).clamp(self.within.x, (self.within.right() - width).max(self.within.x))
            }
        };
        let at = |side: Side, step: i32| Area {
            x: beside(side),
            y: y - STEP / 2.0 + f64::from(step) * STEP,
            width,
            height: STEP,
        };
        let steps = (0..=STEPS_MAX).flat_map(|step| [step, -step]);
        let sides = [Side::Right, Side::Left, Side::Over];
        let places = steps.flat_map(|step| sides.map(|side| (at(side, step), side, step.abs() > 1)));
        let free = places.into_iter().find(|(area, ..)| self.is_free(area));
        let (area, side, is_far) = free.unwrap_or((at(Side::Right, 0), Side::Right, false));
        self.taken.push(area);
        Place { area, side, is_far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_in_one_place_do_not_overlap_and_stay_inside() {
        let within = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        let mut labels = Labels::new(within);
        let places: Vec<Place> =
            (0..20).map(|i| labels.place([300.0, 200.0], &format!("workload.{i}"))).collect();
        for (i, a) in places.iter().enumerate() {
            assert!(within.holds(&a.area), "{a:?}");
            assert!(places[i + 1..].iter().all(|b| !a.area.overlaps(&b.area)), "{a:?}");
        }
        assert!(!places[0].is_far && places[19].is_far);
    }
}
