//! Unpack by levels: tiles are sorted by (level, position) and applied in that order, without a priority map.

use super::{Unpack, put_tile};
use crate::error::OpError;
use crate::select::check_length;
use crate::simd::vectorized;

/// Sort keys of all tiles, `[B, K]`. Without levels the position alone decides.
pub fn keys(tiles: usize, batch: usize, levels: Option<&[i32]>) -> Result<Vec<i32>, OpError> {
    let positions = (0..batch).flat_map(|_| 0..tiles as i64);
    let Some(levels) = levels else { return Ok(positions.map(|k| k as i32).collect()) };
    check_length("levels", batch * tiles, levels.len())?;
    // The smallest level of the whole tensor, not of each row.
    let lowest = levels.iter().copied().min().map_or(0, i64::from);
    let span = levels.iter().copied().max().map_or(0, i64::from) - lowest;
    let bits = (usize::BITS - tiles.saturating_sub(1).leading_zeros()).max(1);
    let overflow = || OpError::PriorityKeyOverflow { span, tiles };
    levels
        .iter()
        .zip(positions)
        .map(|(&level, k)| {
            let shifted = (i64::from(level) - lowest).checked_mul(1 << bits).ok_or_else(overflow)?;
            i32::try_from(shifted + k).map_err(|_| overflow())
        })
        .collect()
}

/// For each batch row the positions of its tiles by ascending key.
pub fn application_order(keys: &[i32], tiles: usize) -> Vec<u32> {
    let mut order = Vec::with_capacity(keys.len());
    if tiles > 0 {
        for row in keys.chunks(tiles) {
            let start = order.len();
            order.extend(0..tiles as u32);
            order[start..].sort_by_key(|&k| row[k as usize]);
        }
    }
    order
}

/// The obvious loops: repeatedly the tile with the next larger key, one element at a time.
pub fn oracle(unpack: &Unpack<'_>, keys: &[i32], merged: &mut [f32]) {
    let Unpack { spec, overlap, base, packed, origins } = *unpack;
    let (dims, t) = (spec.dims, spec.grid.tile);
    merged.copy_from_slice(base);
    for b in 0..dims.batch {
        let mut last = i32::MIN;
        // Keys within a row are distinct because they contain the position.
        while let Some(k) = next_key(&keys[b * spec.tiles..(b + 1) * spec.tiles], last) {
            last = keys[b * spec.tiles + k];
            let [y, x] = origins[b * spec.tiles + k];
            for c in 0..dims.channels {
                for dy in 0..t {
                    for dx in 0..t {
                        let (row, col) = (y as usize + dy, x as usize + dx);
                        let source = (((b * spec.tiles + k) * dims.channels + c) * t + dy) * t + dx;
                        let target = ((b * dims.channels + c) * dims.height + row) * dims.width + col;
                        merged[target] = overlap.apply(merged[target], packed[source]);
                    }
                }
            }
        }
    }
}

fn next_key(row: &[i32], last: i32) -> Option<usize> {
    (0..row.len()).filter(|&k| row[k] > last).min_by_key(|&k| row[k])
}

/// Whole rows in the order of [`application_order`]. The order is rebuilt into `order` at each call.
pub fn fast(unpack: &Unpack<'_>, keys: &[i32], order: &mut [u32], merged: &mut [f32]) {
    let Unpack { ref spec, base, packed, origins, .. } = *unpack;
    merged.copy_from_slice(base);
    if spec.tiles == 0 || spec.dims.is_empty() {
        return;
    }
    let (tiles, tile_len) = (spec.tiles, spec.tile_len());
    vectorized!({
        for (b, order) in order.chunks_mut(tiles).enumerate() {
            let keys = &keys[b * tiles..(b + 1) * tiles];
            for (k, slot) in order.iter_mut().enumerate() {
                *slot = k as u32;
            }
            order.sort_unstable_by_key(|&k| keys[k as usize]);
            let sample = &mut merged[b * spec.dims.sample()..(b + 1) * spec.dims.sample()];
            for &k in order.iter() {
                let at = b * tiles + k as usize;
                put_tile(unpack, &packed[at * tile_len..(at + 1) * tile_len], origins[at], sample);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Nchw, TileSpec};
    use crate::tile_unpack::cpu::Overlap;

    fn two_tiles(values: [f32; 2], levels: Option<&[i32]>, overlap: Overlap) -> Vec<f32> {
        let spec = TileSpec::new(Nchw::new(1, 1, 8, 8), 4, 2).unwrap();
        let packed: Vec<f32> = values.iter().flat_map(|&v| [v; 16]).collect();
        let keys = keys(2, 1, levels).unwrap();
        let mut merged = vec![f32::NAN; 64];
        let unpack = Unpack { spec, overlap, base: &[0.0; 64], packed: &packed, origins: &[[0, 0], [2, 2]] };
        oracle(&unpack, &keys, &mut merged);
        merged
    }

    #[test]
    fn a_higher_level_wins_then_a_later_tile() {
        let at = |m: &[f32], y: usize, x: usize| m[y * 8 + x];
        let merged = two_tiles([1.0, 9.0], Some(&[0, 2]), Overlap::Override);
        assert_eq!((at(&merged, 2, 2), at(&merged, 1, 1), at(&merged, 7, 7)), (9.0, 1.0, 0.0));
        let merged = two_tiles([1.0, 9.0], Some(&[2, 0]), Overlap::Override);
        assert_eq!((at(&merged, 2, 2), at(&merged, 5, 5)), (1.0, 9.0));
        let merged = two_tiles([2.0, 7.0], None, Overlap::Override);
        assert_eq!((at(&merged, 2, 2), at(&merged, 1, 1)), (7.0, 2.0));
    }

    #[test]
    fn blends_compose_in_order() {
        let blend = Overlap::parse("blend", 0.25).unwrap();
        let merged = two_tiles([1.0, 3.0], Some(&[1, 2]), blend);
        assert_eq!((merged[0], merged[5 * 8 + 5], merged[2 * 8 + 2]), (0.25, 0.75, 0.9375));
    }

    #[test]
    fn levels_that_do_not_fit_a_key_are_refused() {
        let error = keys(2, 1, Some(&[i32::MIN, i32::MAX])).unwrap_err().to_string();
        assert!(error.starts_with("priority key overflow for int32"), "{error}");
    }
}
