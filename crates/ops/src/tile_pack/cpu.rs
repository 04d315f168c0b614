//! TilePack: gathers selected tiles of a feature map into `[B, K, C, t, t]`. Must not change any value.
//!
//! With an order mode each batch row's ids are reordered first; without one they are taken as given.

use crate::buffer::Buffer;
use crate::order::{OrderMode, Orderer, insertion_order};
use crate::shape::TileSpec;
use crate::simd::vectorized;

/// Copies used in turn hold twice the L2 cache of a large core.
const COPIES_BYTES: usize = 4 << 20;
/// At the suites' size three are as steady as eight, and each costs preparation; much smaller maps fit L2 anyway.
const COPIES_MAX: usize = 3;

/// Bytes of one call: every packed value is read once and written once.
pub(crate) fn moved_bytes(spec: &TileSpec) -> usize {
    2 * size_of::<f32>() * spec.dims.batch * spec.tiles * spec.tile_len()
}

/// Copies of map and tiles that timed calls take in turns, so that none finds its own in L2.
pub fn copies(spec: &TileSpec) -> usize {
    COPIES_BYTES.div_ceil(moved_bytes(spec).max(1)).min(COPIES_MAX)
}

/// Packed tiles and where they came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// `[B, K, C, t, t]`.
    pub tiles: Buffer,
    /// `[B, K]` ids in the order of the tiles.
    pub indices: Vec<u32>,
    /// `[B, K]` corners as `[y, x]`.
    pub origins: Vec<[u32; 2]>,
}

impl Packed {
    /// Buffers of the right size, tiles NaN until packed.
    pub fn new(spec: &TileSpec) -> Self {
        let count = spec.dims.batch * spec.tiles;
        Self {
            tiles: Buffer::nan(count * spec.tile_len()),
            indices: vec![0; count],
            origins: vec![[0, 0]; count],
        }
    }

    /// Shrinks or grows the buffers within their capacity.
    pub(crate) fn resize(&mut self, spec: &TileSpec) {
        let count = spec.dims.batch * spec.tiles;
        self.tiles.resize(count * spec.tile_len(), 0.0);
        self.indices.resize(count, 0);
        self.origins.resize(count, [0, 0]);
    }

    pub fn view(&mut self) -> PackedMut<'_> {
        PackedMut { tiles: &mut self.tiles, indices: &mut self.indices, origins: &mut self.origins }
    }
}

/// A borrowed [`Packed`], to be written.
#[derive(Debug)]
pub struct PackedMut<'a> {
    pub tiles: &'a mut [f32],
    pub indices: &'a mut [u32],
    pub origins: &'a mut [[u32; 2]],
}

pub fn oracle(
    spec: &TileSpec,
    feature: &[f32],
    indices: &[u32],
    order: Option<OrderMode>,
    out: PackedMut<'_>,
) {
    let TileSpec { dims, grid, tiles } = *spec;
    out.indices.copy_from_slice(indices);
    if let (Some(mode), true) = (order, tiles > 0) {
        for row in out.indices.chunks_mut(tiles) {
            insertion_order(row, mode, &grid);
        }
    }
    let mut at = 0;
    for b in 0..dims.batch {
        for k in 0..tiles {
            let [y, x] = grid.origin(out.indices[b * tiles + k]);
            out.origins[b * tiles + k] = [y, x];
            for c in 0..dims.channels {
                for dy in 0..grid.tile {
                    for dx in 0..grid.tile {
                        let (row, col) = (y as usize + dy, x as usize + dx);
                        let source = ((b * dims.channels + c) * dims.height + row) * dims.width + col;
                        out.tiles[at] = feature[source];
                        at += 1;
                    }
                }
            }
        }
    }
}

/// Tabled order, whole tile rows at a time. Does not allocate.
pub fn fast(
    spec: &TileSpec,
    feature: &[f32],
    indices: &[u32],
    orderer: Option<&mut Orderer>,
    mut out: PackedMut<'_>,
) {
    if spec.tiles == 0 {
        return;
    }
    match orderer {
        Some(orderer) => {
            for (row, ordered) in indices.chunks(spec.tiles).zip(out.indices.chunks_mut(spec.tiles)) {
                orderer.order_into(row, ordered);
            }
        }
        None => out.indices.copy_from_slice(indices),
    }
    for (origin, &index) in out.origins.iter_mut().zip(&*out.indices) {
        *origin = spec.grid.origin(index);
    }
    vectorized!(match spec.grid.tile {
        4 => gather::<4>(spec, feature, &mut out),
        8 => gather::<8>(spec, feature, &mut out),
        16 => gather::<16>(spec, feature, &mut out),
        32 => gather::<32>(spec, feature, &mut out),
        _ => gather_any(spec, feature, &mut out),
    });
}

/// Tiles are aligned to their edge, so a map is a list of `T`-wide rows and a gather picks among them.
/// Channels are the outer loop: all reads of one step stay within one plane, whose pages the TLB holds.
#[inline(always)]
fn gather<const T: usize>(spec: &TileSpec, feature: &[f32], out: &mut PackedMut<'_>) {
    let (channels, stride, plane_len) = (spec.dims.channels, spec.dims.width / T, spec.dims.plane());
    let per_row = spec.tiles * spec.tile_len();
    for (b, row_tiles) in out.tiles.chunks_exact_mut(per_row).enumerate() {
        let origins = &out.origins[b * spec.tiles..(b + 1) * spec.tiles];
        let (blocks, _) = row_tiles.as_chunks_mut::<T>().0.as_chunks_mut::<T>();
        for c in 0..channels {
            let plane = &feature[(b * channels + c) * plane_len..][..plane_len];
            let (source, _) = plane.as_chunks::<T>();
            for (k, &[y, x]) in origins.iter().enumerate() {
                let first = y as usize * stride + x as usize / T;
                let window = &source[first..][..(T - 1) * stride + 1];
                let block = &mut blocks[k * channels + c];
                for (dy, row) in block.iter_mut().enumerate() {
                    *row = window[dy * stride];
                }
            }
        }
    }
}

#[inline(always)]
fn gather_any(spec: &TileSpec, feature: &[f32], out: &mut PackedMut<'_>) {
    let (t, dims) = (spec.grid.tile, spec.dims);
    for (at, tile) in out.tiles.chunks_exact_mut(spec.tile_len()).enumerate() {
        let sample = &feature[at / spec.tiles * dims.sample()..][..dims.sample()];
        let [y, x] = out.origins[at];
        for (c, channel) in tile.chunks_exact_mut(t * t).enumerate() {
            for (dy, row) in channel.chunks_exact_mut(t).enumerate() {
                let start = c * dims.plane() + (y as usize + dy) * dims.width + x as usize;
                row.copy_from_slice(&sample[start..start + t]);
            }
        }
    }
}
