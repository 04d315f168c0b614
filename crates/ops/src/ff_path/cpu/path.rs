//! One level of the fast FF path: tokens, scan, FiLM, then one tile after the other.

use super::PathWeights;
use super::oracle::{layer_norm, scan_spec};
use super::refine::{Refine, TileIo};
use crate::buffer::Buffer;
use crate::fusion_gate::cpu::{self as fusion, Gate};
use crate::order::{OrderMode, Orderer};
use crate::product::{PackedLhs, padded_columns, product};
use crate::shape::{Grid, Nchw};
use crate::simd::{self, vectorized};
use crate::tile_ssm::cpu::{self as ssm, ScanInputs, ScanParams};

#[derive(Clone, Debug)]
pub(super) struct FastPath {
    dims: Nchw,
    grid: Grid,
    orderer: Orderer,
    ordered: Vec<u32>,
    scans: [ScanParams; 2],
    merge_gate: Vec<f32>,
    token_norm: [Vec<f32>; 2],
    mlp0: (PackedLhs, Vec<f32>),
    mlp2: (PackedLhs, Vec<f32>),
    fusion: Gate,
    refine: Refine,
    tokens: Buffer,
    mixed: Buffer,
    normed: Vec<f32>,
    /// Tokens as columns, so that the weights are the packed left-hand side.
    columns: Buffer,
    hidden: Buffer,
    film: Buffer,
}

impl FastPath {
    pub(super) fn new(dims: Nchw, (grid, kmax): (Grid, usize), w: &PathWeights) -> Self {
        let (tiles, c) = (kmax.min(grid.count()), dims.channels);
        let stride = padded_columns(tiles);
        Self {
            dims,
            grid,
            orderer: Orderer::new(OrderMode::Hilbert, &grid, tiles),
            ordered: Vec::with_capacity(tiles),
            scans: [w.forward.params(), w.backward.params()],
            merge_gate: w.merge_gate(),
            token_norm: w.token_norm.clone(),
            mlp0: (PackedLhs::new(&w.mlp0[0], c, c), w.mlp0[1].clone()),
            mlp2: (PackedLhs::new(&w.mlp2[0], 2 * c, c), w.mlp2[1].clone()),
            fusion: w.gate,
            refine: Refine::new(c, grid.tile, w),
            tokens: Buffer::filled(0.0, tiles * c),
            mixed: Buffer::filled(0.0, tiles * c),
            normed: vec![0.0; c],
            columns: Buffer::filled(0.0, c * stride),
            hidden: Buffer::filled(0.0, c * stride),
            film: Buffer::filled(0.0, 2 * c * stride),
        }
    }

    /// `heavy` holds the input map and receives the output; `detail` receives the difference within the
    /// tiles.
    pub(super) fn run(
        &mut self,
        ids: &[u32],
        [boundary, uncertainty]: [&[f32]; 2],
        heavy: &mut [f32],
        mut detail: Option<&mut [f32]>,
        alpha: &mut [f32],
        states: &mut [f32],
    ) {
        self.ordered.resize(ids.len(), 0);
        self.orderer.order_into(ids, &mut self.ordered);
        vectorized!({
            fusion::alpha_fast(&self.fusion, boundary, uncertainty, alpha);
            self.gather_tokens(heavy);
        });
        self.scan(states);
        if ids.is_empty() {
            return;
        }
        self.film_all();
        let stride = padded_columns(ids.len());
        let (dims, grid) = (self.dims, self.grid);
        for (k, &id) in self.ordered.iter().enumerate() {
            let io = TileIo { dims, origin: grid.origin(id), film: &self.film[k..], stride, alpha };
            self.refine.run(&io, heavy, detail.as_deref_mut());
        }
    }

    /// Means of the chosen tiles, read where they lie.
    #[inline(always)]
    fn gather_tokens(&mut self, map: &[f32]) {
        let (dims, t) = (self.dims, self.grid.tile);
        let scale = 1.0 / (t * t) as f32;
        for (&id, tokens) in self.ordered.iter().zip(self.tokens.chunks_exact_mut(dims.channels)) {
            let [y, x] = self.grid.origin(id);
            let corner = y as usize * dims.width + x as usize;
            for (plane, token) in map.chunks_exact(dims.plane()).zip(tokens) {
                *token = scale
                    * match t {
                        8 => window_sum::<8>(&plane[corner..], dims.width),
                        16 => window_sum::<16>(&plane[corner..], dims.width),
                        _ => window_sum_any(&plane[corner..], dims.width, t),
                    };
            }
        }
    }

    fn scan(&mut self, states: &mut [f32]) {
        let used = self.ordered.len() * self.dims.channels;
        let inputs = ScanInputs {
            tokens: &self.tokens[..used],
            forward: self.scans[0].view(),
            backward: self.scans[1].view(),
            init_state: None,
            merge_gate: Some(&self.merge_gate),
        };
        let spec = scan_spec(self.ordered.len(), self.dims.channels);
        ssm::fast(&spec, &inputs, &mut self.mixed[..used], states);
    }

    /// FiLM for all tiles at once; `film` ends as `[2C, tiles]`, tanh already applied to gamma.
    fn film_all(&mut self) {
        let (c, tiles) = (self.dims.channels, self.ordered.len());
        let stride = padded_columns(tiles);
        for (k, tokens) in self.mixed.chunks_exact(c).enumerate().take(tiles) {
            layer_norm(tokens, &self.token_norm, &mut self.normed);
            for (row, &value) in self.columns.chunks_exact_mut(stride).zip(&self.normed) {
                row[k] = value;
            }
        }
        product(&self.mlp0.0, &self.columns, stride, stride, &mut self.hidden, stride);
        vectorized!({
            for (row, &bias) in self.hidden.chunks_exact_mut(stride).zip(&self.mlp0.1) {
                for v in row {
                    *v += bias;
                    *v *= simd::sigmoid(*v);
                }
            }
        });
        product(&self.mlp2.0, &self.hidden, stride, stride, &mut self.film, stride);
        for (at, (row, &bias)) in self.film.chunks_exact_mut(stride).zip(&self.mlp2.1).enumerate() {
            for v in &mut row[..tiles] {
                *v += bias;
                *v = if at < c { v.tanh() } else { *v };
            }
        }
    }
}

#[inline(always)]
fn window_sum<const T: usize>(plane: &[f32], width: usize) -> f32 {
    let mut lanes = [0.0f32; T];
    let window = &plane[..(T - 1) * width + T];
    for dy in 0..T {
        let row = &window[dy * width..dy * width + T];
        for i in 0..T {
            lanes[i] += row[i];
        }
    }
    simd::fold(lanes)
}

#[inline(always)]
fn window_sum_any(plane: &[f32], width: usize, t: usize) -> f32 {
    (0..t).map(|dy| simd::sum(&plane[dy * width..dy * width + t])).sum()
}
