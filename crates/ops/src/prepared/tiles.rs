//! Parameters that several tile ops share: which tiles, in which order.

use crate::error::BuildError;
use crate::order::OrderMode;
use crate::shape::{Grid, Nchw};
use crate::{Request, prepared};

/// Most tiles that need not be named: a map of 16 384 × 16 384 in tiles of 16.
const UNNAMED_MAX: usize = 1 << 20;

/// Grid and tile ids after validation.
pub(super) struct Tiles {
    pub dims: Nchw,
    pub grid: Grid,
    /// The ids that were named, or else every tile.
    pub indices: Vec<u32>,
    /// `[B, K]`: the same ids for each batch row.
    pub per_row: usize,
}

/// Checks shape, tile size and ids.
pub(super) fn check(
    req: &Request<'_>,
    tile_size: usize,
    indices: Option<Vec<u32>>,
) -> Result<Tiles, BuildError> {
    let dims = prepared::feature_map(req)?;
    let grid = Grid::new(dims.height, dims.width, tile_size).map_err(prepared::at_param(req, "tile_size"))?;
    let indices = match indices {
        Some(indices) => indices,
        None if grid.count() > UNNAMED_MAX => {
            let problem = format!("name the tiles: there are {}, over {UNNAMED_MAX}", grid.count());
            return Err(prepared::param_error(req, "indices", problem));
        }
        None => (0..grid.count() as u32).collect(),
    };
    grid.check_indices(&indices).map_err(prepared::at_param(req, "indices"))?;
    let packed = indices.len().checked_mul(dims.batch * dims.channels * tile_size * tile_size);
    if packed.is_none_or(|len| len > prepared::ELEMENTS_MAX) {
        return Err(prepared::param_error(req, "indices", "at most 2^31 packed elements"));
    }
    Ok(Tiles { dims, grid, per_row: indices.len(), indices })
}

/// `"none"` takes ids as given.
pub(super) fn order(req: &Request<'_>, name: &str) -> Result<Option<OrderMode>, BuildError> {
    if name.trim().eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let add_none = |error: crate::OpError| format!("{error}; or none");
    name.parse().map(Some).map_err(|e| prepared::param_error(req, "order_mode", add_none(e)))
}

/// The ids once per batch row.
pub(super) fn repeat(indices: &[u32], batch: usize) -> Vec<u32> {
    indices.repeat(batch)
}
