//! Evidence from sizes, with no assumption about them beyond what the experiment itself provides.
//!
//! A gambler stakes a share λ of his money on each unit x and is paid `1 + λ f((x - θ)/s)`, with f odd, increasing and
//! within ±1, and with λ and the scale s fixed before x is seen. Far beyond the line pays more than just beyond it, but
//! no outlier pays more than double.
//!
//! Why his money cannot be expected to grow when nothing changed. Given the past, let x be symmetric about m <= θ.
//! Unchanged code is the case m = 0: base and head are then two copies of one program in random order, swapping
//! their labels turns x into -x, and chance treats both alike. Write x = m + d with d symmetric about 0, and
//! u = (m - θ)/s <= 0. Since d and -d are equally likely and f is odd,
//!
//! ```text
//! 2 E f((x-θ)/s) = E[f(d/s + u) + f(-d/s + u)] = E[f(d/s + u) - f(d/s - u)] <= 0
//! ```
//!
//! because u <= -u and f increases. So E[1 + λ f | past] <= 1, the money is a nonnegative supermartingale from 1, and
//! Ville's inequality bounds its maximum. Nothing was said about variance, tails, drift, or dependence on the past;
//! the size of x may depend on anything, only its sign must be up to chance. Where x is not symmetric, the same holds
//! as long as the bounded mean E f((x-θ)/s) is not above zero.
//!
//! Several (λ, s) are played at once with a share of the money each: a sum of fair games is fair.

use super::sign::SignProcess;

/// Each bettor's stake, and the bend of its payoff, in units of the noise's scale.
///
/// f is tanh: for normal noise of scale σ around a point δ beyond the line, the best payment that is fair under
/// symmetry is exactly tanh(distance·δ/σ²), so bends of 2 to 0.5 suit points half a σ to two of them beyond. Stakes below
/// 1 survive a loss; the small one is for heavy tails. Found by simulation among seven such sets.
const STAKES_AND_BENDS: [(f64, Bend); 4] =
    [(0.6, Bend::Half), (0.95, Bend::Half), (0.95, Bend::One), (0.95, Bend::Two)];

/// Each half of the next, so that one tanh gives all: tanh 2u = 2 tanh u / (1 + tanh² u).
#[derive(Clone, Copy)]
enum Bend {
    Two,
    One,
    Half,
}

/// Money is taken off the table here: far beyond any threshold, and it keeps the product finite.
const MONEY_MAX: f64 = 1e300;

const GAMBLERS_COUNT: usize = STAKES_AND_BENDS.len();

/// The money of all gamblers, each starting with an equal share of 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BetProcess {
    money: [f64; GAMBLERS_COUNT],
}

impl Default for BetProcess {
    fn default() -> Self {
        Self { money: [1.0 / GAMBLERS_COUNT as f64; GAMBLERS_COUNT] }
    }
}

impl BetProcess {
    /// One more unit, `distance` beyond the line (negative: short of it). `scale` must come from earlier units only.
    pub fn push(&mut self, distance: f64, scale: f64) {
        let double = |t: f64| 2.0 * t / (1.0 + t * t);
        let two = (distance / (2.0 * scale)).tanh();
        let one = double(two);
        let payments = [two, one, double(one)];
        for (money, (stake, bend)) in self.money.iter_mut().zip(STAKES_AND_BENDS) {
            *money = (*money * (1.0 + stake * payments[bend as usize])).min(MONEY_MAX);
        }
    }

    /// The e-value: all money together.
    pub fn e(&self) -> f64 {
        self.money.iter().sum()
    }
}

/// Signs and sizes together, on one side of one line. An average of e-processes is one, and is never worth less than half
/// the better of the two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    sign: SignProcess,
    bets: BetProcess,
}

impl Evidence {
    /// One more unit, `distance` beyond the line. `scale` must come from earlier units only.
    pub fn push(&mut self, distance: f64, scale: f64) {
        self.sign.push(distance > 0.0);
        self.bets.push(distance, scale);
    }

    pub fn e(&self) -> f64 {
        f64::midpoint(self.sign.ln_e().exp().min(MONEY_MAX), self.bets.e())
    }

    /// Whether it is at least so much. Replays of hundreds of units ask at each, and most are told by a bound: an average is at most
    /// the larger of two.
    pub(super) fn reaches(&self, e_min: f64) -> bool {
        let may = self.bets.e() >= e_min || self.sign.ln_e_most() + 1e-6 >= e_min.ln();
        may && self.e() >= e_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 2^n ways to put signs before fixed sizes: the whole distribution under label-swap symmetry.
    fn mean_over_signs(sizes: &[f64], threshold: f64) -> f64 {
        let mean_of = |pattern: u32| {
            let mut evidence = Evidence::default();
            let mut scale = 0.01;
            for (i, size) in sizes.iter().enumerate() {
                let x = if pattern >> i & 1 == 1 { *size } else { -size };
                evidence.push(x - threshold, scale);
                // A scale that depends on the signed past: predictable is all it must be.
                scale = (scale + (x + 0.001).abs()) / 2.0;
            }
            evidence.e()
        };
        (0..1_u32 << sizes.len()).map(mean_of).sum::<f64>() / f64::from(1_u32 << sizes.len())
    }

    #[test]
    fn its_expectation_is_one_at_the_line_and_less_beyond_it() {
        let sizes = [0.01, 0.3, 0.002, 0.04, 1.5, 0.011, 0.0001, 0.02, 0.007, 0.013];
        assert!((mean_over_signs(&sizes, 0.0) - 1.0).abs() < 1e-9);
        let mut before = 1.0;
        for threshold in [0.001, 0.01, 0.1] {
            let mean = mean_over_signs(&sizes, threshold);
            assert!(mean < before, "{threshold}: {mean}");
            before = mean;
        }
    }

    #[test]
    fn what_it_reaches_is_what_it_is() {
        let mut random = crate::random::Random::new(3);
        let mut reached = 0;
        for trial in 0..300 {
            let (mut evidence, shift) = (Evidence::default(), f64::from(trial % 5) * 0.003);
            for _ in 0..80 {
                evidence.push(0.01 * random.normal() + shift, 0.01);
                for e_min in [0.5, 1.0, 20.0, 8000.0, evidence.e()] {
                    assert_eq!(evidence.reaches(e_min), evidence.e() >= e_min, "{evidence:?}");
                    reached += usize::from(e_min == 8000.0 && evidence.reaches(e_min));
                }
            }
        }
        assert!(reached > 100, "{reached}");
    }

    #[test]
    fn farther_beyond_is_worth_more_and_a_loss_is_survived() {
        let worth = |distances: &[f64]| {
            let mut bets = BetProcess::default();
            distances.iter().for_each(|distance| bets.push(*distance, 0.01));
            bets.e()
        };
        assert!(worth(&[0.02]) > worth(&[0.01]) && worth(&[0.01]) > 1.0);
        assert!(worth(&[-9.0, 0.02]) > 0.0);
        assert!(worth(&[9.0; 3000]).is_finite());
    }
}
