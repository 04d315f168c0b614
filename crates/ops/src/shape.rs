//! Sizes of feature maps and of the tile grid laid over them. Must not hold data.

use crate::error::OpError;

/// A row-major `[batch, channels, height, width]` tensor's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nchw {
    pub batch: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

impl Nchw {
    pub fn new(batch: usize, channels: usize, height: usize, width: usize) -> Self {
        Self { batch, channels, height, width }
    }

    pub fn plane(&self) -> usize {
        self.height * self.width
    }

    pub fn sample(&self) -> usize {
        self.channels * self.plane()
    }

    pub fn len(&self) -> usize {
        self.batch * self.sample()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn dims(&self) -> [usize; 4] {
        [self.batch, self.channels, self.height, self.width]
    }
}

/// A grid of square tiles that covers a map exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub rows: usize,
    pub cols: usize,
    pub tile: usize,
}

impl Grid {
    /// Lays tiles of edge `tile` over a map; they must fit without remainder.
    pub fn new(height: usize, width: usize, tile: usize) -> Result<Self, OpError> {
        for (name, size) in [("height", height), ("width", width), ("tile_size", tile)] {
            if size == 0 {
                return Err(OpError::NotPositive(name));
            }
        }
        if !height.is_multiple_of(tile) || !width.is_multiple_of(tile) {
            return Err(OpError::NotDivisible { height, width, tile_size: tile });
        }
        Ok(Self { rows: height / tile, cols: width / tile, tile })
    }

    pub fn count(&self) -> usize {
        self.rows * self.cols
    }

    /// Pixel `[y, x]` of a tile's corner; the id must be in range.
    #[inline(always)]
    pub fn origin(&self, index: u32) -> [u32; 2] {
        let index = index as usize;
        [(index / self.cols * self.tile) as u32, (index % self.cols * self.tile) as u32]
    }

    pub(crate) fn check_indices(&self, indices: &[u32]) -> Result<(), OpError> {
        let count = self.count();
        match indices.iter().find(|&&index| index as usize >= count) {
            Some(&index) => Err(OpError::IndicesOutOfBounds { index: index as usize, count }),
            None => Ok(()),
        }
    }
}

/// Sizes of tiles that are packed from a map, or laid onto one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TileSpec {
    pub dims: Nchw,
    pub grid: Grid,
    /// Per sample, K.
    pub tiles: usize,
}

impl TileSpec {
    pub fn new(dims: Nchw, tile: usize, tiles: usize) -> Result<Self, OpError> {
        Ok(Self { dims, grid: Grid::new(dims.height, dims.width, tile)?, tiles })
    }

    pub fn tile_len(&self) -> usize {
        self.dims.channels * self.grid.tile * self.grid.tile
    }
}
