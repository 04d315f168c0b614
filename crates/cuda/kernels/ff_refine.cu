// One level of the FF path on the chosen tiles: bidirectional scan over the tokens, FiLM, modulation, depthwise 3x3, 1x1 to
// twice the channels, GroupNorm over the tile, gate, residual and fusion gate. See ff_path.cu for what runs before it.
//
// A tile falls to CLUSTER blocks. Each takes one chunk of ROWS rows (or several, one after the other, if the tile has more)
// and all channels of it; the products stay in registers. The blocks share out the rows of the FiLM layers (ff_film.cuh) and
// exchange those and the sums of the GroupNorm through distributed shared memory. A block with several chunks takes the
// products twice: for the sums, and again once the moments are known. CLUSTER 1 needs no cluster and is the only choice
// before sm_90. Sums have a fixed order, so results are the same in every run.
//
// A block goes through its code once, so fetching instructions costs as much as executing them: loops are unrolled only where
// registers are indexed or loads must overlap.
//
// 16-bit elements: products on tensor cores (m16n8k16), fp32 sums. With SPLIT the convolved values go in as a rounded part
// and a rounded rest: without it about one value in a million leaves the tolerance in f16, many more in bf16. fp32: FMA.
//
// Grid B * K * CLUSTER, block THREADS, no dynamic shared memory. Constants: CHANNELS (multiple of 16), TILE (edge), ROWS,
// CLUSTER (1, 2, 4, 8), THREADS (128, 256, 512), BLOCKS (blocks per multiprocessor to leave registers for), SPLIT, SOURCE_F32,
// ALIGNED (0 if map, heavy, detail or unrounded is not 16-byte aligned).
// `map` is read within the tiles only and must not be `heavy`; `weights` must be 16-byte aligned.
#ifndef CHANNELS
#define CHANNELS 128
#endif
#ifndef TILE
#define TILE 16
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef CLUSTER
#if __CUDA_ARCH__ >= 900
#define CLUSTER 4
#else
#define CLUSTER 1
#endif
#endif
// About 64 pixels, or a quarter of a smaller tile; 32 where a block goes through the whole tile.
#ifndef ROWS
#if TILE >= 16 && CLUSTER > 1
#define ROWS (TILE > 64 ? 1 : 64 / TILE)
#elif TILE >= 16
#define ROWS (TILE > 32 ? 1 : 32 / TILE)
#else
#define ROWS ((TILE + 3) / 4)
#endif
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef SPLIT
#if defined(ELEM_F16) || defined(ELEM_BF16)
#define SPLIT 1
#else
#define SPLIT 0
#endif
#endif
#ifndef ALIGNED
#define ALIGNED 1
#endif

#include "ff_film.cuh"

constexpr bool HALF = sizeof(elem) == 2;
static_assert(CHANNELS % 16 == 0, "channels must be a multiple of 16");
static_assert(THREADS == 128 || THREADS == 256 || THREADS == 512, "unsupported number of threads");
static_assert(CLUSTER == 1 || CLUSTER == 2 || CLUSTER == 4 || CLUSTER == 8, "unsupported cluster");
static_assert(HALF || !SPLIT, "fp32 is not split");

__device__ constexpr int power_below(int n) {
    int p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

// Channels c and CHANNELS + c must meet in one thread, so warps take 16 of the first half with the same 16 of the second.
constexpr int PAIRS = CHANNELS / 16, WARPS_M = power_below(least(WARPS, PAIRS)), WARPS_N = WARPS / WARPS_M;
constexpr int PAIRS_PER_WARP = ceil_div(PAIRS, WARPS_M);
constexpr int CHUNKS = ceil_div(TILE, ROWS), PIXELS = ROWS * TILE;
// Groups of 8 pixels, the width of one tensor-core product.
constexpr int GROUPS_PER_WARP = ceil_div(ceil_div(PIXELS, 8), WARPS_N), SLOTS = WARPS_N * GROUPS_PER_WARP * 8;
constexpr bool ONE_PASS = CHUNKS <= CLUSTER;
// Whether every thread has all of its pairs, and all of its pixels in every chunk.
constexpr bool ALL_PAIRS = PAIRS == WARPS_M * PAIRS_PER_WARP, ALL_PIXELS = SLOTS == PIXELS && TILE % ROWS == 0;

// Depth of the product in shared memory, and a row's length there: neighbouring rows start half of the banks apart (16-bit),
// every second row 8 banks (fp32).
constexpr int DEPTH = HALF ? ceil_div(CHANNELS, 32) * 32 : CHANNELS;
constexpr int STRIDE = HALF ? DEPTH + (DEPTH % 64 == 0 ? 32 : 0) : DEPTH + 4;

// A thread convolves COLUMNS columns of BAND rows of one channel.
constexpr int COLUMNS = columns_of(TILE), STRIPS = TILE / COLUMNS;
__device__ constexpr int band_rows() {
    for (int band = ROWS; band > 1; --band) {
        if (ROWS % band == 0 && CHANNELS * STRIPS * (ROWS / band) >= THREADS) return band;
    }
    return 1;
}
constexpr int BAND = band_rows(), ITEMS = CHANNELS * STRIPS * (ROWS / BAND);

struct Shared {
    alignas(16) elem x[1 + SPLIT][SLOTS][STRIDE];
    Tokens tokens;
    // Count, mean and sum of squared distances of each warp's products.
    float counts[CHUNKS * WARPS], means[CHUNKS * WARPS], squares[CHUNKS * WARPS];
    float alpha[SLOTS];
};

// Upper left pixel of the tile in channel 0 of the level's input.
struct Place {
    const source* corner;
    long long plane;
    int width;
};

// --- Depthwise convolution ---

// What one thread convolves: a strip with a border of one pixel, before modulation.
struct Strip {
    int column, channel, row;
    source rows[BAND + 2][COLUMNS], left[BAND + 2], right[BAND + 2];
    elem kernel[9], bias;

    __device__ __forceinline__ void load(const Place& place, const Weights& w, int item, int chunk) {
        column = item % STRIPS * COLUMNS;
        channel = item / STRIPS % CHANNELS;
        row = chunk * ROWS + item / (STRIPS * CHANNELS) * BAND;
        const source* from = place.corner + channel * place.plane + column;
#pragma unroll
        for (int i = 0; i < BAND + 2; ++i) {
            const int y = row + i - 1;
            if (y < 0 || y >= TILE) continue;
            const source* at = from + y * place.width;
            load_columns(at, ALIGNED, rows[i]);
            if (column > 0) left[i] = at[-1];
            if (column + COLUMNS < TILE) right[i] = at[COLUMNS];
        }
#pragma unroll
        for (int i = 0; i < 9; ++i) kernel[i] = w.depthwise_weight()[channel * 9 + i];
        bias = w.depthwise_bias()[channel];
    }

    __device__ __forceinline__ void convolve(Shared& s, int chunk) const {
        const float scale = s.tokens.film[channel], shift = s.tokens.film[CHANNELS + channel];
        float sums[BAND][COLUMNS];
#pragma unroll
        for (int i = 0; i < BAND + 2; ++i) {
            // Outside the tile is zero, not the modulated zero.
            const bool inside = row + i >= 1 && row + i <= TILE;
            float values[COLUMNS + 2];
            values[0] = inside && column > 0 ? scale * widen(left[i]) + shift : 0.0f;
            values[COLUMNS + 1] = inside && column + COLUMNS < TILE ? scale * widen(right[i]) + shift : 0.0f;
#pragma unroll
            for (int x = 0; x < COLUMNS; ++x) values[x + 1] = inside ? scale * widen(rows[i][x]) + shift : 0.0f;
#pragma unroll
            for (int out = 0; out < BAND; ++out) {
                const int dy = i - out;
                if (dy < 0 || dy > 2) continue;
#pragma unroll
                for (int x = 0; x < COLUMNS; ++x) {
                    float sum = dy == 0 ? to_float(bias) : sums[out][x];
#pragma unroll
                    for (int dx = 0; dx < 3; ++dx) sum += to_float(kernel[3 * dy + dx]) * values[x + dx];
                    sums[out][x] = sum;
                }
            }
        }
        elem* to = &s.x[0][(row - chunk * ROWS) * TILE + column][channel];
#pragma unroll
        for (int i = 0; i < BAND; ++i) {
#pragma unroll
            for (int x = 0; x < COLUMNS; ++x) {
                const elem rounded = from_float(sums[i][x]);
                to[(i * TILE + x) * STRIDE] = rounded;
                if constexpr (SPLIT) to[(SLOTS + i * TILE + x) * STRIDE] = from_float(sums[i][x] - to_float(rounded));
            }
        }
    }
};

// --- 1x1 convolution ---

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
    elem bias[PAIRS_PER_WARP][2][2];
    StepWeights first;
    float at[PAIRS_PER_WARP][2][GROUPS_PER_WARP][4];

    __device__ __forceinline__ Products(const Weights& w)
        : row(threadIdx.x % 32 / 4),
          column(threadIdx.x % 4 * 2),
          pair(threadIdx.x / 32 % WARPS_M * PAIRS_PER_WARP),
          group(WARPS_N == 1 ? 0 : threadIdx.x / 32 / WARPS_M * GROUPS_PER_WARP) {
        load(w.pointwise_weight(), 0, first);
#pragma unroll
        for (int i = 0; i < 4 * PAIRS_PER_WARP; ++i) bias[i / 4][i / 2 % 2][i % 2] = w.pointwise_bias()[output(i)];
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
};

// --- GroupNorm and what follows ---

__device__ __forceinline__ int chunk_pixels(int chunk) { return TILE % ROWS == 0 ? PIXELS : least(ROWS, TILE - chunk * ROWS) * TILE; }

// Mean and squared distances of this warp's products, into all blocks of the tile. Distances from a mean of the warp's own
// keep their digits when the mean is far from zero.
__device__ __forceinline__ void note_moments(Shared& s, const Products& sums, int chunk) {
    const int pixels = chunk_pixels(chunk), live_pairs = least(PAIRS_PER_WARP, PAIRS - sums.pair);
    const int live_pixels = least(GROUPS_PER_WARP * 8, pixels - sums.group * 8);
    const float count = live_pairs > 0 && live_pixels > 0 ? 32.0f * live_pairs * live_pixels : 0.0f;
    float mean = 0.0f, total = 0.0f;
#pragma unroll
    for (int pass = 0; pass < 2; ++pass) {
        total = 0.0f;
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * GROUPS_PER_WARP * 8; ++i) {
            const int p = i / (GROUPS_PER_WARP * 8), j = i / 8 % GROUPS_PER_WARP;
            const float distance = sums.at[p][i % 2][j][i / 2 % 4] - mean;
            const bool live = sums.has(p) && (ALL_PIXELS || (sums.group + j) * 8 + sums.column + i / 2 % 2 < pixels);
            if (live) total += pass == 0 ? distance : distance * distance;
        }
        total = warp_sum(total);
        if (pass == 0) mean = count > 0.0f ? total / count : 0.0f;
    }
    const int peer = threadIdx.x % 32, at = chunk * WARPS + threadIdx.x / 32;
    if (peer < CLUSTER) {
        store_at(peer, &s.counts[at], count);
        store_at(peer, &s.means[at], mean);
        store_at(peer, &s.squares[at], total);
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

// Both of a thread's pixels in one access where they must lie in one row.
constexpr int WIDTH = ALIGNED && TILE % 2 == 0 ? 2 : 1;

template <typename T>
__device__ __forceinline__ void store_pixels(T* to, const int (&at)[2], const bool (&live)[2], float first, float second) {
    const float values[2] = {first, second};
#pragma unroll
    for (int e = 0; e < 2; e += WIDTH) {
        Few<T, WIDTH> few;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) few.at[i] = static_cast<T>(values[e + i]);
        if (live[e]) *reinterpret_cast<Few<T, WIDTH>*>(to + at[e]) = few;
    }
}

// What the last step needs besides the moments: the level's input and the affine numbers of the norm.
struct Finish {
    source base[PAIRS_PER_WARP][2][GROUPS_PER_WARP][2];
    elem weight[PAIRS_PER_WARP][2][2], bias[PAIRS_PER_WARP][2][2];
    int at[GROUPS_PER_WARP][2];
    bool live[GROUPS_PER_WARP][2];

    __device__ __forceinline__ Finish(const Place& place, const Weights& w, const Products& sums, int chunk) {
#pragma unroll
        for (int i = 0; i < GROUPS_PER_WARP * 2; ++i) {
            const int pixel = (sums.group + i / 2) * 8 + sums.column + i % 2;
            live[i / 2][i % 2] = ALL_PIXELS || pixel < chunk_pixels(chunk);
            at[i / 2][i % 2] = (chunk * ROWS + pixel / TILE) * place.width + pixel % TILE;
        }
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * 4; ++i) {
            weight[i / 4][i % 2][i / 2 % 2] = w.norm_weight()[sums.output(i)];
            bias[i / 4][i % 2][i / 2 % 2] = w.norm_bias()[sums.output(i)];
        }
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * 2; ++i) {
            const source* from = place.corner + sums.channel(i / 2, i % 2) * place.plane;
#pragma unroll
            for (int j = 0; j < GROUPS_PER_WARP; ++j) {
#pragma unroll
                for (int e = 0; e < 2; e += WIDTH) {
                    if (!live[j][e]) continue;
                    const Few<source, WIDTH> few = *reinterpret_cast<const Few<source, WIDTH>*>(from + at[j][e]);
#pragma unroll
                    for (int f = 0; f < WIDTH; ++f) base[i / 2][i % 2][j][e + f] = few.at[f];
                }
            }
        }
    }

    // heavy, detail and unrounded point to the tile's corner in channel 0; the last two may be null.
    __device__ __forceinline__ void run(const Shared& s, const Place& place, const Products& sums, float2 moments, elem* heavy,
                                        elem* detail, float* unrounded) const {
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * 2; ++i) {
            const int p = i / 2, lower = i % 2, c = sums.channel(p, lower);
            if (!sums.has(p)) break;
            const float scale = s.tokens.film[c], shift = s.tokens.film[CHANNELS + c];
            float slope[2], offset[2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                slope[half] = moments.y * to_float(weight[p][lower][half]);
                offset[half] = to_float(bias[p][lower][half]) - moments.x * slope[half];
            }
            const long long channel = c * place.plane;
#pragma unroll
            for (int j = 0; j < GROUPS_PER_WARP; ++j) {
                float fused[2], difference[2];
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float a = sums.at[p][0][j][lower * 2 + e] * slope[0] + offset[0];
                    const float b = sums.at[p][1][j][lower * 2 + e] * slope[1] + offset[1];
                    const float before = widen(base[p][lower][j][e]);
                    const float refined = scale * before + shift + a * relu(b);
                    fused[e] = before + s.alpha[(sums.group + j) * 8 + sums.column + e] * (refined - before);
                    difference[e] = fused[e] - before;
                }
                store_pixels(heavy + channel, at[j], live[j], fused[0], fused[1]);
                if (detail) store_pixels(detail + channel, at[j], live[j], difference[0], difference[1]);
                if (unrounded) store_pixels(unrounded + channel, at[j], live[j], fused[0], fused[1]);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        ff_refine_fast(const source* __restrict__ map, const int* __restrict__ ids, const float* __restrict__ tokens,
                       const float* __restrict__ scan, const elem* __restrict__ weights, int tiles, int height, int width,
                       const elem* __restrict__ boundary, const elem* __restrict__ uncertainty, float gate_boundary,
                       float gate_uncertainty, float gate_bias, elem* __restrict__ heavy, elem* __restrict__ detail,
                       float* __restrict__ unrounded, float* __restrict__ states, int state_stride) {
    __shared__ Shared s;
    arrive();
    const int slot = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER, b = slot / tiles, k = slot % tiles;
    const int corner = tile_corner(ids[slot], TILE, width);
    const long long plane = static_cast<long long>(height) * width, sample = b * CHANNELS * plane + corner;
    const Weights w = {weights, CHANNELS};
    const Place place = {map + sample, plane, width};
    const Gate gate = {gate_boundary, gate_uncertainty, gate_bias};
    elem *const heavy_at = heavy + sample, *const detail_at = detail ? detail + sample : nullptr;
    float* const unrounded_at = unrounded ? unrounded + sample : nullptr;

    Strip strip;
    if (ITEMS <= THREADS) strip.load(place, w, threadIdx.x, rank);
    const TokenNorm norm(w);
    Layer<CHANNELS> layer0(w.mlp0_weight(), w.mlp0_bias(), rank);
    Layer<2 * CHANNELS> layer2(w.mlp2_weight(), w.mlp2_bias(), rank);
    scan_to(s.tokens, tokens + static_cast<size_t>(b) * tiles * CHANNELS, scan, k, tiles, rank == 0,
            states + static_cast<size_t>(b) * state_stride);
    __syncthreads();
    norm.run(s.tokens);
    // All blocks of the tile have started: their shared memory may be written.
    if (CLUSTER > 1) __syncthreads();
    wait();
    layer0.run(s.tokens.normed, s.tokens.hidden, [](int, float v) { return v * sigmoid(v); });
    arrive();
    wait();
    layer2.run(s.tokens.hidden, s.tokens.film, [](int o, float v) { return o < CHANNELS ? 1.0f + tanhf(v) : v; });
    arrive();
    // Columns beyond the channels must not hold a NaN: their weights are zero.
    if constexpr (DEPTH > CHANNELS) {
        for (int i = threadIdx.x; i < (1 + SPLIT) * SLOTS * 16; i += THREADS) {
            s.x[i / 16 / SLOTS][i / 16 % SLOTS][CHANNELS + i % 16] = from_float(0.0f);
        }
    }
    Products sums(w);
    wait();

    // Products of one chunk, from the gathering on.
    auto multiply_chunk = [&](int chunk, bool loaded) {
        for (int i = threadIdx.x; i < chunk_pixels(chunk); i += THREADS) {
            const long long at = b * plane + corner + (chunk * ROWS + i / TILE) * width + i % TILE;
            s.alpha[i] = gate.alpha(boundary[at], uncertainty[at]);
        }
#pragma unroll 1
        for (int i = threadIdx.x; i < ITEMS; i += THREADS) {
            if (ITEMS > THREADS || !loaded) strip.load(place, w, i, chunk);
            strip.convolve(s, chunk);
        }
        __syncthreads();
        sums.run(s, w.pointwise_weight());
    };
    if constexpr (ONE_PASS) {
        if (rank < CHUNKS) {
            multiply_chunk(rank, true);
            note_moments(s, sums, rank);
        }
        arrive();
        const Finish finish(place, w, sums, least(rank, CHUNKS - 1));
        wait();
        if (rank < CHUNKS) finish.run(s, place, sums, tile_moments(s), heavy_at, detail_at, unrounded_at);
    } else {
        float2 moments;
#pragma unroll 1
        for (int pass = 0; pass < 2; ++pass) {
#pragma unroll 1
            for (int chunk = rank; chunk < CHUNKS; chunk += CLUSTER) {
                if (pass > 0 || chunk != rank) __syncthreads();
                multiply_chunk(chunk, pass == 0 && chunk == rank);
                if (pass == 0) note_moments(s, sums, chunk);
                else Finish(place, w, sums, chunk).run(s, place, sums, moments, heavy_at, detail_at, unrounded_at);
            }
            if (pass > 0) break;
            arrive();
            wait();
            moments = tile_moments(s);
        }
    }
}
