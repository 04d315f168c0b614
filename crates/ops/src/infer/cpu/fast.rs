//! One pass over the image: the 8x8 sums are kept and four of them make a 16x16 sum.

use super::{CHANNELS, FF_STRIDE, Model, PV_STRIDE};
use crate::simd::{self, vectorized};
use crate::tile_pack::cpu as pack;
use crate::tile_unpack::cpu::priority::{self, PRIORITY_L0};
use crate::tile_unpack::cpu::{Overlap, Unpack};

/// Runs the model on a `[1, 3, H, W]` image without allocating.
pub fn fast(model: &mut Model, image: &[f32]) {
    vectorized!({
        pool_fine(model, image);
        pool_coarse(model);
        for tile in 0..model.grid.count() {
            model.utilities[tile] = signal(model, tile as u32);
        }
    });
    model.route();
    let spec = model.tile_spec();
    model.packed.resize(&spec);
    let orderer = Some(&mut model.orderer);
    pack::fast(&spec, &model.outputs.ff8, &model.selected, orderer, model.packed.view());
    vectorized!(tokens(model));
    model.scan();
    vectorized!(modulate(model));
    model.priority_map.fill(0);
    let (packed, origins) = (&model.packed.tiles, &model.packed.origins);
    let unpack = Unpack { spec, overlap: Overlap::Override, base: &model.outputs.ff8, packed, origins };
    priority::fast(&unpack, PRIORITY_L0, &mut model.priority_map, &mut model.outputs.merged);
    model.outputs.score = vectorized!(largest(&model.outputs.merged).clamp(0.0, 1.0));
}

/// Adds eight rows vertically, then eight neighbours horizontally.
#[inline(always)]
fn pool_fine(model: &mut Model, image: &[f32]) {
    let (width, cols) = (model.image.width, model.ff.width);
    let bands = image.chunks_exact(model.image.plane()).flat_map(|p| p.chunks_exact(FF_STRIDE * width));
    let sums = &mut model.sums[..width];
    for (band, out) in bands.zip(model.outputs.ff8.chunks_exact_mut(cols)) {
        let (first, rest) = band.split_at(width);
        sums.copy_from_slice(first);
        for row in rest.chunks_exact(width) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        let (groups, _) = sums.as_chunks::<FF_STRIDE>();
        for (out, s) in out.iter_mut().zip(groups) {
            let sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
            *out = sum * (1.0 / (FF_STRIDE * FF_STRIDE) as f32);
        }
    }
}

#[inline(always)]
fn pool_coarse(model: &mut Model) {
    let (rows, cols) = (model.image.height / PV_STRIDE, model.image.width / PV_STRIDE);
    for c in 0..CHANNELS {
        for row in 0..rows {
            for col in 0..cols {
                let at = (c * model.ff.height + 2 * row) * model.ff.width + 2 * col;
                let fine = &model.outputs.ff8;
                let sum =
                    (fine[at] + fine[at + 1]) + (fine[at + model.ff.width] + fine[at + model.ff.width + 1]);
                model.outputs.pv16[(c * rows + row) * cols + col] = 0.25 * sum;
            }
        }
    }
}

/// Moments row by row in f32, rows in f64: close enough to the two-pass variance for values near one.
#[inline(always)]
fn signal(model: &Model, tile: u32) -> f64 {
    let [y, x] = model.grid.origin(tile);
    let (t, dims) = (model.grid.tile, &model.ff);
    let row = |c: usize, dy: usize| {
        let start = (c * dims.height + y as usize + dy) * dims.width + x as usize;
        &model.outputs.ff8[start..start + t]
    };
    let count = (CHANNELS * t * t) as f64;
    let (mut sum, mut magnitude, mut squares) = (0.0, 0.0, 0.0);
    for c in 0..CHANNELS {
        for dy in 0..t {
            let (mut s, mut m) = (0.0f32, 0.0f32);
            for &value in row(c, dy) {
                s += value;
                m += value.abs();
            }
            sum += f64::from(s);
            magnitude += f64::from(m);
        }
    }
    let mean = (sum / count) as f32;
    for c in 0..CHANNELS {
        for dy in 0..t {
            squares += f64::from(simd::sum_squares(row(c, dy), mean));
        }
    }
    squares / count + magnitude / count
}

#[inline(always)]
fn tokens(model: &mut Model) {
    let pixels = model.grid.tile * model.grid.tile;
    for (token, tile) in model.tokens.iter_mut().zip(model.packed.tiles.chunks_exact(pixels)) {
        *token = simd::sum(tile) / pixels as f32;
    }
}

#[inline(always)]
fn modulate(model: &mut Model) {
    let pixels = model.grid.tile * model.grid.tile;
    for (at, tile) in model.packed.tiles.chunks_exact_mut(pixels).enumerate() {
        let (scale, shift) = (1.0 + model.gamma[at], model.mixed[at]);
        for value in tile {
            *value = *value * scale + shift;
        }
    }
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 32];
    let chunks = values.chunks_exact(32);
    for (lane, &value) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = lane.max(value);
    }
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}
