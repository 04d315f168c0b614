//! Fused stage 1: packs tiles, applies `(value_scale*x + value_bias) * max(0, gate_scale*x + gate_bias)`, unpacks with override.
//! Must not accept a tile twice in a row: the fast version works in place.

use crate::error::OpError;
use crate::shape::TileSpec;
use crate::simd::{relu, vectorized};
use crate::tile_pack::cpu::{self as pack, Packed};
use crate::tile_unpack::cpu::{Overlap, Unpack, levels};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    pub value_scale: f32,
    pub value_bias: f32,
    pub gate_scale: f32,
    pub gate_bias: f32,
}

impl Default for Affine {
    fn default() -> Self {
        Self { value_scale: 1.0, value_bias: 0.0, gate_scale: 1.0, gate_bias: 0.0 }
    }
}

impl Affine {
    /// One pixel. A NaN in the gate stays a NaN.
    #[inline(always)]
    pub fn apply(&self, x: f32) -> f32 {
        (self.value_scale * x + self.value_bias) * relu(self.gate_scale * x + self.gate_bias)
    }
}

/// Checks that no row names a tile twice.
pub fn check_unique(indices: &[u32], tiles: usize, grid_count: usize) -> Result<(), OpError> {
    for row in indices.chunks(tiles.max(1)) {
        let mut seen = vec![false; grid_count];
        for &index in row {
            match seen.get_mut(index as usize) {
                Some(slot) if !*slot => *slot = true,
                Some(_) => return Err(OpError::IndicesNotUnique(index)),
                None => return Err(OpError::IndicesOutOfBounds { index: index as usize, count: grid_count }),
            }
        }
    }
    Ok(())
}

/// Three separate steps; `packed` and `keys` (ascending positions) are its working space.
pub fn oracle(
    spec: &TileSpec,
    op: &Affine,
    feature: &[f32],
    indices: &[u32],
    packed: &mut Packed,
    keys: &[i32],
    merged: &mut [f32],
) {
    pack::oracle(spec, feature, indices, None, packed.view());
    for pixel in packed.tiles.iter_mut() {
        *pixel = op.apply(*pixel);
    }
    let unpack = Unpack {
        spec: *spec,
        overlap: Overlap::Override,
        base: feature,
        packed: &packed.tiles,
        origins: &packed.origins,
    };
    levels::oracle(&unpack, keys, merged);
}

/// One copy, then the op on the selected rows in place.
pub fn fast(spec: &TileSpec, op: &Affine, feature: &[f32], indices: &[u32], merged: &mut [f32]) {
    merged.copy_from_slice(feature);
    if spec.tiles == 0 || spec.dims.is_empty() {
        return;
    }
    vectorized!(match spec.grid.tile {
        8 => in_place::<8>(spec, op, indices, merged),
        16 => in_place::<16>(spec, op, indices, merged),
        32 => in_place::<32>(spec, op, indices, merged),
        tile => in_place_any(spec, op, indices, merged, tile),
    });
}

#[inline(always)]
fn in_place<const T: usize>(spec: &TileSpec, op: &Affine, indices: &[u32], merged: &mut [f32]) {
    in_place_any(spec, op, indices, merged, T);
}

#[inline(always)]
fn in_place_any(spec: &TileSpec, op: &Affine, indices: &[u32], merged: &mut [f32], tile: usize) {
    let dims = spec.dims;
    for (row, sample) in indices.chunks(spec.tiles).zip(merged.chunks_exact_mut(dims.sample())) {
        for &index in row {
            let [y, x] = spec.grid.origin(index);
            for plane in sample.chunks_exact_mut(dims.plane()) {
                for dy in 0..tile {
                    let start = (y as usize + dy) * dims.width + x as usize;
                    for pixel in &mut plane[start..start + tile] {
                        *pixel = op.apply(*pixel);
                    }
                }
            }
        }
    }
}
