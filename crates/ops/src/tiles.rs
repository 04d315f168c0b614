//! Shared by the ops on tiles of a feature map: which tiles, in which order, and how a kernel is launched over them.

use crate::cases::Draw;
use crate::device::unit_bytes;
use crate::error::BuildError;
use crate::op::{Load, NamedParams, Request, product};
use crate::order::{OrderMode, order};
use crate::rng::RandomState;
use crate::shape::{Grid, Nchw, TileSpec};
use holdpoint_cuda::Dtype;
use std::ops::Range;

/// CaseLimits tiles that need not be named: a map of 16 384 × 16 384 in tiles of 16.
const UNNAMED_MAX: usize = 1 << 20;
pub(crate) const MAP_SIZES: &[&str] = &["batch", "channels", "height", "width"];
/// The largest map in fuzzing.
pub(crate) const MAP_SIZES_MAX: &[usize] = &[8, 512, 1024, 1024];
/// Order modes in fuzzing.
pub(crate) const ORDERS: &[&str] = &["none", "hilbert", "multi_direction", "l2r", "r2l", "u2d", "d2u"];

/// A map, its grid, and which tiles of it are chosen.
#[derive(Clone, Debug)]
pub(crate) struct Tiles {
    pub dims: Nchw,
    pub grid: Grid,
    /// Tiles per sample.
    pub count: usize,
    /// Tile ids of all samples.
    pub indices: Vec<u32>,
}

impl Tiles {
    /// The named tiles, the same for each sample; else `kmax` distinct ones drawn per sample, ascending; else all.
    pub(crate) fn new(
        request: &Request,
        tile_size: usize,
        kmax: Option<usize>,
        named: Option<Vec<u32>>,
    ) -> Result<Self, BuildError> {
        let dims = request.feature_map()?;
        let grid = Grid::new(dims.height, dims.width, tile_size).map_err(request.at_param("tile_size"))?;
        let all = grid.count();
        let indices = match (named, kmax) {
            (Some(named), _) => {
                grid.check_indices(&named).map_err(request.at_param("indices"))?;
                named.repeat(dims.batch)
            }
            (None, Some(kmax)) if kmax > all => {
                let problem = format!("kmax={kmax} must be <= total l0 tiles ({all})");
                return Err(request.param_error("kmax", problem));
            }
            (None, Some(kmax)) => {
                let seed_of = |row: usize| request.seed.wrapping_add(row as u64);
                (0..dims.batch).flat_map(|row| draw_ids(all, kmax, seed_of(row))).collect()
            }
            (None, None) if all > UNNAMED_MAX => {
                let problem = format!("name the tiles: there are {all}, over {UNNAMED_MAX}");
                return Err(request.param_error("indices", problem));
            }
            (None, None) => (0..all as u32).collect::<Vec<u32>>().repeat(dims.batch),
        };
        Ok(Self { dims, grid, count: indices.len() / dims.batch, indices })
    }

    pub(crate) fn spec(&self) -> TileSpec {
        TileSpec { dims: self.dims, grid: self.grid, tiles: self.count }
    }

    /// The ids of each sample in the order of a mode.
    pub(crate) fn ordered(&self, mode: Option<OrderMode>) -> Vec<u32> {
        match mode {
            Some(mode) if self.count > 0 => {
                self.indices.chunks(self.count).flat_map(|row| order(row, mode, &self.grid)).collect()
            }
            _ => self.indices.clone(),
        }
    }

    /// The same for some samples only.
    pub(crate) fn part(&self, rows: &Range<usize>) -> Self {
        let indices = self.indices[rows.start * self.count..rows.end * self.count].to_vec();
        Self { dims: Nchw { batch: rows.len(), ..self.dims }, indices, ..self.clone() }
    }

    pub(crate) fn packed_len(&self) -> usize {
        self.indices.len() * self.dims.channels * self.grid.tile * self.grid.tile
    }

    pub(crate) fn packed_dims(&self) -> [usize; 5] {
        [self.dims.batch, self.count, self.dims.channels, self.grid.tile, self.grid.tile]
    }

    /// Sizes that a configuration is chosen for, in the originals' words.
    pub(crate) fn bucket(&self) -> [(&'static str, usize); 6] {
        [
            ("batch", self.dims.batch),
            ("channels", self.dims.channels),
            ("height", self.dims.height),
            ("kmax", self.count),
            ("tile_size", self.grid.tile),
            ("width", self.dims.width),
        ]
    }

    /// Sizes for a user's kernel, beside the map's.
    pub(crate) fn named_params(&self) -> NamedParams {
        vec![("tile_size", self.grid.tile as u64), ("kmax", self.count as u64)]
    }

    /// Number of different cells that the tiles cover.
    pub(crate) fn covered(&self) -> usize {
        let distinct = |row: &[u32]| row.iter().collect::<std::collections::HashSet<_>>().len();
        self.indices.chunks(self.count.max(1)).map(distinct).sum()
    }

    /// Grid and block of a kernel that takes a row of cells at a time: threads along the row, then its rows of pixels, then
    /// channels.
    pub(crate) fn launch(
        &self,
        dtype: Dtype,
        misalign: usize,
        [threads, items, cells_max]: [usize; 3],
    ) -> [[u32; 3]; 2] {
        let tile = self.grid.tile;
        let cells_all = self.dims.width / tile;
        let row_bytes = tile * dtype.bytes();
        let unit = unit_bytes(row_bytes, misalign, dtype);
        let x = (cells_all.min(cells_max) * row_bytes / unit).clamp(1, threads);
        let y = tile.min(threads / x).max(1);
        let z = (threads / (x * y)).clamp(1, BLOCK_Z_MAX);
        let rows = self.dims.height / tile * cells_all.div_ceil(cells_max);
        let channels = self.dims.channels.div_ceil(z * items).min(GRID_YZ_MAX);
        let grid = [rows, channels, self.dims.batch.min(GRID_YZ_MAX)];
        [grid, [x, y, z]].map(|sizes| sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX)))
    }
}

/// CUDA's limits: threads of a block along z, and blocks of a grid along y and z.
const BLOCK_Z_MAX: usize = 64;
const GRID_YZ_MAX: usize = 65_535;

/// `"none"` keeps the ids as given. The default is Hilbert's curve, or `"none"` for drawn tiles.
pub(crate) fn parse_order(
    request: &Request,
    name: Option<&str>,
    kmax: Option<usize>,
) -> Result<Option<OrderMode>, BuildError> {
    let name = name.unwrap_or(if kmax.is_some() { "none" } else { "hilbert" });
    if name.trim().eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let add_none = |error: crate::OpError| format!("{error}; or none");
    name.parse().map(Some).map_err(|error| request.param_error("order_mode", add_none(error)))
}

/// Cost of an op on tiles.
pub(crate) fn load(shape: &[usize], tile_size: usize, kmax: Option<usize>, named: Option<&[u32]>) -> Load {
    let size = |at: usize| shape.get(at).map_or(1, |size| *size as u64);
    let edge = tile_size.max(1) as u64;
    let all = (size(2) / edge).saturating_mul(size(3) / edge);
    let tiles = named.map(<[u32]>::len).or(kmax).map_or(all, |tiles| tiles as u64);
    let tile = edge.saturating_mul(edge).saturating_mul(size(1));
    let packed = tiles.saturating_mul(size(0)).saturating_mul(tile);
    let elements = product(shape).saturating_add(packed).saturating_mul(5);
    // Tiles are sorted by insertion, or by looking for the next.
    let sorting = tiles.saturating_mul(tiles).saturating_mul(size(0));
    Load { elements, operations: elements.saturating_add(sorting) }
}

/// Draws shape, tile size and ids of a case.
pub(crate) fn draw(draw: &mut Draw<'_>) -> (Vec<usize>, usize, Vec<usize>) {
    let tile = draw.pick(&[1, 2, 3, 4, 5, 7, 8, 8, 16, 16]);
    let [rows, columns] = [1 + draw.below(8), 1 + draw.below(8)];
    let batch = 1 + draw.below(3);
    let plane = rows * columns * tile * tile;
    let channels = draw.size((draw.limits.elements / (batch * plane)).clamp(1, 130));
    // In tiles, as the large axis is.
    let mut sizes = [batch, channels, rows, columns];
    draw.large = draw.large.map(|(axis, size)| (axis, if axis < 2 { size } else { (size / tile).max(1) }));
    draw.stretch(&mut sizes, |sizes| sizes.iter().product::<usize>() * tile * tile > draw.limits.elements);
    let [batch, channels, rows, columns] = sizes;
    let mut ids: Vec<usize> = (0..rows * columns).collect();
    draw.random.shuffle(&mut ids);
    ids.truncate(1 + draw.below(rows * columns));
    (vec![batch, channels, rows * tile, columns * tile], tile, ids)
}

/// `kmax` distinct ids below `count`, ascending.
fn draw_ids(count: usize, kmax: usize, seed: u64) -> Vec<u32> {
    let mut random = RandomState::new(seed);
    let mut ids: Vec<u32> = (0..count as u32).collect();
    for at in 0..kmax.min(count) {
        let other = at + (random.uniform() * (count - at) as f64) as usize;
        ids.swap(at, other.min(count - 1));
    }
    ids.truncate(kmax);
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_takes_a_row_of_cells_and_stays_within_the_limits() {
        let params = serde_json::Map::new();
        let launch = |shape: &[usize], tile: usize| {
            let request = Request::new("tile_unpack", shape, "f16", &params);
            Tiles::new(&request, tile, Some(1), None).unwrap().launch(Dtype::F16, 0, [256, 4, 256])
        };
        // 16 cells of 8 elements are 16 packs of 16 bytes.
        assert_eq!(launch(&[1, 128, 128, 128], 8), [[16, 16, 1], [16, 8, 2]]);
        assert_eq!(launch(&[16, 256, 256, 256], 8), [[32, 64, 16], [32, 8, 1]]);
        assert_eq!(launch(&[2, 7, 1, 1], 1), [[1, 1, 2], [1, 1, 64]]);
    }

    #[test]
    fn drawn_tiles_are_distinct_and_in_order() {
        let ids = draw_ids(64, 32, 7);
        assert_eq!(ids.len(), 32);
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]) && ids[31] < 64);
        assert_ne!(ids, draw_ids(64, 32, 8));
        assert_eq!(draw_ids(4, 4, 1), [0, 1, 2, 3]);
    }
}
