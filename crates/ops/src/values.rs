//! Values for inputs other than the ordinary ones: where kernels break is at the edges.

use crate::compare::Leeway;
use crate::overflow::Overflow;
use crate::rng::RandomState;
use holdpoint_model::Values;
use std::borrow::Cow;

/// One input or output of an op.
#[derive(Debug)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its sizes, the last varying fastest.
    pub dims: Vec<usize>,
    /// What it may hold.
    pub domain: Domain,
    /// Its values.
    pub values: &'a mut [f32],
}

impl<'a> Tensor<'a> {
    /// A tensor over these values.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        dims: &[usize],
        domain: Domain,
        values: &'a mut [f32],
    ) -> Self {
        Self { name: name.into(), dims: dims.to_vec(), domain, values }
    }
}

/// One output of whole numbers.
#[derive(Debug)]
pub struct IntegerTensor<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its sizes, the last varying fastest.
    pub dims: Vec<usize>,
    /// Its values.
    pub values: Integers<'a>,
}

/// Whole numbers as an op keeps them; outside they are 32 bits wide, none of them negative.
#[derive(Debug)]
pub enum Integers<'a> {
    /// Ids and coordinates.
    U32(&'a mut [u32]),
    /// Priorities.
    I8(&'a mut [i8]),
}

impl Integers<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::I8(values) => values.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As 32-bit numbers.
    #[must_use]
    pub fn get(&self) -> Vec<i32> {
        match self {
            Self::U32(values) => values.iter().map(|value| *value as i32).collect(),
            Self::I8(values) => values.iter().map(|value| i32::from(*value)).collect(),
        }
    }

    /// From 32-bit numbers; one that cannot be kept becomes one that no right answer has.
    pub fn set(&mut self, from: &[i32]) {
        match self {
            Self::U32(values) => {
                values.iter_mut().zip(from).for_each(|(value, from)| *value = *from as u32);
            }
            Self::I8(values) => {
                let kept = |from: i32| i8::try_from(from).unwrap_or(i8::MIN);
                values.iter_mut().zip(from).for_each(|(value, from)| *value = kept(*from));
            }
        }
    }
}

/// What an input may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Any number.
    Any,
    /// Any number, of which the op takes the exponential: large ones make it a step, and nothing can be said about rounding then.
    Exponent,
    /// Any number, which the op weighs and sums: a weight of zero makes nothing of what is not finite, so that is not planted here.
    Weighed,
    /// Weights, gains and probabilities, from 0 to 1.
    Unit,
}

/// How large and how small the values of an element type are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Of [`Values::Large`].
    pub large: f32,
    /// Of [`Values::Small`].
    pub small: f32,
    /// Of [`Values::Tiny`].
    pub tiny: f32,
    /// Where it ends.
    pub overflow: Overflow,
}

/// Fills inputs, each value rounded to what its element type can hold, and says what may be asked of the answer to them.
pub fn fill(
    kind: Values,
    inputs: &mut [Tensor<'_>],
    seed: u64,
    range: Range,
    round: &dyn Fn(f32) -> f32,
) -> Leeway {
    let mut rng = RandomState::new(seed);
    for tensor in inputs.iter_mut() {
        draw(kind, tensor, &mut rng, range);
    }
    if kind.is_planted() {
        plant(if kind == Values::Nan { f32::NAN } else { f32::INFINITY }, inputs, &mut rng);
    }
    let mut scale = 1.0_f64;
    for value in inputs.iter_mut().flat_map(|tensor| tensor.values.iter_mut()) {
        *value = round(*value);
        if value.is_finite() {
            scale = scale.max(f64::from(value.abs()));
        }
    }
    let (planted, ordinary) = (kind.is_planted(), kind.is_ordinary());
    Leeway { scale, planted, ordinary, overflow: range.overflow }
}

/// Puts a value in one place of one input.
fn plant(value: f32, inputs: &mut [Tensor<'_>], rng: &mut RandomState) {
    let mut pick = |count: usize| ((rng.uniforms(1)[0] * count as f32) as usize).min(count.saturating_sub(1));
    let is_open = |tensor: &&mut Tensor<'_>| {
        matches!(tensor.domain, Domain::Any | Domain::Exponent) && !tensor.values.is_empty()
    };
    let mut open: Vec<&mut Tensor<'_>> = inputs.iter_mut().filter(is_open).collect();
    let tensor = pick(open.len());
    if let Some(tensor) = open.get_mut(tensor) {
        let at = pick(tensor.values.len());
        tensor.values[at] = value;
    }
}

fn draw(kind: Values, tensor: &mut Tensor<'_>, rng: &mut RandomState, range: Range) {
    let len = tensor.values.len();
    if tensor.domain == Domain::Unit {
        for (value, u) in tensor.values.iter_mut().zip(rng.uniforms(len).iter()) {
            *value = match kind {
                Values::Zero => 0.0,
                Values::Large | Values::Spikes => u.round(),
                Values::Constant => 0.5,
                _ => *u,
            };
        }
        return;
    }
    let large = match (tensor.domain, kind) {
        // Two that meet are beyond what the exponential of a float holds: whoever leaves the largest score in gets infinity.
        (Domain::Exponent, Values::Spikes) => range.large.min(30.0),
        (Domain::Exponent, _) => range.large.min(4.0),
        _ => range.large,
    };
    let drawn = match kind {
        Values::Uniform | Values::Spikes => rng.uniforms(len),
        _ => rng.normals(len),
    };
    let constant = drawn.first().copied().unwrap_or(0.0);
    for (value, x) in tensor.values.iter_mut().zip(drawn.iter()) {
        *value = match kind {
            Values::Normal | Values::Nan | Values::Infinite => *x,
            Values::Uniform => 2.0 * x - 1.0,
            Values::Zero => 0.0,
            Values::Constant => constant,
            Values::Large => large * x.clamp(-4.0, 4.0),
            Values::Tiny => range.tiny * x,
            Values::Small => range.small * x,
            Values::Spikes if *x > 0.97 => large,
            Values::Spikes if *x < 0.02 => -large,
            Values::Spikes => 0.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { large: 100.0, small: 1e-6, tiny: 1e-38, overflow: Overflow::F32 };

    fn filled(values: Values, domain: Domain, seed: u64) -> (Vec<f32>, Leeway) {
        let mut data = vec![f32::NAN; 500];
        let leeway = fill(values, &mut [Tensor::new("x", &[500], domain, &mut data)], seed, RANGE, &|x| x);
        (data, leeway)
    }

    #[test]
    fn every_kind_writes_all_values_and_the_same_for_the_same_seed() {
        for &values in Values::ALL {
            for domain in [Domain::Any, Domain::Exponent, Domain::Weighed, Domain::Unit] {
                let (data, _) = filled(values, domain, 7);
                let odd = data.iter().filter(|x| !x.is_finite()).count();
                let is_open = matches!(domain, Domain::Any | Domain::Exponent);
                let planted = usize::from(values.is_planted() && is_open);
                assert_eq!(odd, planted, "{values:?} {domain:?}");
                let again = filled(values, domain, 7).0;
                assert!(data.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()), "{values:?}");
                if domain == Domain::Unit {
                    assert!(data.iter().all(|x| (0.0..=1.0).contains(x)), "{values:?}");
                }
            }
        }
        assert_ne!(filled(Values::Normal, Domain::Any, 1).0, filled(Values::Normal, Domain::Any, 2).0);
    }

    #[test]
    fn kinds_hold_what_they_are_called_after_and_the_leeway_follows_the_largest() {
        let (large, leeway) = filled(Values::Large, Domain::Any, 3);
        assert!(large.iter().any(|x| x.abs() > 100.0) && leeway.scale > 100.0 && !leeway.ordinary);
        assert!(filled(Values::Tiny, Domain::Any, 3).0.iter().any(|x| x.is_subnormal()));
        let small = filled(Values::Small, Domain::Any, 3);
        assert!(small.0.iter().all(|x| x.abs() < 1e-5 && x.is_normal()) && small.1.ordinary);
        let spikes = filled(Values::Spikes, Domain::Any, 3).0;
        assert!(spikes.contains(&100.0) && spikes.iter().filter(|x| **x == 0.0).count() > 400);
        let normal = filled(Values::Normal, Domain::Any, 3).1;
        assert!(normal.scale > 2.0 && normal.scale < 5.0 && normal.ordinary, "{normal:?}");
    }

    #[test]
    fn whole_numbers_that_do_not_fit_match_no_right_answer() {
        let (mut ids, mut priorities) = ([0_u32; 3], [0_i8; 3]);
        Integers::U32(&mut ids).set(&[7, -1, i32::MAX]);
        Integers::I8(&mut priorities).set(&[3, 300, -129]);
        assert_eq!((ids, priorities), ([7, u32::MAX, 0x7fff_ffff], [3, i8::MIN, i8::MIN]));
        assert_eq!(Integers::U32(&mut ids).get(), [7, -1, i32::MAX]);
        assert_eq!(Integers::I8(&mut priorities).get(), [3, -128, -128]);
    }
}
