//! Names beside points, none over another.

use super::{Area, FONT_SIZE, text_width};

/// Distance of a label from its point, and of one tried place from the next.
const GAP: f64 = 8.0;
const STEP: f64 = FONT_SIZE + 3.0;
/// Places tried above and below a point before a label is put where it may overlap.
const STEPS_MAX: i32 = 24;

/// What is on a picture already, and where more may go.
pub(super) struct Labels {
    within: Area,
    taken: Vec<Area>,
}

/// Where a label goes: the left end of its baseline; and whether it needs a line to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub area: Area,
    pub is_far: bool,
}

impl Labels {
    pub(super) fn new(within: Area) -> Self {
        Self { within, taken: Vec::new() }
    }

    /// Nothing may go here.
    pub(super) fn take(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Whether something may go here.
    pub(super) fn is_free(&self, area: &Area) -> bool {
        self.within.holds(area) && !self.taken.iter().any(|taken| taken.overlaps(area))
    }

    /// The nearest free place for a name: beside its point, then a little higher or lower, further and further.
    pub(super) fn place(&mut self, [x, y]: [f64; 2], name: &str) -> Place {
        let width = text_width(name);
        let at = |left: bool, step: i32| Area {
            x: if left { x - GAP - width } else { x + GAP },
            y: y - STEP / 2.0 + f64::from(step) * STEP,
            width,
            height: STEP,
        };
        let steps = (0..=STEPS_MAX).flat_map(|step| [-step, step]);
        let places = steps.flat_map(|step| [false, true].map(|left| (at(left, step), step != 0)));
        let free = places.into_iter().find(|(area, _)| self.is_free(area));
        let (area, is_far) = free.unwrap_or((at(false, 0), false));
        self.taken.push(area);
        Place { area, is_far }
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
