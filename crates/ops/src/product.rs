//! Matrix product for small fixed left-hand sides: weights are packed once, the right-hand side is used
//! where it lies. Must not allocate while multiplying.

use pulp::{Arch, Simd, WithSimd};

/// Rows of the register block.
const ROWS: usize = 6;

/// Columns must come in multiples of this, the widest vector; pad with anything finite.
pub(crate) const COLUMN_STEP: usize = 16;

pub(crate) fn padded_columns(n: usize) -> usize {
    n.next_multiple_of(COLUMN_STEP)
}

/// A row-major matrix rearranged into blocks of `ROWS` rows, so that the kernel reads it in one stream.
#[derive(Clone, Debug)]
pub struct PackedLhs {
    data: Vec<f32>,
    rows: usize,
    depth: usize,
}

impl PackedLhs {
    pub fn new(matrix: &[f32], rows: usize, depth: usize) -> Self {
        let mut packed = Self { data: vec![0.0; rows.next_multiple_of(ROWS) * depth], rows, depth };
        packed.pack(matrix, rows, depth, depth);
        packed
    }

    /// Room for matrices of up to `rows` x `depth`, for [`PackedLhs::pack`].
    pub fn with_capacity(rows: usize, depth: usize) -> Self {
        Self { data: vec![0.0; rows.next_multiple_of(ROWS) * depth], rows: 0, depth: 0 }
    }

    /// Packs another matrix whose rows are `stride` apart; it must not be larger than the first.
    pub fn pack(&mut self, matrix: &[f32], rows: usize, depth: usize, stride: usize) {
        (self.rows, self.depth) = (rows, depth);
        for (block, packed) in self.data.chunks_exact_mut(ROWS * depth.max(1)).enumerate() {
            if block * ROWS >= rows {
                break;
            }
            for i in 0..ROWS {
                let row = block * ROWS + i;
                if row < rows {
                    for (k, &value) in matrix[row * stride..row * stride + depth].iter().enumerate() {
                        packed[k * ROWS + i] = value;
                    }
                } else {
                    packed.iter_mut().skip(i).step_by(ROWS).for_each(|v| *v = 0.0);
                }
            }
        }
    }
}

/// `dst[rows, columns] = lhs * rhs[depth, columns]`; strides are row to row, `columns` whole vectors.
pub fn product(
    lhs: &PackedLhs,
    rhs: &[f32],
    rhs_stride: usize,
    columns: usize,
    dst: &mut [f32],
    dst_stride: usize,
) {
    assert!(columns.is_multiple_of(COLUMN_STEP), "columns must be padded to {COLUMN_STEP}, not {columns}");
    Arch::new().dispatch(Product { lhs, rhs, rhs_stride, columns, dst, dst_stride });
}

struct Product<'a> {
    lhs: &'a PackedLhs,
    rhs: &'a [f32],
    rhs_stride: usize,
    columns: usize,
    dst: &'a mut [f32],
    dst_stride: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // 6 x 4 accumulators fill 32 registers, 6 x 2 fill 16; machines without vectors take any shape.
        if S::F32_LANES == 16 { self.run::<S, 4>(simd) } else { self.run::<S, 2>(simd) }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let Self { lhs, rhs, rhs_stride, columns, dst, dst_stride } = self;
        let mut j = 0;
        while j < columns {
            let wide = j + VECTORS * S::F32_LANES <= columns;
            for (block, packed) in lhs.data.chunks_exact(ROWS * lhs.depth.max(1)).enumerate() {
                if block * ROWS >= lhs.rows {
                    break;
                }
                let rows = ROWS.min(lhs.rows - block * ROWS);
                let dst = &mut dst[block * ROWS * dst_stride + j..];
                if wide {
                    kernel::<S, VECTORS>(simd, packed, &rhs[j..], rhs_stride, rows, dst, dst_stride);
                } else {
                    kernel::<S, 1>(simd, packed, &rhs[j..], rhs_stride, rows, dst, dst_stride);
                }
            }
            j += if wide { VECTORS * S::F32_LANES } else { S::F32_LANES };
        }
    }
}

/// One block of rows times `V` vectors of columns, summed over the whole depth in registers.
#[inline(always)]
fn kernel<S: Simd, const V: usize>(
    simd: S,
    packed: &[f32],
    rhs: &[f32],
    rhs_stride: usize,
    rows: usize,
    dst: &mut [f32],
    dst_stride: usize,
) {
    let width = V * S::F32_LANES;
    let mut sums = [[simd.splat_f32s(0.0); V]; ROWS];
    let (steps, _) = packed.as_chunks::<ROWS>();
    for (k, weights) in steps.iter().enumerate() {
        let (vectors, _) = S::as_simd_f32s(&rhs[k * rhs_stride..k * rhs_stride + width]);
        let Some(vectors) = vectors.first_chunk::<V>() else { return };
        for i in 0..ROWS {
            let weight = simd.splat_f32s(weights[i]);
            for v in 0..V {
                sums[i][v] = simd.mul_add_e_f32s(weight, vectors[v], sums[i][v]);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate().take(rows) {
        let (out, _) = S::as_mut_simd_f32s(&mut dst[i * dst_stride..i * dst_stride + width]);
        for (out, &sum) in out.iter_mut().zip(sums) {
            *out = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::RandomState;

    #[test]
    fn the_product_equals_the_triple_loop_for_ragged_sizes() {
        for (m, n, k) in [(1, 1, 1), (6, 64, 3), (7, 33, 12), (13, 100, 5), (24, 16, 128), (5, 130, 1)] {
            let mut rng = RandomState::new((m * n * k) as u64);
            let stride = padded_columns(n);
            let (a, b) = (rng.normals(m * k), rng.normals(k * stride));
            let mut dst = vec![f32::NAN; m * stride];
            product(&PackedLhs::new(&a, m, k), &b, stride, stride, &mut dst, stride);
            for i in 0..m {
                for j in 0..n {
                    let want: f32 = (0..k).map(|p| a[i * k + p] * b[p * stride + j]).sum();
                    assert!((dst[i * stride + j] - want).abs() < 1e-4, "{m}x{n}x{k} at {i},{j}");
                }
            }
        }
    }
}
