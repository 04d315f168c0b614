//! The ops on tiles of a feature map.

pub(super) mod fused;
pub(super) mod pack;
pub(super) mod unpack;

use super::{param_error, shape_error, unit_bytes};
use crate::program::Request;
use holdpoint_ops::BuildError;
use holdpoint_ops::rng::RandomState;
use holdpoint_ops::shape::{Grid, Nchw};

/// A map, its grid, and which tiles of it are chosen.
#[derive(Clone, Debug)]
struct Tiles {
    dims: Nchw,
    grid: Grid,
    tile: usize,
    /// Tiles per row of the batch.
    count: usize,
    /// All rows' tile ids.
    indices: Vec<u32>,
}

impl Tiles {
    /// The tiles that were named, or else `kmax` distinct ones drawn for each row, in ascending order.
    fn new(
        request: &Request<'_>,
        tile: usize,
        kmax: usize,
        named: Option<&[u32]>,
    ) -> Result<Self, BuildError> {
        let [batch, channels, height, width] = *request.shape else {
            return Err(shape_error(request, "feature_map must be [B,C,H,W]"));
        };
        let grid =
            Grid::new(height, width, tile).map_err(|error| param_error(request, "tile_size", error))?;
        if let Some(named) = named {
            grid.check_indices(named).map_err(|error| param_error(request, "indices", error))?;
        } else if kmax > grid.count() {
            let problem = format!("kmax={kmax} must be <= total l0 tiles ({})", grid.count());
            return Err(param_error(request, "kmax", problem));
        }
        let count = named.map_or(kmax, <[u32]>::len);
        let row = |b: usize| {
            named.map_or_else(|| chosen(grid.count(), kmax, request.seed + b as u64), <[u32]>::to_vec)
        };
        let indices = (0..batch).flat_map(row).collect();
        Ok(Self { dims: Nchw { batch, channels, height, width }, grid, tile, count, indices })
    }

    /// The same for some rows only.
    fn rows(&self, rows: &std::ops::Range<usize>) -> Self {
        let indices = self.indices[rows.start * self.count..rows.end * self.count].to_vec();
        Self { dims: Nchw { batch: rows.len(), ..self.dims }, indices, ..self.clone() }
    }

    /// Elements of the packed tiles.
    fn packed_len(&self) -> usize {
        self.indices.len() * self.dims.channels * self.tile * self.tile
    }

    fn packed_dims(&self) -> [usize; 5] {
        [self.dims.batch, self.count, self.dims.channels, self.tile, self.tile]
    }

    /// Sizes that a configuration is chosen for, in the seeds' words.
    fn bucket(&self) -> [(&'static str, usize); 6] {
        [
            ("batch", self.dims.batch),
            ("channels", self.dims.channels),
            ("height", self.dims.height),
            ("kmax", self.count),
            ("tile_size", self.tile),
            ("width", self.dims.width),
        ]
    }
}

/// Most threads of a block in its third direction, and most blocks of a grid in its second and third.
const BLOCK_Z_MAX: usize = 64;
const GRID_YZ_MAX: usize = 65_535;

impl Tiles {
    /// Grid and block of a kernel that takes a row of cells at a time: threads along the row, then its rows of pixels, then
    /// channels.
    fn launch(&self, request: &Request<'_>, [threads, items, cells_max]: [usize; 3]) -> [[u32; 3]; 2] {
        let cells_all = self.dims.width / self.tile;
        let row_bytes = self.tile * request.dtype.bytes();
        let unit = unit_bytes(row_bytes, request.misalign, request.dtype);
        let x = (cells_all.min(cells_max) * row_bytes / unit).clamp(1, threads);
        let y = self.tile.min(threads / x).max(1);
        let z = (threads / (x * y)).clamp(1, BLOCK_Z_MAX);
        let rows = self.dims.height / self.tile * cells_all.div_ceil(cells_max);
        let channels = self.dims.channels.div_ceil(z * items).min(GRID_YZ_MAX);
        let grid = [rows, channels, self.dims.batch.min(GRID_YZ_MAX)];
        [grid, [x, y, z]].map(|sizes| sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX)))
    }
}

/// `kmax` distinct ids below `count`, ascending.
fn chosen(count: usize, kmax: usize, seed: u64) -> Vec<u32> {
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
        let of = |shape: &[usize], tile: usize| {
            let request = Request {
                op: "tile_unpack",
                shape,
                dtype: crate::dtype::Dtype::F16,
                variant: crate::program::Variant::Fast,
                params: &params,
                seed: 1,
                tolerance: None,
                misalign: 0,
                config: None,
                kernel: None,
            };
            Tiles::new(&request, tile, 1, None).unwrap().launch(&request, [256, 4, 256])
        };
        // 16 cells of 8 elements are 16 packs of 16 bytes.
        assert_eq!(of(&[1, 128, 128, 128], 8), [[16, 16, 1], [16, 8, 2]]);
        assert_eq!(of(&[16, 256, 256, 256], 8), [[32, 64, 16], [32, 8, 1]]);
        assert_eq!(of(&[2, 7, 1, 1], 1), [[1, 1, 2], [1, 1, 64]]);
    }

    #[test]
    fn drawn_tiles_are_distinct_and_in_order() {
        let ids = chosen(64, 32, 7);
        assert_eq!(ids.len(), 32);
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]) && ids[31] < 64);
        assert_ne!(ids, chosen(64, 32, 8));
        assert_eq!(chosen(4, 4, 1), [0, 1, 2, 3]);
    }
}
