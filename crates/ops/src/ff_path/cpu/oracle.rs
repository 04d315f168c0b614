//! The FF path by the obvious loops, each step on whole tensors of packed tiles. Sums of products and
//! moments are taken in f64, so that the reference carries no rounding of its own; everything stored is f32.

use super::{FfInputs, Levels, NORM_EPS, PathWeights, SampleOutputs};
use crate::fusion_gate::cpu::{self as fusion, Maps};
use crate::order::OrderMode;
use crate::select::TwoStage;
use crate::shape::{Grid, Nchw, TileSpec};
use crate::simd::{relu, vectorized};
use crate::tile_pack::cpu::{self as pack, Packed};
use crate::tile_ssm::cpu::module::{TOKEN_CLAMP, sigmoid};
use crate::tile_ssm::cpu::{self as ssm, Direction, Merge, ScanInputs, ScanParams, ScanSpec};
use crate::tile_unpack::cpu::priority::{self, PRIORITY_L0};
use crate::tile_unpack::cpu::{Overlap, Unpack};

/// The plain version of both levels.
#[derive(Clone, Debug)]
pub struct OracleLevels {
    paths: [OraclePath; 2],
    /// Output of level 0, which level 1 reads.
    between: Vec<f32>,
}

impl Levels for OracleLevels {
    fn new(dims: Nchw, [l0, l1]: [(Grid, usize); 2], weights: &[PathWeights; 2]) -> Self {
        let paths = [OraclePath::new(dims, l0, &weights[0]), OraclePath::new(dims, l1, &weights[1])];
        Self { paths, between: vec![0.0; dims.sample()] }
    }

    fn run(&mut self, inputs: &FfInputs<'_>, route: &TwoStage, out: SampleOutputs<'_>) {
        let Self { paths: [level0, level1], between } = self;
        let proxies = [inputs.boundary, inputs.uncertainty];
        let [states0, states1] = out.states;
        level0.run(inputs.dense, &route.l0.selected, proxies, out.heavy, out.alpha, states0);
        if route.l1.ordered.is_empty() {
            states1.fill(0.0);
            subtract(out.heavy, inputs.dense, out.detail);
        } else {
            between.copy_from_slice(out.heavy);
            level1.run(between, &route.l1.ordered, proxies, out.heavy, out.alpha, states1);
            subtract(out.heavy, between, out.detail);
        }
    }
}

fn subtract(a: &[f32], b: &[f32], out: &mut [f32]) {
    for i in 0..out.len() {
        out[i] = a[i] - b[i];
    }
}

#[derive(Clone, Debug)]
struct OraclePath {
    dims: Nchw,
    grid: Grid,
    weights: PathWeights,
    scans: [ScanParams; 2],
    gate: Vec<f32>,
    packed: Packed,
    tokens: Vec<f32>,
    mixed: Vec<f32>,
    hidden: [Vec<f32>; 2],
    film: Vec<f32>,
    convolved: Vec<f32>,
    wide: Vec<f32>,
    map: Vec<i8>,
    unpacked: Vec<f32>,
}

impl OraclePath {
    fn new(dims: Nchw, (grid, kmax): (Grid, usize), weights: &PathWeights) -> Self {
        let (tiles, c, pixels) = (kmax.min(grid.count()), dims.channels, grid.tile * grid.tile);
        let spec = TileSpec { dims, grid, tiles };
        Self {
            dims,
            grid,
            weights: weights.clone(),
            scans: [weights.forward.params(), weights.backward.params()],
            gate: weights.merge_gate(),
            packed: Packed::new(&spec),
            tokens: vec![0.0; tiles * c],
            mixed: vec![0.0; tiles * c],
            hidden: [vec![0.0; c], vec![0.0; c]],
            film: vec![0.0; tiles * 2 * c],
            convolved: vec![0.0; c * pixels],
            wide: vec![0.0; 2 * c * pixels],
            map: vec![0; dims.plane()],
            unpacked: vec![0.0; dims.len()],
        }
    }

    fn run(
        &mut self,
        dense: &[f32],
        ids: &[u32],
        [boundary, uncertainty]: [&[f32]; 2],
        fused: &mut [f32],
        alpha: &mut [f32],
        states: &mut [f32],
    ) {
        let (dims, grid, tiles) = (self.dims, self.grid, ids.len());
        let spec = TileSpec { dims, grid, tiles };
        self.packed.resize(&spec);
        pack::oracle(&spec, dense, ids, Some(OrderMode::Hilbert), self.packed.view());
        self.tokens_and_scan(tiles, states);
        for k in 0..tiles {
            self.film(k);
        }
        for k in 0..tiles {
            self.modulate_and_refine(k);
        }
        let Packed { tiles: packed, origins, .. } = &self.packed;
        let unpack = Unpack { spec, overlap: Overlap::Override, base: dense, packed, origins };
        self.map.fill(0);
        priority::oracle(&unpack, PRIORITY_L0, &mut self.map, &mut self.unpacked);
        let maps = Maps { base: dense, heavy: &self.unpacked, boundary, uncertainty };
        fusion::oracle(&self.weights.gate, &dims, &maps, fused, alpha);
    }

    fn tokens_and_scan(&mut self, tiles: usize, states: &mut [f32]) {
        let (c, pixels) = (self.dims.channels, self.grid.tile * self.grid.tile);
        for (token, tile) in self.tokens.iter_mut().zip(self.packed.tiles.chunks_exact(pixels)) {
            *token = (tile.iter().map(|&v| f64::from(v)).sum::<f64>() / pixels as f64) as f32;
        }
        let spec = scan_spec(tiles, c);
        let inputs = ScanInputs {
            tokens: &self.tokens[..tiles * c],
            forward: self.scans[0].view(),
            backward: self.scans[1].view(),
            init_state: None,
            merge_gate: Some(&self.gate),
        };
        ssm::oracle(&spec, &inputs, &mut self.mixed[..tiles * c], states);
    }

    /// LayerNorm, linear, SiLU, linear; tanh on the first half.
    fn film(&mut self, k: usize) {
        let c = self.dims.channels;
        let w = &self.weights;
        let [normed, hidden] = &mut self.hidden;
        layer_norm(&self.mixed[k * c..(k + 1) * c], &w.token_norm, normed);
        linear(&w.mlp0, normed, hidden);
        for v in hidden.iter_mut() {
            *v = (f64::from(*v) * sigmoid(f64::from(*v))) as f32;
        }
        let film = &mut self.film[k * 2 * c..(k + 1) * 2 * c];
        linear(&w.mlp2, hidden, film);
        for gamma in &mut film[..c] {
            *gamma = gamma.tanh();
        }
    }

    fn modulate_and_refine(&mut self, k: usize) {
        let (c, t) = (self.dims.channels, self.grid.tile);
        let len = c * t * t;
        let tile = &mut self.packed.tiles[k * len..(k + 1) * len];
        let (gamma, beta) = self.film[k * 2 * c..(k + 1) * 2 * c].split_at(c);
        for (at, value) in tile.iter_mut().enumerate() {
            *value = (1.0 + gamma[at / (t * t)]) * *value + beta[at / (t * t)];
        }
        depthwise(&self.weights.depthwise, tile, t, &mut self.convolved);
        pointwise(&self.weights.pointwise, &self.convolved, t * t, &mut self.wide);
        group_norm(&self.weights.norm, t * t, &mut self.wide);
        let (a, b) = self.wide.split_at(len);
        for i in 0..len {
            tile[i] += a[i] * relu(b[i]);
        }
    }
}

pub(super) fn scan_spec(steps: usize, channels: usize) -> ScanSpec {
    let (direction, merge) = (Direction::Bidirectional, Merge::Gated);
    ScanSpec { batch: 1, steps, channels, clamp: TOKEN_CLAMP, direction, merge }
}

/// Tokens that are not finite count as 0 or as plus or minus the clamp.
pub(super) fn clean(v: f32) -> f32 {
    if v.is_nan() {
        0.0
    } else if v.is_infinite() {
        TOKEN_CLAMP.copysign(v)
    } else {
        v
    }
}

pub(super) fn layer_norm(tokens: &[f32], [weight, bias]: &[Vec<f32>; 2], out: &mut [f32]) {
    let n = tokens.len() as f64;
    let mean = tokens.iter().map(|&v| f64::from(clean(v))).sum::<f64>() / n;
    let variance = tokens.iter().map(|&v| (f64::from(clean(v)) - mean).powi(2)).sum::<f64>() / n;
    let inverse = 1.0 / (variance + NORM_EPS).sqrt();
    for (i, &token) in tokens.iter().enumerate() {
        let normed = (f64::from(clean(token)) - mean) * inverse;
        out[i] = (normed * f64::from(weight[i]) + f64::from(bias[i])) as f32;
    }
}

fn linear([weight, bias]: &[Vec<f32>; 2], input: &[f32], out: &mut [f32]) {
    for (o, out) in out.iter_mut().enumerate() {
        let row = &weight[o * input.len()..(o + 1) * input.len()];
        let sum: f64 = row.iter().zip(input).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
        *out = (sum + f64::from(bias[o])) as f32;
    }
}

fn depthwise([weight, bias]: &[Vec<f32>; 2], tile: &[f32], t: usize, out: &mut [f32]) {
    for (at, out) in out.iter_mut().enumerate() {
        let (c, y, x) = (at / (t * t), at / t % t, at % t);
        let mut sum = f64::from(bias[c]);
        for dy in 0..3 {
            for dx in 0..3 {
                // Outside the tile is zero, even where the map has neighbours: tiles are refined alone.
                if (1..=t).contains(&(y + dy)) && (1..=t).contains(&(x + dx)) {
                    let value = tile[(c * t + y + dy - 1) * t + x + dx - 1];
                    sum += f64::from(weight[c * 9 + dy * 3 + dx]) * f64::from(value);
                }
            }
        }
        *out = sum as f32;
    }
}

/// All pixels at once, which become vectors: each sum is still taken channel after channel.
fn pointwise([weight, bias]: &[Vec<f32>; 2], input: &[f32], pixels: usize, out: &mut [f32]) {
    let channels = input.len() / pixels;
    let mut sums = vec![0.0_f64; pixels];
    for (o, out) in out.chunks_exact_mut(pixels).enumerate() {
        sums.fill(f64::from(bias[o]));
        vectorized!({
            for (c, input) in input.chunks_exact(pixels).enumerate() {
                let weight = f64::from(weight[o * channels + c]);
                for (sum, value) in sums.iter_mut().zip(input) {
                    *sum += weight * f64::from(*value);
                }
            }
        });
        for (out, sum) in out.iter_mut().zip(&sums) {
            *out = *sum as f32;
        }
    }
}

fn group_norm([weight, bias]: &[Vec<f32>; 2], pixels: usize, values: &mut [f32]) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    let inverse = 1.0 / (variance + NORM_EPS).sqrt();
    for (at, value) in values.iter_mut().enumerate() {
        let normed = (f64::from(*value) - mean) * inverse;
        *value = (normed * f64::from(weight[at / pixels]) + f64::from(bias[at / pixels])) as f32;
    }
}
