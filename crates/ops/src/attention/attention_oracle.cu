// Attention in 64-bit floats, the oracle of shapes that take the CPU's too long: o = softmax(q k^T / sqrt(width)) v for q, k, v of shape
// [heads, s, width], width at most 128; causal or not is an argument, so that one program per element type has to be proven. Scores,
// weights and sums are doubles, and each result is rounded once, to fp32, as the CPU's oracle does.
//
// Each block takes ROWS queries of a head and goes over the keys in tiles of ROWS. Grid: ceil(s / 32) * heads, block: 256 threads,
// dynamic shared memory: (2 * 32 * (width + 1) + 32 * 33 + 96) * 8 bytes. 4 * heads * s * s * width operations.
#include "common.cuh"

constexpr int ROWS = 32;
constexpr int COLUMNS = 16;
constexpr int WIDTH_MAX = 128;

extern "C" __global__ void __launch_bounds__(256) attention_oracle(const elem *__restrict__ q, const elem *__restrict__ k,
                                                                   const elem *__restrict__ v, float *__restrict__ o, int heads, int s,
                                                                   int width, int causal) {
    extern __shared__ double shared[];
    const int stride = width + 1;  // Odd for every width that is even: rows fall on different banks.
    double *queries = shared, *keys = queries + ROWS * stride, *weights = keys + ROWS * stride;
    double *top = weights + ROWS * (ROWS + 1), *total = top + ROWS, *shrink = total + ROWS;

    const int tiles = (s + ROWS - 1) / ROWS;
    // The last queries of a causal head see the most keys: they come first.
    const int tile = tiles - 1 - static_cast<int>(blockIdx.x % tiles), first = tile * ROWS;
    const size_t head = blockIdx.x / tiles;
    if (head >= static_cast<size_t>(heads)) return;
    const size_t base = head * s * width;
    const int tx = threadIdx.x % COLUMNS, ty = threadIdx.x / COLUMNS;
    const double scale = 1.0 / sqrt(static_cast<double>(width));
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);

    auto fetch = [&](double *to, const elem *from, int begin) {
        for (int i = threadIdx.x; i < ROWS * width; i += blockDim.x) {
            const int row = i / width, column = i % width;
            to[row * stride + column] =
                begin + row < s ? static_cast<double>(to_float(from[base + static_cast<size_t>(begin + row) * width + column])) : 0.0;
        }
    };
    fetch(queries, q, first);
    if (threadIdx.x < ROWS) {
        top[threadIdx.x] = -infinity;
        total[threadIdx.x] = 0.0;
    }
    double sums[2][WIDTH_MAX / COLUMNS] = {};
    const int last = causal ? min(s, first + ROWS) : s;
    for (int begin = 0; begin < last; begin += ROWS) {
        __syncthreads();
        fetch(keys, k, begin);
        __syncthreads();
        double dot[2][2] = {};
        for (int d = 0; d < width; ++d) {
            const double q0 = queries[ty * stride + d], q1 = queries[(ty + 16) * stride + d];
            const double k0 = keys[tx * stride + d], k1 = keys[(tx + 16) * stride + d];
            dot[0][0] += q0 * k0;
            dot[0][1] += q0 * k1;
            dot[1][0] += q1 * k0;
            dot[1][1] += q1 * k1;
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) weights[(ty + 16 * i) * (ROWS + 1) + tx + 16 * j] = dot[i][j] * scale;
        __syncthreads();
        fetch(keys, v, begin);
        {
            // Eight threads a row, four keys each.
            const int row = threadIdx.x / 8, lane = threadIdx.x % 8;
            const int seen = min(ROWS, (causal ? min(s, first + row + 1) : s) - begin);
            double *mine = weights + row * (ROWS + 1);
            double largest = top[row];
            for (int key = lane; key < seen; key += 8) largest = fmax(largest, mine[key]);
            for (int apart = 4; apart; apart /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, apart));
            double sum = 0.0;
            for (int key = lane; key < ROWS; key += 8) {
                // A score of minus infinity weighs nothing even where all so far are: their difference would be NaN.
                const double weight = key < seen && mine[key] != -infinity ? exp(mine[key] - largest) : 0.0;
                mine[key] = weight;
                sum += weight;
            }
            for (int apart = 4; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
            __syncwarp();
            if (lane == 0) {
                shrink[row] = largest == -infinity ? 1.0 : exp(top[row] - largest);
                total[row] = total[row] * shrink[row] + sum;
                top[row] = largest;
            }
        }
        __syncthreads();
        const double shrink0 = shrink[ty], shrink1 = shrink[ty + 16];
#pragma unroll
        for (int j = 0; j < WIDTH_MAX / COLUMNS; ++j) {
            sums[0][j] *= shrink0;
            sums[1][j] *= shrink1;
        }
        for (int key = 0; key < ROWS; ++key) {
            const double p0 = weights[ty * (ROWS + 1) + key], p1 = weights[(ty + 16) * (ROWS + 1) + key];
#pragma unroll
            for (int j = 0; j < WIDTH_MAX / COLUMNS; ++j) {
                if (j * COLUMNS + tx < width) {
                    const double value = keys[key * stride + j * COLUMNS + tx];
                    sums[0][j] += p0 * value;
                    sums[1][j] += p1 * value;
                }
            }
        }
    }
    for (int i = 0; i < 2; ++i) {
        const int row = first + ty + 16 * i;
        if (row >= s) continue;
#pragma unroll
        for (int j = 0; j < WIDTH_MAX / COLUMNS; ++j)
            if (j * COLUMNS + tx < width)
                o[base + static_cast<size_t>(row) * width + j * COLUMNS + tx] = static_cast<float>(sums[i][j] / total[ty + 16 * i]);
    }
}
