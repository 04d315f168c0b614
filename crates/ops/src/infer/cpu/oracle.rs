//! The obvious loops. Means and variances are summed in f64, so the reference carries no rounding of its own.

use super::{CHANNELS, FF_STRIDE, Model, PV_STRIDE};
use crate::order::OrderMode;
use crate::shape::Nchw;
use crate::tile_pack::cpu as pack;
use crate::tile_unpack::cpu::priority::{self, PRIORITY_L0};
use crate::tile_unpack::cpu::{Overlap, Unpack};

/// Runs the model on a `[1, 3, H, W]` image.
pub fn oracle(model: &mut Model, image: &[f32]) {
    pool(image, &model.image, PV_STRIDE, &mut model.outputs.pv16);
    pool(image, &model.image, FF_STRIDE, &mut model.outputs.ff8);
    for tile in 0..model.grid.count() {
        model.utilities[tile] = signal(model, tile as u32);
    }
    model.route();
    let spec = model.tile_spec();
    model.packed.resize(&spec);
    pack::oracle(&spec, &model.outputs.ff8, &model.selected, Some(OrderMode::Hilbert), model.packed.view());
    let pixels = model.grid.tile * model.grid.tile;
    for (token, tile) in model.tokens.iter_mut().zip(model.packed.tiles.chunks_exact(pixels)) {
        *token = (tile.iter().map(|&v| f64::from(v)).sum::<f64>() / pixels as f64) as f32;
    }
    model.scan();
    for (at, tile) in model.packed.tiles.chunks_exact_mut(pixels).enumerate() {
        for value in tile {
            *value = *value * (1.0 + model.gamma[at]) + model.mixed[at];
        }
    }
    model.priority_map.fill(0);
    let (packed, origins) = (&model.packed.tiles, &model.packed.origins);
    let unpack = Unpack { spec, overlap: Overlap::Override, base: &model.outputs.ff8, packed, origins };
    priority::oracle(&unpack, PRIORITY_L0, &mut model.priority_map, &mut model.outputs.merged);
    let largest = model.outputs.merged.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    model.outputs.score = largest.clamp(0.0, 1.0);
}

fn pool(image: &[f32], dims: &Nchw, stride: usize, out: &mut [f32]) {
    let (rows, cols) = (dims.height / stride, dims.width / stride);
    for c in 0..CHANNELS {
        for row in 0..rows {
            for col in 0..cols {
                let mut sum = 0.0;
                for dy in 0..stride {
                    for dx in 0..stride {
                        let at = (c * dims.height + row * stride + dy) * dims.width + col * stride + dx;
                        sum += f64::from(image[at]);
                    }
                }
                out[(c * rows + row) * cols + col] = (sum / (stride * stride) as f64) as f32;
            }
        }
    }
}

/// Population variance plus mean magnitude of one tile over all channels.
fn signal(model: &Model, tile: u32) -> f64 {
    let [y, x] = model.grid.origin(tile);
    let (t, dims) = (model.grid.tile, &model.ff);
    let (mut sum, mut magnitude) = (0.0, 0.0);
    let value = |c: usize, dy: usize, dx: usize| {
        let (row, col) = (y as usize + dy, x as usize + dx);
        f64::from(model.outputs.ff8[(c * dims.height + row) * dims.width + col])
    };
    let count = (CHANNELS * t * t) as f64;
    for (c, dy, dx) in elements(t) {
        sum += value(c, dy, dx);
        magnitude += value(c, dy, dx).abs();
    }
    let mean = sum / count;
    let squares: f64 = elements(t).map(|(c, dy, dx)| (value(c, dy, dx) - mean).powi(2)).sum();
    squares / count + magnitude / count
}

fn elements(t: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..CHANNELS).flat_map(move |c| (0..t).flat_map(move |dy| (0..t).map(move |dx| (c, dy, dx))))
}
