//! The orders in which selected tiles are visited. Must not touch pixels.

use std::str::FromStr;

use crate::error::OpError;
use crate::shape::Grid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderMode {
    /// Along a Hilbert curve of the enclosing power-of-two square.
    Hilbert,
    /// By the sum of the four scan ranks.
    MultiDirection,
    /// Row by row, left to right.
    L2r,
    /// Row by row, right to left.
    R2l,
    /// Column by column, downwards.
    U2d,
    /// Column by column, upwards.
    D2u,
}

impl FromStr for OrderMode {
    type Err = OpError;

    fn from_str(text: &str) -> Result<Self, OpError> {
        match text.trim().to_lowercase().as_str() {
            "hilbert" => Ok(Self::Hilbert),
            "multi_direction" => Ok(Self::MultiDirection),
            "scan_lr" | "lr" | "l2r" => Ok(Self::L2r),
            "scan_rl" | "rl" | "r2l" => Ok(Self::R2l),
            "scan_ud" | "ud" | "u2d" => Ok(Self::U2d),
            "scan_du" | "du" | "d2u" => Ok(Self::D2u),
            _ => Err(OpError::UnsupportedOrder(text.to_owned())),
        }
    }
}

/// Distance along the curve of an `n` x `n` square, `n` a power of two.
///
/// The reflection is by `s - 1`, not `n - 1`, so coordinates go negative and the bit tests rely on two's
/// complement; the visiting order depends on exactly that.
pub(crate) fn hilbert_distance(col: usize, row: usize, n: usize) -> i64 {
    let (mut x, mut y, mut s) = (col as i64, row as i64, n as i64 / 2);
    let mut distance = 0;
    while s > 0 {
        let (right, down) = (i64::from(x & s != 0), i64::from(y & s != 0));
        distance += s * s * ((3 * right) ^ down);
        if down == 0 {
            if right == 1 {
                (x, y) = (s - 1 - x, s - 1 - y);
            }
            (x, y) = (y, x);
        }
        s /= 2;
    }
    distance
}

/// The number a tile is sorted by.
pub(crate) fn sort_key(mode: OrderMode, index: u32, grid: &Grid) -> i64 {
    let (rows, cols) = (grid.rows as i64, grid.cols as i64);
    let (row, col) = (i64::from(index) / cols, i64::from(index) % cols);
    match mode {
        OrderMode::Hilbert => {
            let n = grid.rows.max(grid.cols).next_power_of_two();
            hilbert_distance(col as usize, row as usize, n)
        }
        OrderMode::MultiDirection => 2 * row * cols + (cols - 1) + 2 * col * rows + (rows - 1),
        OrderMode::L2r => row * cols + col,
        OrderMode::R2l => row * cols + (cols - 1 - col),
        OrderMode::U2d => col * rows + row,
        OrderMode::D2u => col * rows + (rows - 1 - row),
    }
}

/// The oracle: a stable sort by key, duplicates keep their input order.
pub fn order(indices: &[u32], mode: OrderMode, grid: &Grid) -> Vec<u32> {
    let mut ordered = indices.to_vec();
    ordered.sort_by_key(|&index| sort_key(mode, index, grid));
    ordered
}

/// Without allocation: an insertion sort that computes each key anew.
pub fn insertion_order(ordered: &mut [u32], mode: OrderMode, grid: &Grid) {
    for end in 1..ordered.len() {
        let index = ordered[end];
        let key = sort_key(mode, index, grid);
        let mut at = end;
        while at > 0 && sort_key(mode, ordered[at - 1], grid) > key {
            ordered[at] = ordered[at - 1];
            at -= 1;
        }
        ordered[at] = index;
    }
}

/// Ranks of the whole grid, tabled once; ordering then sorts packed integers.
#[derive(Clone, Debug)]
pub struct Orderer {
    rank: Vec<u32>,
    packed: Vec<u64>,
}

impl Orderer {
    /// Tables the ranks of a grid; `tiles_max` is the longest list that will be ordered.
    pub fn new(mode: OrderMode, grid: &Grid, tiles_max: usize) -> Self {
        let mut by_key: Vec<(i64, u32)> =
            (0..grid.count() as u32).map(|index| (sort_key(mode, index, grid), index)).collect();
        by_key.sort_unstable();
        let mut rank = vec![0; grid.count()];
        let (mut current, mut last_key) = (0, None);
        for (position, &(key, index)) in by_key.iter().enumerate() {
            // Tiles with equal keys share a rank: among them the input order decides.
            if last_key != Some(key) {
                (current, last_key) = (position as u32, Some(key));
            }
            rank[index as usize] = current;
        }
        Self { rank, packed: Vec::with_capacity(tiles_max) }
    }

    /// Orders `indices` into `out` (same length) without allocating.
    pub fn order_into(&mut self, indices: &[u32], out: &mut [u32]) {
        self.packed.clear();
        self.packed.extend(
            indices.iter().enumerate().map(|(at, &i)| u64::from(self.rank[i as usize]) << 32 | at as u64),
        );
        self.packed.sort_unstable();
        for (slot, &packed) in out.iter_mut().zip(&self.packed) {
            *slot = indices[packed as u32 as usize];
        }
    }
}

/// Ids of a tile's four children on the grid of twice the rows and columns.
pub(crate) fn child_ids(parent: u32, grid: &Grid) -> [u32; 4] {
    let cols = grid.cols as u32;
    let (row, col) = (2 * (parent / cols), 2 * (parent % cols));
    let at = |r: u32, c: u32| r * 2 * cols + c;
    [at(row, col), at(row, col + 1), at(row + 1, col), at(row + 1, col + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: usize, cols: usize) -> Grid {
        Grid { rows, cols, tile: 1 }
    }

    fn whole(mode: OrderMode, rows: usize, cols: usize) -> Vec<u32> {
        let all: Vec<u32> = (0..(rows * cols) as u32).collect();
        order(&all, mode, &grid(rows, cols))
    }

    #[test]
    fn hilbert_visits_the_known_curves() {
        let four = [0, 1, 5, 4, 8, 12, 13, 9, 10, 14, 15, 11, 7, 6, 2, 3];
        let eight = [
            0, 8, 9, 1, 2, 3, 11, 10, 18, 19, 27, 26, 25, 17, 16, 24, 32, 33, 41, 40, 48, 56, 57, 49, 50, 58,
            59, 51, 43, 42, 34, 35, 36, 37, 45, 44, 52, 60, 61, 53, 54, 62, 63, 55, 47, 46, 38, 39, 31, 23,
            22, 30, 29, 28, 20, 21, 13, 12, 4, 5, 6, 14, 15, 7,
        ];
        for (rows, cols, known) in [
            (2, 2, &[0, 2, 3, 1][..]),
            (4, 4, &four),
            (8, 8, &eight),
            // A rectangle keeps the gaps of the square.
            (3, 5, &[0, 5, 6, 1, 2, 3, 8, 7, 12, 13, 11, 10, 14, 9, 4]),
            (2, 3, &[0, 1, 4, 3, 5, 2]),
        ] {
            assert_eq!(whole(OrderMode::Hilbert, rows, cols), known, "{rows}x{cols}");
        }
    }

    #[test]
    fn multi_direction_sums_the_four_ranks() {
        assert_eq!(whole(OrderMode::MultiDirection, 3, 4), [0, 1, 4, 2, 5, 8, 3, 6, 9, 7, 10, 11]);
        let keys: Vec<i64> = (0..12).map(|i| sort_key(OrderMode::MultiDirection, i, &grid(3, 4))).collect();
        assert_eq!(keys, [5, 11, 17, 23, 13, 19, 25, 31, 21, 27, 33, 39]);
    }

    #[test]
    fn duplicates_keep_their_input_order() {
        assert_eq!(order(&[6, 1, 6, 0, 9, 1], OrderMode::L2r, &grid(4, 5)), [0, 1, 1, 6, 6, 9]);
    }

    #[test]
    fn names_are_trimmed_and_lowercased() {
        for (names, mode) in [
            (&["hilbert"][..], OrderMode::Hilbert),
            (&["multi_direction"], OrderMode::MultiDirection),
            (&["l2r", "lr", "scan_lr"], OrderMode::L2r),
            (&["r2l", "rl", "scan_rl"], OrderMode::R2l),
            (&["u2d", "ud", "scan_ud"], OrderMode::U2d),
            (&["d2u", "du", "scan_du"], OrderMode::D2u),
        ] {
            assert!(names.iter().all(|name| name.parse() == Ok(mode)), "{mode:?}");
        }
        assert_eq!(" Scan_LR ".parse(), Ok(OrderMode::L2r));
        let error = "zigzag".parse::<OrderMode>().unwrap_err().to_string();
        assert!(error.starts_with("Unsupported order mode: \"zigzag\""), "{error}");
    }

    #[test]
    fn children_lie_on_the_doubled_grid() {
        assert_eq!(child_ids(0, &grid(2, 2)), [0, 1, 4, 5]);
        assert_eq!(child_ids(3, &grid(2, 2)), [10, 11, 14, 15]);
    }
}
