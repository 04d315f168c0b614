//! Scaled dot-product attention on `[B, H, S, D]`. Must not look at later keys when causal.

use crate::product::{PackedLhs, padded_columns, product};
use crate::simd::{self, vectorized};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionSpec {
    /// Batch times heads: they are independent alike.
    pub heads: usize,
    /// Sequence length, of queries and of keys.
    pub steps: usize,
    pub width: usize,
    /// Whether a query sees only keys up to its own position.
    pub causal: bool,
}

impl AttentionSpec {
    /// Elements of each of q, k, v and the output.
    pub fn len(&self) -> usize {
        self.heads * self.steps * self.width
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn keys(&self, query: usize) -> usize {
        if self.causal { query + 1 } else { self.steps }
    }
}

/// The obvious loops in f64; `scores` needs one slot per key.
pub fn oracle(spec: &AttentionSpec, q: &[f32], k: &[f32], v: &[f32], scores: &mut [f64], out: &mut [f32]) {
    let (steps, width) = (spec.steps, spec.width);
    let scale = 1.0 / (width as f64).sqrt();
    let mut sums = vec![0.0_f64; width];
    for head in 0..spec.heads {
        for i in 0..steps {
            let row = |of: usize| (head * steps + of) * width..(head * steps + of + 1) * width;
            let scores = &mut scores[..spec.keys(i)];
            vectorized!({
                for (j, score) in scores.iter_mut().enumerate() {
                    *score = dot(&q[row(i)], &k[row(j)]) * scale;
                }
            });
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
            let total: f64 = scores.iter().sum();
            sums.fill(0.0);
            vectorized!({
                for (j, weight) in scores.iter().enumerate() {
                    for (sum, value) in sums.iter_mut().zip(&v[row(j)]) {
                        *sum += weight * f64::from(*value);
                    }
                }
            });
            for (out, sum) in out[row(i)].iter_mut().zip(&sums) {
                *out = (sum / total) as f32;
            }
        }
    }
}

/// In partial sums, which become vectors: one sum is a chain of additions.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 16;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0_f64; LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            lanes[i] += f64::from(a[i]) * f64::from(b[i]);
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Queries handled together: their scores stay in L2 for sequences of a few thousand keys.
const BLOCK: usize = 48;

#[derive(Clone, Debug)]
pub struct Scratch {
    keys_transposed: Vec<f32>,
    values: Vec<f32>,
    queries: PackedLhs,
    weights: PackedLhs,
    scores: Vec<f32>,
    mixed: Vec<f32>,
}

impl Scratch {
    /// Space for one head at a time.
    pub fn new(spec: &AttentionSpec) -> Self {
        let (steps, width) = (padded_columns(spec.steps), padded_columns(spec.width));
        Self {
            keys_transposed: vec![0.0; spec.width * steps],
            values: vec![0.0; spec.steps * width],
            queries: PackedLhs::with_capacity(BLOCK, spec.width),
            weights: PackedLhs::with_capacity(BLOCK, spec.steps),
            scores: vec![0.0; BLOCK * steps],
            mixed: vec![0.0; BLOCK * width],
        }
    }
}

/// Blocks of queries: two products with a softmax between, all in f32.
pub fn fast(spec: &AttentionSpec, q: &[f32], k: &[f32], v: &[f32], scratch: &mut Scratch, out: &mut [f32]) {
    let (steps, width) = (spec.steps, spec.width);
    if spec.is_empty() {
        return;
    }
    for head in 0..spec.heads {
        let range = head * steps * width..(head + 1) * steps * width;
        load_head(spec, &k[range.clone()], &v[range.clone()], scratch);
        let (q, out) = (&q[range.clone()], &mut out[range]);
        for first in (0..steps).step_by(BLOCK) {
            block(spec, q, first, scratch, out);
        }
    }
}

fn load_head(spec: &AttentionSpec, k: &[f32], v: &[f32], scratch: &mut Scratch) {
    let (steps, width) = (padded_columns(spec.steps), padded_columns(spec.width));
    for (j, row) in k.chunks_exact(spec.width).enumerate() {
        for (d, &value) in row.iter().enumerate() {
            scratch.keys_transposed[d * steps + j] = value;
        }
    }
    for (row, padded) in v.chunks_exact(spec.width).zip(scratch.values.chunks_exact_mut(width)) {
        padded[..spec.width].copy_from_slice(row);
    }
}

fn block(spec: &AttentionSpec, q: &[f32], first: usize, scratch: &mut Scratch, out: &mut [f32]) {
    let rows = BLOCK.min(spec.steps - first);
    let (steps, width) = (padded_columns(spec.steps), padded_columns(spec.width));
    let keys = spec.keys(first + rows - 1);
    scratch.queries.pack(&q[first * spec.width..], rows, spec.width, spec.width);
    let columns = padded_columns(keys);
    product(&scratch.queries, &scratch.keys_transposed, steps, columns, &mut scratch.scores, steps);
    let scale = 1.0 / (spec.width as f32).sqrt();
    vectorized!({
        for (i, row) in scratch.scores.chunks_exact_mut(steps).enumerate().take(rows) {
            softmax(&mut row[..keys], spec.keys(first + i).min(keys), scale);
        }
    });
    scratch.weights.pack(&scratch.scores, rows, keys, steps);
    product(&scratch.weights, &scratch.values, width, width, &mut scratch.mixed, width);
    for (i, row) in scratch.mixed.chunks_exact(width).enumerate().take(rows) {
        out[(first + i) * spec.width..][..spec.width].copy_from_slice(&row[..spec.width]);
    }
}

/// Softmax over the first `visible` scores; the masked rest gets weight 0.
#[inline(always)]
fn softmax(scores: &mut [f32], visible: usize, scale: f32) {
    let (seen, masked) = scores.split_at_mut(visible);
    let mut largest = f32::NEG_INFINITY;
    for &score in seen.iter() {
        largest = largest.max(score);
    }
    for score in seen.iter_mut() {
        *score = simd::exp((*score - largest) * scale);
    }
    let norm = 1.0 / simd::sum(seen);
    for score in seen {
        *score *= norm;
    }
    masked.fill(0.0);
}
