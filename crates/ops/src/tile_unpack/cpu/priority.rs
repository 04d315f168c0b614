//! Unpack with a priority map: a tile may write a pixel only if its level is at least the pixel's.

use super::{Unpack, put_tile};
use crate::shape::TileSpec;
use crate::simd::vectorized;

/// Priority of level-0 tiles.
pub(crate) const PRIORITY_L0: i8 = 1;

/// The obvious loops. `map` is read and updated; equal priority may write, so the later tile wins.
pub fn oracle(unpack: &Unpack<'_>, level: i8, map: &mut [i8], merged: &mut [f32]) {
    let Unpack { spec, overlap, base, packed, origins } = *unpack;
    let (dims, t) = (spec.dims, spec.grid.tile);
    merged.copy_from_slice(base);
    for b in 0..dims.batch {
        for k in 0..spec.tiles {
            let [y, x] = origins[b * spec.tiles + k];
            for dy in 0..t {
                for dx in 0..t {
                    let (row, col) = (y as usize + dy, x as usize + dx);
                    let pixel = (b * dims.height + row) * dims.width + col;
                    if level < map[pixel] {
                        continue;
                    }
                    map[pixel] = level;
                    for c in 0..dims.channels {
                        let source = (((b * spec.tiles + k) * dims.channels + c) * t + dy) * t + dx;
                        let target = ((b * dims.channels + c) * dims.height + row) * dims.width + col;
                        merged[target] = overlap.apply(merged[target], packed[source]);
                    }
                }
            }
        }
    }
}

/// Copies the base, then writes whole rows of every tile that the map lets through entirely.
pub fn fast(unpack: &Unpack<'_>, level: i8, map: &mut [i8], merged: &mut [f32]) {
    let Unpack { ref spec, base, packed, origins, .. } = *unpack;
    merged.copy_from_slice(base);
    if spec.tiles == 0 || spec.dims.is_empty() {
        return;
    }
    vectorized!({
        for (at, tile) in packed.chunks_exact(spec.tile_len()).enumerate() {
            let b = at / spec.tiles;
            let map = &mut map[b * spec.dims.plane()..(b + 1) * spec.dims.plane()];
            let sample = &mut merged[b * spec.dims.sample()..(b + 1) * spec.dims.sample()];
            if all_allowed(spec, origins[at], level, map) {
                put_tile(unpack, tile, origins[at], sample);
            } else {
                put_allowed(unpack, tile, origins[at], level, map, sample);
            }
            raise(spec, origins[at], level, map);
        }
    });
}

#[inline(always)]
fn map_rows(spec: &TileSpec, [y, x]: [u32; 2]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (tile, width) = (spec.grid.tile, spec.dims.width);
    (0..tile).map(move |dy| {
        let start = (y as usize + dy) * width + x as usize;
        start..start + tile
    })
}

#[inline(always)]
fn all_allowed(spec: &TileSpec, origin: [u32; 2], level: i8, map: &[i8]) -> bool {
    map_rows(spec, origin).all(|row| map[row].iter().fold(true, |all, &p| all & (level >= p)))
}

#[inline(always)]
fn raise(spec: &TileSpec, origin: [u32; 2], level: i8, map: &mut [i8]) {
    for row in map_rows(spec, origin) {
        for priority in &mut map[row] {
            *priority = level.max(*priority);
        }
    }
}

#[inline(always)]
fn put_allowed(
    unpack: &Unpack<'_>,
    tile: &[f32],
    origin: [u32; 2],
    level: i8,
    map: &[i8],
    sample: &mut [f32],
) {
    let (spec, t) = (&unpack.spec, unpack.spec.grid.tile);
    for (c, channel) in tile.chunks_exact(t * t).enumerate() {
        let plane = &mut sample[c * spec.dims.plane()..(c + 1) * spec.dims.plane()];
        for (incoming, row) in channel.chunks_exact(t).zip(map_rows(spec, origin)) {
            let current = plane[row.clone()].iter_mut().zip(incoming);
            for ((current, &incoming), &priority) in current.zip(&map[row]) {
                let value = unpack.overlap.apply(*current, incoming);
                *current = if level >= priority { value } else { *current };
            }
        }
    }
}
