//! Extreme values for inputs: kernels break at the edges.

use crate::compare::Leeway;
use crate::precision::Precision;
use crate::rng::RandomState;
use crate::tensor::{Domain, Tensor};
use holdpoint_cuda::Dtype;
use holdpoint_model::Values;

/// Magnitudes of extreme values.
#[derive(Clone, Copy)]
struct Extremes {
    large: f32,
    small: f32,
    tiny: f32,
}

/// Sums of products of the large ones still fit, and of the tiny ones some are denormal.
fn extremes(dtype: Dtype) -> Extremes {
    let (large, small, tiny) = match dtype {
        Dtype::F32 => (100.0, 1e-6, 1e-38),
        Dtype::F16 => (100.0, 1e-3, 6e-5),
        Dtype::Bf16 => (100.0, 1e-4, 1e-38),
        // Nothing below its absolute tolerance is precise in 8 bits.
        Dtype::E4m3 => (50.0, 0.25, 2e-2),
    };
    Extremes { large, small, tiny }
}

/// Fills inputs and gives the leeway for answers to them.
pub fn fill(kind: Values, inputs: &mut [Tensor], seed: u64, dtype: Dtype) -> Leeway {
    let (mut rng, range) = (RandomState::new(seed), extremes(dtype));
    let mut drawn: Vec<Vec<f32>> =
        inputs.iter().map(|tensor| draw(kind, tensor.domain, tensor.len(), &mut rng, range)).collect();
    if kind == Values::Spread {
        spread(inputs, &mut drawn, &mut rng);
    }
    if kind.is_planted() {
        let value = if kind == Values::Nan { f32::NAN } else { f32::INFINITY };
        let domains: Vec<Domain> = inputs.iter().map(|tensor| tensor.domain).collect();
        plant(value, &domains, &mut drawn, &mut rng);
    }
    let mut scale = 1.0_f64;
    for (tensor, values) in inputs.iter_mut().zip(&drawn) {
        tensor.set(values);
        let finite =
            tensor.values().iter().filter(|value| value.is_finite()).map(|v| v.abs()).fold(0.0, f32::max);
        scale = scale.max(f64::from(finite));
    }
    let (planted, ordinary, graded) = (kind.is_planted(), kind.is_ordinary(), kind.is_graded());
    Leeway { scale, planted, ordinary, graded, overflow: dtype.overflow() }
}

/// Makes the scores of queries and keys nearly equal, but in most cases for one key of each head: it weighs about as much as all others
/// together, each of which weighs next to nothing. Whoever leaves out small weights, or keys from some place on, gets another answer.
fn spread(inputs: &[Tensor], drawn: &mut [Vec<f32>], rng: &mut RandomState) {
    let mut uniform = || rng.uniforms(1)[0];
    let has_peak = uniform() > 0.25;
    let rise = 2.0 * uniform();
    let mut exponents = inputs.iter().zip(drawn).filter(|(tensor, _)| tensor.domain == Domain::Exponent);
    let (Some((_, queries)), Some((tensor, keys))) = (exponents.next(), exponents.next()) else { return };
    let [.., steps, width] = *tensor.dims else { return };
    // The root of the key's score, spread over the dot product's terms.
    let size = ((steps as f32).ln() + rise).sqrt() / (width as f32).powf(0.25);
    queries.iter_mut().for_each(|value| *value = size * (1.0 + 0.1 * *value));
    keys.iter_mut().for_each(|value| *value *= 0.1);
    for head in keys.chunks_mut((steps * width).max(1)).filter(|_| has_peak) {
        let steps = head.len() / width.max(1);
        // The last keys are those of a ragged tile.
        let within = if uniform() < 0.5 { steps } else { steps.min(64) };
        let at = steps - 1 - ((uniform() * within as f32) as usize).min(within - 1);
        head[at * width..][..width].fill(size);
    }
}

/// How a device draws values of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Recipe {
    /// Mean 0 and variance 1, scaled.
    Normal { scale: f32 },
    /// In [0, 1), scaled and shifted.
    Uniform { scale: f32, shift: f32 },
    /// By a number in [0, 1): `low` under one limit, `high` from another on, else 0.
    Steps { low_below: f32, low: f32, high_from: f32, high: f32 },
}

/// The largest that is drawn of [`Recipe::Normal`] with a scale of 1: the sum of four numbers of 16 bits has an end.
const NORMAL_MAX: f32 = 3.464_1;

impl Recipe {
    /// The largest magnitude that it draws.
    pub(crate) fn largest(self) -> f32 {
        match self {
            Self::Normal { scale } => NORMAL_MAX * scale.abs(),
            Self::Uniform { scale, shift } => shift.abs().max((scale + shift).abs()),
            Self::Steps { low, high, .. } => low.abs().max(high.abs()),
        }
    }
}

/// How a device draws a kind of values for inputs that are too many for the host: the same distributions, other numbers. Absent for
/// kinds whose values are not drawn one by one.
pub(crate) fn recipe(kind: Values, domain: Domain, dtype: Dtype, seed: u64) -> Option<Recipe> {
    if kind.is_planted() {
        return None;
    }
    let range = extremes(dtype);
    let constant = |value: f32| Recipe::Uniform { scale: 0.0, shift: value };
    let steps = |low_below, low, high_from, high| Recipe::Steps { low_below, low, high_from, high };
    if domain == Domain::Unit {
        return Some(match kind {
            Values::Zero => constant(0.0),
            Values::Large | Values::Spikes => steps(0.5, 0.0, 0.5, 1.0),
            Values::Constant => constant(0.5),
            _ => Recipe::Uniform { scale: 1.0, shift: 0.0 },
        });
    }
    let large = largest_drawn(kind, domain, range);
    Some(match kind {
        Values::Normal => Recipe::Normal { scale: 1.0 },
        Values::Uniform => Recipe::Uniform { scale: 2.0, shift: -1.0 },
        Values::Zero => constant(0.0),
        Values::Constant => constant(RandomState::new(seed).normals(1)[0]),
        Values::Large => Recipe::Normal { scale: large },
        Values::Tiny => Recipe::Normal { scale: range.tiny },
        Values::Small => Recipe::Normal { scale: range.small },
        Values::Spikes => steps(0.02, -large, 0.97, large),
        _ => return None,
    })
}

/// The size of large values in a domain.
fn largest_drawn(kind: Values, domain: Domain, range: Extremes) -> f32 {
    match (domain, kind) {
        // Two that meet are beyond what the exponential of a float holds: whoever leaves the largest score in gets infinity.
        (Domain::Exponent, Values::Spikes) => range.large.min(30.0),
        (Domain::Exponent, _) => range.large.min(4.0),
        _ => range.large,
    }
}

/// Puts a value in one place of one input.
fn plant(value: f32, domains: &[Domain], drawn: &mut [Vec<f32>], rng: &mut RandomState) {
    let mut pick = |count: usize| ((rng.uniforms(1)[0] * count as f32) as usize).min(count.saturating_sub(1));
    let is_open = |domain: &Domain| matches!(domain, Domain::Any | Domain::Exponent);
    let mut open: Vec<&mut Vec<f32>> = domains
        .iter()
        .zip(drawn)
        .filter(|(domain, values)| is_open(domain) && !values.is_empty())
        .map(|(_, values)| values)
        .collect();
    let tensor = pick(open.len());
    if let Some(values) = open.get_mut(tensor) {
        let at = pick(values.len());
        values[at] = value;
    }
}

fn draw(kind: Values, domain: Domain, len: usize, rng: &mut RandomState, range: Extremes) -> Vec<f32> {
    if domain == Domain::Unit {
        let unit = |u: &f32| match kind {
            Values::Zero => 0.0,
            Values::Large | Values::Spikes => u.round(),
            Values::Constant => 0.5,
            _ => *u,
        };
        return rng.uniforms(len).iter().map(unit).collect();
    }
    let large = largest_drawn(kind, domain, range);
    let drawn = match kind {
        Values::Uniform | Values::Spikes => rng.uniforms(len),
        _ => rng.normals(len),
    };
    let constant = drawn.first().copied().unwrap_or(0.0);
    let value = |x: &f32| match kind {
        Values::Normal | Values::Spread | Values::Nan | Values::Infinite => *x,
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
    drawn.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Element;

    fn filled(values: Values, domain: Domain, seed: u64) -> (Vec<f32>, Leeway) {
        let mut tensors = [Tensor::new("x", &[500], domain, Element::Float(Dtype::F32))];
        tensors[0].poison();
        let leeway = fill(values, &mut tensors, seed, Dtype::F32);
        (tensors[0].f32().to_vec(), leeway)
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
    fn a_device_draws_from_the_same_range_as_the_host() {
        for &values in Values::ALL.iter().filter(|values| !values.is_planted() && **values != Values::Spread)
        {
            for domain in [Domain::Any, Domain::Exponent, Domain::Weighed, Domain::Unit] {
                let (data, _) = filled(values, domain, 7);
                let host = data.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                let device = recipe(values, domain, Dtype::F32, 7).unwrap().largest();
                assert!(
                    host <= device && (device <= 2.0 * host || values == Values::Constant),
                    "{values:?} {domain:?}: {host} {device}"
                );
            }
        }
        assert_eq!(recipe(Values::Nan, Domain::Any, Dtype::F32, 7), None);
        assert_eq!(recipe(Values::Infinite, Domain::Unit, Dtype::F32, 7), None);
        assert_eq!(recipe(Values::Spread, Domain::Exponent, Dtype::F32, 7), None);
    }

    #[test]
    fn spread_scores_have_one_key_that_weighs_as_much_as_all_others() {
        let (heads, steps, width) = (3, 2000, 32);
        let tensor =
            |name, domain| Tensor::new(name, &[1, heads, steps, width], domain, Element::Float(Dtype::F32));
        let mut peaks_count = 0;
        for seed in 0..20 {
            let mut inputs =
                [tensor("q", Domain::Exponent), tensor("k", Domain::Exponent), tensor("v", Domain::Weighed)];
            let leeway = fill(Values::Spread, &mut inputs, seed, Dtype::F32);
            assert!(!leeway.planted && !leeway.graded && leeway.scale < 10.0, "{leeway:?}");
            let (q, k) = (inputs[0].f32(), inputs[1].f32());
            for head in 0..heads {
                let row = |of: &[f32], at: usize| of[(head * steps + at) * width..][..width].to_vec();
                let score = |key: usize| -> f32 {
                    let dot: f32 = row(q, 7).iter().zip(row(k, key)).map(|(a, b)| a * b).sum();
                    dot / (width as f32).sqrt()
                };
                let mut weights: Vec<f32> = (0..steps).map(|key| score(key).exp()).collect();
                weights.sort_by(f32::total_cmp);
                let largest = weights.pop().unwrap();
                let others: f32 = weights.iter().sum();
                // Flat where nothing stands out.
                let is_peak = largest > 10.0 * weights[steps - 2];
                peaks_count += usize::from(is_peak);
                assert!(weights[steps - 2] < 3.0 * weights[0], "{} {}", weights[0], weights[steps - 2]);
                assert!(!is_peak || (0.3..20.0).contains(&(largest / others)), "{largest} {others}");
            }
        }
        assert!((30..60).contains(&peaks_count), "{peaks_count}");
    }
}
