// The 1x1 convolution of one chunk and the moments of its products, for ff_refine.cu.
#pragma once

#include "ff_shape.cuh"

// Depth taken per step, and one step's weights of a thread: a pack each of rows `row` and `row + 8` of both halves.
constexpr int STEP = HALF ? 32 : 4, STEPS = DEPTH / STEP;
typedef Pack StepWeights[PAIRS_PER_WARP][2][2];

__device__ __forceinline__ void tensor_product(float (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                               unsigned b0, unsigned b1) {
#if defined(ELEM_BF16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A thread's share of the product: channels 16 * pair + row (+ 8) of both halves, pixels 8 * group + column (+ 1).
struct Products {
    int row, column, pair, group;
    elem bias[PAIRS_PER_WARP][2][2], norm_weight[PAIRS_PER_WARP][2][2], norm_bias[PAIRS_PER_WARP][2][2];
    StepWeights first;
    float at[PAIRS_PER_WARP][2][GROUPS_PER_WARP][4];

    __device__ __forceinline__ Products(const Weights& w)
        : row(threadIdx.x % 32 / 4),
          column(threadIdx.x % 4 * 2),
          pair(threadIdx.x / 32 % WARPS_M * PAIRS_PER_WARP),
          group(WARPS_N == 1 ? 0 : threadIdx.x / 32 / WARPS_M * GROUPS_PER_WARP) {
        load(w.pointwise_weight(), 0, first);
#pragma unroll
        for (int i = 0; i < 4 * PAIRS_PER_WARP; ++i) {
            bias[i / 4][i / 2 % 2][i % 2] = w.pointwise_bias()[output(i)];
            norm_weight[i / 4][i / 2 % 2][i % 2] = w.norm_weight()[output(i)];
            norm_bias[i / 4][i / 2 % 2][i % 2] = w.norm_bias()[output(i)];
        }
    }
    __device__ __forceinline__ bool has(int p) const { return ALL_PAIRS || pair + p < PAIRS; }
    // Channel of the upper or lower row of a pair, in the first half; pairs that are not there read the first.
    __device__ __forceinline__ int channel(int p, int lower) const {
        return (has(p) ? pair + p : 0) * 16 + lower * 8 + row;
    }
    // i counts pairs, halves, rows.
    __device__ __forceinline__ int output(int i) const { return i / 2 % 2 * CHANNELS + channel(i / 4, i % 2); }

    __device__ __forceinline__ void load(const elem* __restrict__ weight, int step, StepWeights& to) const {
        // fp32: all four lanes of a row take the same four columns. 16-bit: the order of the columns within a step is free
        // as long as both sides agree, so each lane takes eight neighbours.
        const int from = step * STEP + (HALF ? column / 2 * PACK : 0);
#pragma unroll
        for (int i = 0; i < 4 * PAIRS_PER_WARP; ++i) {
            Pack& pack = to[i / 4][i / 2 % 2][i % 2];
            if (DEPTH == CHANNELS || from < CHANNELS) pack = *reinterpret_cast<const Pack*>(weight + output(i) * CHANNELS + from);
            else *reinterpret_cast<uint4*>(&pack) = make_uint4(0, 0, 0, 0);
        }
    }

    __device__ __forceinline__ void multiply(const Shared& s, int step, const StepWeights& weights) {
#pragma unroll
        for (int j = 0; j < GROUPS_PER_WARP; ++j) {
            if constexpr (HALF) {
#pragma unroll
                for (int part = 0; part <= SPLIT; ++part) {
                    const elem* from = &s.x[part][(group + j) * 8 + row][step * STEP + column / 2 * PACK];
                    const uint4 b = *reinterpret_cast<const uint4*>(from);
#pragma unroll
                    for (int i = 0; i < 2 * PAIRS_PER_WARP; ++i) {
                        const uint4 upper = *reinterpret_cast<const uint4*>(&weights[i / 2][i % 2][0]);
                        const uint4 lower = *reinterpret_cast<const uint4*>(&weights[i / 2][i % 2][1]);
                        tensor_product(at[i / 2][i % 2][j], upper.x, lower.x, upper.y, lower.y, b.x, b.y);
                        tensor_product(at[i / 2][i % 2][j], upper.z, lower.z, upper.w, lower.w, b.z, b.w);
                    }
                }
            } else {
                const Pack* x = reinterpret_cast<const Pack*>(&s.x[0][(group + j) * 8 + column][step * STEP]);
                const Pack xs[2] = {x[0], x[STRIDE / PACK]};
#pragma unroll
                for (int i = 0; i < 8 * PAIRS_PER_WARP; ++i) {
                    float& sum = at[i / 8][i / 4 % 2][j][i % 4];
#pragma unroll
                    for (int d = 0; d < PACK; ++d) {
                        sum += to_float(weights[i / 8][i / 4 % 2][i / 2 % 2].at[d]) * to_float(xs[i % 2].at[d]);
                    }
                }
            }
        }
    }

    // One step's weights are on their way while the step before is multiplied.
    __device__ __forceinline__ void run(const Shared& s, const elem* __restrict__ weight) {
#pragma unroll
        for (int i = 0; i < 4 * PAIRS_PER_WARP * GROUPS_PER_WARP; ++i) {
            const int o = i / GROUPS_PER_WARP, j = i % GROUPS_PER_WARP;
            at[o / 4][o / 2 % 2][j][o % 2 * 2] = to_float(bias[o / 4][o / 2 % 2][o % 2]);
            at[o / 4][o / 2 % 2][j][o % 2 * 2 + 1] = to_float(bias[o / 4][o / 2 % 2][o % 2]);
        }
        StepWeights now, next;
        copy(first, now);
#pragma unroll 1
        for (int step = 0; step < STEPS; ++step) {
            load(weight, least(step + 1, STEPS - 1), next);
            multiply(s, step, now);
            copy(next, now);
        }
    }
    __device__ __forceinline__ static void copy(const StepWeights& from, StepWeights& to) {
#pragma unroll
        for (int i = 0; i < 4 * PAIRS_PER_WARP; ++i) to[i / 4][i / 2 % 2][i % 2] = from[i / 4][i / 2 % 2][i % 2];
    }

    // Normalised and gated products of one pair.
    __device__ __forceinline__ void gate(Shared& s, int p, float2 moments) const {
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
            float slope[2], offset[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                slope[half] = moments.y * to_float(norm_weight[p][half][lower]);
                offset[half] = to_float(norm_bias[p][half][lower]) - moments.x * slope[half];
            }
            float* to = &s.gated[threadIdx.x / 32 % WARPS_M * 16 + lower * 8 + row][group * 8 + column];
#pragma unroll
            for (int j = 0; j < GROUPS_PER_WARP; ++j) {
                float2 pixels;
                const float(&a)[4] = at[p][0][j], (&b)[4] = at[p][1][j];
                pixels.x = (a[lower * 2] * slope[0] + offset[0]) * relu(b[lower * 2] * slope[1] + offset[1]);
                pixels.y = (a[lower * 2 + 1] * slope[0] + offset[0]) * relu(b[lower * 2 + 1] * slope[1] + offset[1]);
                *reinterpret_cast<float2*>(to + j * 8) = pixels;
            }
        }
    }
};

// Mean and squared distances of this warp's products, into all blocks of the tile. Distances from a mean of the warp's own
// keep their digits when the mean is far from zero.
__device__ __forceinline__ void note_moments(Shared& s, const Products& sums, int chunk) {
    const int pixels = chunk_pixels(chunk), live_pairs = least(PAIRS_PER_WARP, PAIRS - sums.pair);
    const int live_pixels = least(GROUPS_PER_WARP * 8, pixels - sums.group * 8);
    const float count = live_pairs > 0 && live_pixels > 0 ? 32.0f * live_pairs * live_pixels : 0.0f;
    float mean = 0.0f, total = 0.0f;
#pragma unroll
    for (int pass = 0; pass < 2; ++pass) {
        // Four sums, so that additions need not wait for each other.
        float parts[4] = {};
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * GROUPS_PER_WARP * 8; ++i) {
            const int p = i / (GROUPS_PER_WARP * 8), j = i / 8 % GROUPS_PER_WARP;
            const float distance = sums.at[p][i % 2][j][i / 2 % 4] - mean;
            const bool live = sums.has(p) && (ALL_PIXELS || (sums.group + j) * 8 + sums.column + i / 2 % 2 < pixels);
            if (live) parts[i % 4] += pass == 0 ? distance : distance * distance;
        }
        total = warp_sum(parts[0] + parts[1] + (parts[2] + parts[3]));
        if (pass == 0) mean = count > 0.0f ? __fdividef(total, count) : 0.0f;
    }
    const int peer = threadIdx.x % 32, at = chunk * WARPS + threadIdx.x / 32;
    if (peer < CLUSTER) {
        s.mail.send(Mail::MOMENTS, peer, &s.counts[at], count);
        s.mail.send(Mail::MOMENTS, peer, &s.means[at], mean);
        s.mail.send(Mail::MOMENTS, peer, &s.squares[at], total);
    }
}

// Mean and inverse deviation of the tile, the same in every thread.
__device__ __forceinline__ float2 tile_moments(const Shared& s) {
    constexpr float COUNT = 2.0f * CHANNELS * TILE * TILE;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = threadIdx.x % 32; i < CHUNKS * WARPS; i += 32) sum += s.counts[i] * s.means[i];
    const float mean = warp_sum(sum) * (1.0f / COUNT);
#pragma unroll
    for (int i = threadIdx.x % 32; i < CHUNKS * WARPS; i += 32) {
        const float distance = s.means[i] - mean;
        squares += s.squares[i] + s.counts[i] * distance * distance;
    }
    return make_float2(mean, rsqrtf(warp_sum(squares) * (1.0f / COUNT) + NORM_EPS));
}
