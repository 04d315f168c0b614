//! Modulates, refines and gates one tile. Its buffers (about half a megabyte at 128 channels and 16x16
//! pixels) are reused for every tile, so that they stay in L2.

use super::{NORM_EPS, PathWeights};
use crate::buffer::Buffer;
use crate::product::{COLUMN_STEP, PackedLhs, padded_columns, product};
use crate::shape::Nchw;
use crate::simd::{Lanes, relu, vectorized};

pub(super) struct TileIo<'a> {
    pub dims: Nchw,
    pub origin: [u32; 2],
    /// `[2C, tiles]` from the tile's own column on, `stride` apart: gamma, then beta.
    pub film: &'a [f32],
    pub stride: usize,
    /// The gate of the whole map.
    pub alpha: &'a [f32],
}

#[derive(Clone, Debug)]
pub(super) struct Refine {
    tile: usize,
    channels: usize,
    columns: usize,
    /// Row to row in `convolved` and `wide`: an odd number of cache lines, so that the rows of a column block fall
    /// into different sets of the L1 cache.
    stride: usize,
    depthwise: [Vec<f32>; 2],
    pointwise: (PackedLhs, Vec<f32>),
    norm: [Vec<f32>; 2],
    /// Modulated tile with a zero border of one pixel, `[C, t + 2, t + 2]`.
    bordered: Buffer,
    convolved: Buffer,
    wide: Buffer,
}

impl Refine {
    pub(super) fn new(channels: usize, tile: usize, weights: &PathWeights) -> Self {
        let columns = padded_columns(tile * tile);
        let stride = ((columns / COLUMN_STEP) | 1) * COLUMN_STEP;
        let w = weights;
        Self {
            tile,
            channels,
            columns,
            stride,
            depthwise: w.depthwise.clone(),
            pointwise: (PackedLhs::new(&w.pointwise[0], 2 * channels, channels), w.pointwise[1].clone()),
            norm: w.norm.clone(),
            bordered: Buffer::filled(0.0, channels * (tile + 2) * (tile + 2)),
            convolved: Buffer::filled(0.0, channels * stride),
            wide: Buffer::filled(0.0, 2 * channels * stride),
        }
    }

    pub(super) fn run(&mut self, io: &TileIo<'_>, heavy: &mut [f32], detail: Option<&mut [f32]>) {
        vectorized!(match self.tile {
            8 => self.modulate_and_convolve::<8>(io, heavy, 8),
            16 => self.modulate_and_convolve::<16>(io, heavy, 16),
            tile => self.modulate_and_convolve::<0>(io, heavy, tile),
        });
        let (columns, stride) = (self.columns, self.stride);
        product(&self.pointwise.0, &self.convolved, stride, columns, &mut self.wide, stride);
        vectorized!({
            let moments = self.moments();
            match self.tile {
                8 => self.gate_and_fuse(io, moments, heavy, detail, 8),
                16 => self.gate_and_fuse(io, moments, heavy, detail, 16),
                tile => self.gate_and_fuse(io, moments, heavy, detail, tile),
            }
        });
    }

    /// `T` is the tile edge when known at compile time, else 0. A few channels are modulated before they are
    /// convolved: a load that spans values just stored would wait for them.
    #[inline(always)]
    fn modulate_and_convolve<const T: usize>(&mut self, io: &TileIo<'_>, map: &[f32], t: usize) {
        const GROUP: usize = 8;
        let edge = t + 2;
        for first in (0..self.channels).step_by(GROUP) {
            let group = first..(first + GROUP).min(self.channels);
            for c in group.clone() {
                self.modulate(io, map, t, c);
            }
            for c in group {
                let bordered = &self.bordered[c * edge * edge..(c + 1) * edge * edge];
                let out = &mut self.convolved[c * self.stride..c * self.stride + t * t];
                let mut kernel = [0.0; 9];
                kernel.copy_from_slice(&self.depthwise[0][c * 9..c * 9 + 9]);
                let bias = self.depthwise[1][c];
                if T == 0 {
                    convolve_any(bordered, &kernel, bias, t, out);
                } else {
                    convolve::<T>(bordered, &kernel, bias, out);
                }
            }
        }
    }

    #[inline(always)]
    fn modulate(&mut self, io: &TileIo<'_>, map: &[f32], t: usize, c: usize) {
        let (edge, width, plane) = (t + 2, io.dims.width, io.dims.plane());
        let corner = io.origin[0] as usize * width + io.origin[1] as usize;
        let (gamma, beta) = (io.film[c * io.stride], io.film[(self.channels + c) * io.stride]);
        let scale = 1.0 + gamma;
        let bordered = &mut self.bordered[c * edge * edge..(c + 1) * edge * edge];
        for dy in 0..t {
            let source = &map[c * plane + corner + dy * width..][..t];
            let target = &mut bordered[(dy + 1) * edge + 1..][..t];
            for (target, &value) in target.iter_mut().zip(source) {
                *target = scale * value + beta;
            }
        }
    }

    /// Mean and inverse deviation over all channels and pixels, the bias counted in but not written out.
    #[inline(always)]
    fn moments(&self) -> (f32, f32) {
        let pixels = self.tile * self.tile;
        let count = (2 * self.channels * pixels) as f64;
        let bias = &self.pointwise.1;
        let biases: f64 = bias.iter().map(|&bias| f64::from(bias)).sum();
        let mean = ((self.sum_wide(|value, _| value) + biases * pixels as f64) / count) as f32;
        let squares = self.sum_wide(|value, channel| {
            let distance = value - (mean - bias[channel]);
            distance * distance
        });
        (mean, (1.0 / (squares / count + NORM_EPS).sqrt()) as f32)
    }

    /// Sum of `term(value, channel)` over the product, in f32 within a group of rows and in f64 over groups.
    #[inline(always)]
    fn sum_wide(&self, term: impl Fn(f32, usize) -> f32) -> f64 {
        const ROWS: usize = 8;
        let mut total = 0.0;
        for (group, rows) in self.wide.chunks(ROWS * self.stride).enumerate() {
            let mut lanes = Lanes::ZERO;
            for (row, values) in rows.chunks_exact(self.stride).enumerate() {
                lanes.add(&values[..self.tile * self.tile], |value| term(value, group * ROWS + row));
            }
            total += f64::from(lanes.fold());
        }
        total
    }

    /// Normalises, gates, adds the residual and mixes into the map.
    #[inline(always)]
    fn gate_and_fuse(
        &self,
        io: &TileIo<'_>,
        (mean, inverse): (f32, f32),
        heavy: &mut [f32],
        mut detail: Option<&mut [f32]>,
        t: usize,
    ) {
        let (edge, width, plane) = (t + 2, io.dims.width, io.dims.plane());
        let corner = io.origin[0] as usize * width + io.origin[1] as usize;
        let affine = |o: usize| {
            let scale = inverse * self.norm[0][o];
            (scale, self.norm[1][o] + (self.pointwise.1[o] - mean) * scale)
        };
        for c in 0..self.channels {
            let (scale_a, shift_a) = affine(c);
            let (scale_b, shift_b) = affine(self.channels + c);
            let a = &self.wide[c * self.stride..][..t * t];
            let b = &self.wide[(self.channels + c) * self.stride..][..t * t];
            let bordered = &self.bordered[c * edge * edge..(c + 1) * edge * edge];
            for dy in 0..t {
                let start = corner + dy * width;
                let residual = &bordered[(dy + 1) * edge + 1..][..t];
                let (a, b) = (&a[dy * t..][..t], &b[dy * t..][..t]);
                let alpha = &io.alpha[start..][..t];
                let row = &mut heavy[c * plane + start..][..t];
                if let Some(detail) = detail.as_deref_mut() {
                    let detail = &mut detail[c * plane + start..][..t];
                    for i in 0..t {
                        let refined = (a[i] * scale_a + shift_a) * relu(b[i] * scale_b + shift_b);
                        let base = row[i];
                        let mixed = base + alpha[i] * (residual[i] + refined - base);
                        detail[i] = mixed - base;
                        row[i] = mixed;
                    }
                } else {
                    for i in 0..t {
                        let refined = (a[i] * scale_a + shift_a) * relu(b[i] * scale_b + shift_b);
                        let base = row[i];
                        row[i] = base + alpha[i] * (residual[i] + refined - base);
                    }
                }
            }
        }
    }
}

/// Each row of the tile is loaded once and added to the three rows of the answer that it touches.
#[inline(always)]
fn convolve<const T: usize>(bordered: &[f32], kernel: &[f32; 9], bias: f32, out: &mut [f32]) {
    let edge = T + 2;
    let (rows, _) = out.as_chunks_mut::<T>();
    let [mut above, mut here] = [[bias; T]; 2];
    for (y, window) in bordered.chunks_exact(edge).enumerate() {
        let taps: [&[f32; T]; 3] = std::array::from_fn(|dx| window[dx..].first_chunk().unwrap_or(&[0.0; T]));
        let mut below = [bias; T];
        for (dx, tap) in taps.into_iter().enumerate() {
            for i in 0..T {
                above[i] += kernel[6 + dx] * tap[i];
                here[i] += kernel[3 + dx] * tap[i];
                below[i] += kernel[dx] * tap[i];
            }
        }
        // The row two above has now seen all three of its rows.
        if let Some(row) = y.checked_sub(2).and_then(|y| rows.get_mut(y)) {
            *row = above;
        }
        (above, here) = (here, below);
    }
}

#[inline(always)]
fn convolve_any(bordered: &[f32], kernel: &[f32; 9], bias: f32, t: usize, out: &mut [f32]) {
    let edge = t + 2;
    for (y, row) in out.chunks_exact_mut(t).enumerate() {
        row.fill(bias);
        for dy in 0..3 {
            for dx in 0..3 {
                let source = &bordered[(y + dy) * edge + dx..][..t];
                for (sum, &value) in row.iter_mut().zip(source) {
                    *sum += kernel[dy * 3 + dx] * value;
                }
            }
        }
    }
}
