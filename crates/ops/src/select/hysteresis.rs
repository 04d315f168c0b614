//! Keeps tiles from flickering between frames.

use crate::error::OpError;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hysteresis {
    /// A tile above this is on.
    pub theta_on: f64,
    /// A tile above this stays on if it was.
    pub theta_off: f64,
    pub active_max: Option<usize>,
}

impl Hysteresis {
    pub fn check(&self) -> Result<(), OpError> {
        let (theta_on, theta_off) = (self.theta_on, self.theta_off);
        if theta_on > theta_off { Ok(()) } else { Err(OpError::Thresholds { theta_on, theta_off }) }
    }

    /// Updates `mask` from the previous frame's to this frame's; `scratch` needs room for all tiles.
    pub fn update(&self, utilities: &[f64], mask: &mut [bool], scratch: &mut Vec<(bool, u32)>) {
        scratch.clear();
        for (id, (&utility, was_on)) in utilities.iter().zip(mask.iter()).enumerate() {
            if utility > self.theta_on || (utility > self.theta_off && *was_on) {
                scratch.push((*was_on, id as u32));
            }
        }
        let active_max = self.active_max.unwrap_or(usize::MAX);
        if scratch.len() > active_max {
            let utility = |id: u32| utilities[id as usize];
            scratch.sort_unstable_by(|a, b| {
                b.0.cmp(&a.0).then(utility(b.1).total_cmp(&utility(a.1))).then(a.1.cmp(&b.1))
            });
            scratch.truncate(active_max);
        }
        mask.fill(false);
        for &(_, id) in scratch.iter() {
            mask[id as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Hysteresis = Hysteresis { theta_on: 0.6, theta_off: 0.45, active_max: None };

    fn update<const N: usize>(rule: Hysteresis, utilities: [f64; N], mut mask: [bool; N]) -> [bool; N] {
        rule.update(&utilities, &mut mask, &mut Vec::new());
        mask
    }

    #[test]
    fn between_the_thresholds_the_past_decides() {
        let mask = update(RULE, [0.7, 0.5, 0.5, 0.4], [false, true, false, true]);
        assert_eq!(mask, [true, true, false, false]);
    }

    #[test]
    fn a_cap_keeps_old_tiles_first_then_useful_ones() {
        let rule = Hysteresis { active_max: Some(2), ..RULE };
        let mask = update(rule, [0.9, 0.5, 0.95, 0.95], [false, true, false, false]);
        assert_eq!(mask, [false, true, true, false]);
    }

    #[test]
    fn thresholds_without_a_gap_are_refused() {
        let rule = Hysteresis { theta_off: 0.6, ..RULE };
        assert!(rule.check().unwrap_err().to_string().contains("theta_on must be >"));
    }
}
