// Scaled dot product attention, forward, for sm_90a: o = softmax(scale * q k^T) v, for q, k, v of shape [heads, s, HEAD_DIM] in e4m3 and o in fp16. With
// CAUSAL=1 query i sees keys 0..i. scale must be positive. HEAD_DIM is 64 or 128.
//
// Both products are those of 8-bit tensor cores. They take a weight as e4m3, which keeps 4 bits of it (8 in rows of one tile, where what was cut off is added),
// and their sums keep about 14 bits: so sums over values are taken over to fp32 after each tile, and scores that are large are computed again by 16-bit
// products. What is divided by is the sum of the weights as they were rounded, found by the same product: there are rows of ones behind the values.
//
// transpose_values comes first: the product wants the keys of a value side by side. Grid: ceil(s / 128) * heads, block 256.
//
// attention_fp8: a warpgroup has 64 query rows, an item has WARPGROUPS times as many, which share keys and values: tiles of BLOCK_N keys in a ring of STAGES, fetched
// by the copy engine. A block takes every gridDim.x-th of the ceil(s / (64 * WARPGROUPS)) * heads items, so that the next one's tiles come while this one
// ends. It may take several where each of them has two tiles or more. Block: 128 * WARPGROUPS, dynamic shared memory:
// STAGES * (BLOCK_N * (2 * HEAD_DIM + 8) + 16) + WARPGROUPS * (64 * HEAD_DIM + 8) bytes. The maps cut q into boxes of 64 rows and k of BLOCK_N rows, by HEAD_DIM
// columns; the transposed values into boxes of HEAD_DIM rows by as many keys as WIDE_VALUES.
#include "common.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif
#ifndef BLOCK_N
#define BLOCK_N 128
#endif
#ifndef WARPGROUPS
#define WARPGROUPS 3
#endif
#ifndef STAGES
#define STAGES 5
#endif

static_assert(HEAD_DIM == 64 || HEAD_DIM == 128, "HEAD_DIM is 64 or 128");
static_assert(BLOCK_N == 64 || BLOCK_N == 96 || BLOCK_N == 128, "BLOCK_N is 64, 96 or 128");
static_assert(STAGES >= 4, "the ring is too short");

#include "attention.cuh"
#include "attention_hopper.cuh"

// Keys of a row of transposed values that lie side by side in shared memory; more are in a column of their own.
constexpr int WIDE_VALUES = BLOCK_N == 96 ? 32 : BLOCK_N;
constexpr int COLUMNS = BLOCK_N / WIDE_VALUES;
constexpr int KEY_BYTES = BLOCK_N * HEAD_DIM;
constexpr int QUERY_BYTES = 64 * HEAD_DIM;
// Rows of ones behind the values, as many as a product's columns come in.
constexpr int ONES = 8;
constexpr int COLUMN_BYTES = (HEAD_DIM + ONES) * WIDE_VALUES;
constexpr int VALUE_BYTES = COLUMNS * COLUMN_BYTES;
constexpr int SUMS = (HEAD_DIM + ONES) / 2;
constexpr int WEIGHTS = BLOCK_N / 8;
constexpr int WARPS = 4 * WARPGROUPS;
constexpr int ROWS = 64 * WARPGROUPS;
// Tiles that are asked for ahead. The rest of the ring lets warpgroups be at different ones.
constexpr int AHEAD = 2;
// The largest weight is 2^8: e4m3 ends at 448, and a weight of a 16 384th keeps its bits.
constexpr float LARGEST = 8.0f;
// Scores from here on, times log2(e), are computed again: 2^-13 of them, in each of a few steps, is half a per cent of a weight.
constexpr float LARGE = 24.0f;

#define LIST_1B LIST_1 ",%32,%33,%34,%35"
#define LIST_3B LIST_3 ",%64,%65,%66,%67"
#define WGMMA_RS(N, LIST, A0, A1, A2, A3, B, ADD, ...)                                                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" N "k32.f32.e4m3.e4m3 {" LIST "}, {" A0 "," A1 "," A2 "," A3 "}, " B ", " ADD ", 1, 1;" \
                 : __VA_ARGS__                                                                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA_SS(N, LIST, A, B, ADD, ...)                                                                                               \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" N "k32.f32.e4m3.e4m3 {" LIST "}, " A ", " B ", " ADD ", 1, 1;" : __VA_ARGS__ : "l"(a), \
                 "l"(b))

// d = a b where SET, else d += a b; both operands in shared memory, 32 deep.
template <bool SET>
__device__ __forceinline__ void score_step(float (&d)[BLOCK_N / 2], u64 a, u64 b) {
    if constexpr (BLOCK_N == 64 && SET) WGMMA_SS("64", LIST_1, "%32", "%33", "0", SET_16(0), SET_16(16));
    if constexpr (BLOCK_N == 96 && SET) WGMMA_SS("96", LIST_2, "%48", "%49", "0", SET_16(0), SET_16(16), SET_16(32));
    if constexpr (BLOCK_N == 128 && SET) WGMMA_SS("128", LIST_3, "%64", "%65", "0", SET_16(0), SET_16(16), SET_16(32), SET_16(48));
    if constexpr (BLOCK_N == 64 && !SET) WGMMA_SS("64", LIST_1, "%32", "%33", "1", USE_16(0), USE_16(16));
    if constexpr (BLOCK_N == 96 && !SET) WGMMA_SS("96", LIST_2, "%48", "%49", "1", USE_16(0), USE_16(16), USE_16(32));
    if constexpr (BLOCK_N == 128 && !SET) WGMMA_SS("128", LIST_3, "%64", "%65", "1", USE_16(0), USE_16(16), USE_16(32), USE_16(48));
}

// The same with a in registers, for values and the ones behind them.
template <bool SET>
__device__ __forceinline__ void value_step(float (&d)[SUMS], const u32* a, u64 b) {
    if constexpr (SUMS == 36 && SET) WGMMA_RS("72", LIST_1B, "%36", "%37", "%38", "%39", "%40", "0", SET_16(0), SET_16(16), SET_4(32));
    if constexpr (SUMS == 68 && SET)
        WGMMA_RS("136", LIST_3B, "%68", "%69", "%70", "%71", "%72", "0", SET_16(0), SET_16(16), SET_16(32), SET_16(48), SET_4(64));
    if constexpr (SUMS == 36 && !SET) WGMMA_RS("72", LIST_1B, "%36", "%37", "%38", "%39", "%40", "1", USE_16(0), USE_16(16), USE_4(32));
    if constexpr (SUMS == 68 && !SET)
        WGMMA_RS("136", LIST_3B, "%68", "%69", "%70", "%71", "%72", "1", USE_16(0), USE_16(16), USE_16(32), USE_16(48), USE_4(64));
}

// An operand whose rows have so many bytes, swizzled over as many.
template <int ROW_BYTES>
__device__ __forceinline__ u64 describe(u32 place) {
    constexpr u32 layout = (ROW_BYTES == 128 ? 1u : ROW_BYTES == 64 ? 2u : 3u) << 30 | (8 * ROW_BYTES >> 4);
    return static_cast<u64>(layout) << 32 | place;
}

__device__ __forceinline__ void score_tile(float (&x)[BLOCK_N / 2], u32 queries, u32 keys) {
    score_step<true>(x, describe<HEAD_DIM>(queries), describe<HEAD_DIM>(keys));
#pragma unroll
    for (int i = 1; i < HEAD_DIM / 32; ++i) score_step<false>(x, describe<HEAD_DIM>(queries + 2 * i), describe<HEAD_DIM>(keys + 2 * i));
}

__device__ __forceinline__ void weigh_tile(float (&sums)[SUMS], const u32* weights, u32 at) {
    value_step<true>(sums, weights, describe<WIDE_VALUES>(at));
#pragma unroll
    for (int i = 1; i < BLOCK_N / 32; ++i) {
        const int column = i * 32 / WIDE_VALUES, within = i * 32 % WIDE_VALUES;
        value_step<false>(sums, weights + 4 * i, describe<WIDE_VALUES>(at + ((column * COLUMN_BYTES + within) >> 4)));
    }
}

__device__ __forceinline__ u32 pack4(float a, float b, float c, float d) {
    u32 y;
    asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\ncvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}"
        : "=r"(y)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return y;
}

// Two e4m3 in the low half of a word, as two 16-bit elements.
__device__ __forceinline__ u32 widen2(u32 pair) {
    u32 y;
    asm("{\n.reg .b16 low;\ncvt.u16.u32 low, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}" : "=r"(y) : "r"(pair));
    return y;
}

// Scores of a warp's 16 rows by products of 16-bit elements, whose sums keep 24 bits. Any order of a row's elements will do, if it is the same on both sides.
__device__ __forceinline__ void score_exactly(float (&x)[BLOCK_N / 2], u32 queries, u32 keys, int lane, int warp) {
    // Byte offset of 4 elements of a row.
    auto at = [](u32 row, u32 byte) {
        const u32 twist = HEAD_DIM == 128 ? row & 7 : row >> 1 & 3;
        return row * HEAD_DIM + (((byte >> 4) ^ twist) << 4) + (byte & 15);
    };
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; ++i) x[i] = 0.0f;
    const u32 row = warp % 4 * 16 + lane / 4;
    // In order, so that few registers are taken.
    auto load = [](u32 address) {
        u32 y;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(y) : "r"(address) : "memory");
        return y;
    };
#pragma unroll 1
    for (int d = lane % 4 * 4; d < HEAD_DIM; d += 16) {
        const u32 q0 = load(queries + at(row, d)), q1 = load(queries + at(row + 8, d));
        const u32 a[4] = {widen2(q0), widen2(q1), widen2(q0 >> 16), widen2(q1 >> 16)};
#pragma unroll
        for (int j = 0; j < BLOCK_N / 8; ++j) {
            const u32 k = load(keys + at(j * 8 + lane / 4, d));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(x[4 * j]), "+f"(x[4 * j + 1]), "+f"(x[4 * j + 2]), "+f"(x[4 * j + 3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(widen2(k)), "r"(widen2(k >> 16)));
        }
    }
}

// Scores of a tile become weights relative to the largest of the row so far. A thread holds two rows, as x[4 * i + 2 * row + (0, 1)].
struct Softmax {
    float scale, top[2], shrink[2], from[2];

    __device__ __forceinline__ void begin() { top[0] = top[1] = -INF; }

    // Finds what the tile's weights are relative to. `known` is called once the largest scores are; `again` computes all anew, for where they are large.
    template <typename Known, typename Again>
    __device__ __forceinline__ void prepare(float (&x)[BLOCK_N / 2], Known known, Again again) {
        float high[2];
        auto find = [&] {
            high[0] = high[1] = -INF;
#pragma unroll
            for (int i = 0; i < BLOCK_N / 2; ++i) high[i / 2 % 2] = fmaxf(high[i / 2 % 2], x[i]);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 1));
                high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 2));
            }
        };
        find();
        known();
        const bool large = __any_sync(~0u, fmaxf(fabsf(high[0]), fabsf(high[1])) * scale > LARGE);
        if (large) {
            again(x);
            find();
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            high[r] = fmaxf(high[r], top[r]);
            shrink[r] = exp2_fast((top[r] - high[r]) * scale);
            top[r] = high[r];
            from[r] = fmaf(high[r], scale, -LARGEST);
        }
        if (large) {
            // score * scale - top * scale in one rounding would be too coarse.
#pragma unroll
            for (int i = 0; i < BLOCK_N / 2; ++i) x[i] -= top[i / 2 % 2];
            from[0] = from[1] = -LARGEST;
        }
    }

    __device__ __forceinline__ void weigh(const float (&x)[BLOCK_N / 2], u32 (&weights)[WEIGHTS]) const {
#pragma unroll
        for (int i = 0; i < WEIGHTS; ++i) weights[i] = pack4(of(x, i, 0), of(x, i, 1), of(x, i, 2), of(x, i, 3));
    }

    // One of the four weights of a word. The word belongs to row i % 2; the transposed values have their keys in the order in which a thread holds scores.
    __device__ __forceinline__ float of(const float (&x)[BLOCK_N / 2], int i, int j) const {
        const int at = 8 * (i / 2) + 4 * (j / 2) + 2 * (i % 2) + j % 2;
        return exp2_fast(fmaf(x[at], scale, -from[i % 2]));
    }

    // In the place of weights what rounding cut off from them.
    __device__ __forceinline__ void rest(const float (&x)[BLOCK_N / 2], u32 (&weights)[WEIGHTS]) const {
#pragma unroll
        for (int i = 0; i < WEIGHTS; ++i) {
            const u32 pairs[2] = {widen2(weights[i]), widen2(weights[i] >> 16)};
            const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&pairs[0])), high = __half22float2(*reinterpret_cast<const __half2*>(&pairs[1]));
            weights[i] = pack4(of(x, i, 0) - low.x, of(x, i, 1) - low.y, of(x, i, 2) - high.x, of(x, i, 3) - high.y);
        }
    }
};

// Shared memory, as offsets: rings of keys and of values, the queries, barriers.
constexpr int VALUES = STAGES * KEY_BYTES;
constexpr int QUERIES = VALUES + STAGES * VALUE_BYTES;
constexpr int LANDED = QUERIES + WARPGROUPS * QUERY_BYTES;
constexpr int RELEASED = LANDED + STAGES * 8;
constexpr int QUERIES_LANDED = RELEASED + STAGES * 8;

// Named barriers: warpgroup g waits for its turn at TURN + g, and for its own warps at TOGETHER + g.
constexpr int TURN = 1, TOGETHER = TURN + WARPGROUPS;

// The same in all lanes, in a way that the compiler knows it: what follows from it stays in uniform registers, and there are few others.
__device__ __forceinline__ int uniform(int x) { return __reduce_max_sync(~0u, x); }

extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
    attention_fp8(const __grid_constant__ TensorMap query_map, const __grid_constant__ TensorMap key_map, const __grid_constant__ TensorMap value_map,
                  __half* __restrict__ o, int heads, int s, float scale) {
    extern __shared__ __align__(1024) u8 memory[];
    const u32 base = shared_address(memory);
    const int lane = threadIdx.x % 32, warp = uniform(threadIdx.x / 32), group = warp / 4;
    const int items = (s + ROWS - 1) / ROWS * heads;
    int item = static_cast<int>(blockIdx.x), head, first, next_head, next_first;
    find_block(item, ROWS, heads, s, head, first);
    auto look_ahead = [&] {
        next_head = -1;
        next_first = 0;
        if (item + static_cast<int>(gridDim.x) < items) find_block(item + static_cast<int>(gridDim.x), ROWS, heads, s, next_head, next_first);
        next_head = uniform(next_head);
        next_first = uniform(next_first);
    };
    look_ahead();
    auto tiles_of = [&](int first) { return ((CAUSAL ? min(s, first + ROWS) : s) + BLOCK_N - 1) / BLOCK_N; };
    int tiles = tiles_of(first);
    // Tiles of the items before this one: tiles are numbered through.
    u32 before = 0;

    // Asks for a tile of this item, or beyond its last one for a tile of the next.
    auto fetch = [&](int tile) {
        const u32 number = before + static_cast<u32>(tile), slot = number % STAGES, landed = base + LANDED + slot * 8;
        const bool later = tile >= tiles;
        const int from = later ? next_head : head;
        if (from < 0) return;
        if (later) tile -= tiles;
        if (number >= STAGES) barrier_wait(base + RELEASED + slot * 8, (number / STAGES - 1) & 1);
        expect(landed, KEY_BYTES + BLOCK_N * HEAD_DIM);
        tma(base + slot * KEY_BYTES, &key_map, 0, tile * BLOCK_N, from, landed);
        for (int i = 0; i < COLUMNS; ++i)
            tma(base + VALUES + slot * VALUE_BYTES + i * COLUMN_BYTES, &value_map, tile * BLOCK_N + i * WIDE_VALUES, 0, from, landed);
    };
    auto fetch_queries = [&](int g, int head, int first) {
        const u32 landed = base + QUERIES_LANDED + g * 8;
        expect(landed, QUERY_BYTES);
        tma(base + QUERIES + g * QUERY_BYTES, &query_map, 0, first + g * 64, head, landed);
    };
    // One thread of the warpgroup that works longest asks for the tiles.
    const bool fetcher = threadIdx.x == WARPS * 32 - 128;
    auto fetch_ahead = [&](int tile) {
        if (fetcher) fetch(tile + AHEAD);
    };
    if (fetcher) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(base + LANDED + i * 8, 1);
            barrier_init(base + RELEASED + i * 8, WARPS);
        }
        for (int g = 0; g < WARPGROUPS; ++g) barrier_init(base + QUERIES_LANDED + g * 8, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int g = 0; g < WARPGROUPS; ++g) fetch_queries(g, head, first);
        for (int tile = 0; tile < AHEAD; ++tile) fetch(tile);
    }
    for (int i = threadIdx.x; i < STAGES * COLUMNS * (ONES * WIDE_VALUES / 4); i += WARPS * 32) {
        const int column = i / (ONES * WIDE_VALUES / 4), within = i % (ONES * WIDE_VALUES / 4);
        *reinterpret_cast<u32*>(memory + VALUES + column * COLUMN_BYTES + HEAD_DIM * WIDE_VALUES + within * 4) = 0x38383838u;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

    auto wait = [&](u32 tile) { barrier_wait(base + LANDED + (before + tile) % STAGES * 8, (before + tile) / STAGES & 1); };
    auto release = [&](u32 tile) {
        __syncwarp();
        if (lane == 0) barrier_arrive(base + RELEASED + (before + tile) % STAGES * 8);
    };
    // One warpgroup at a time, in turn, is between its scores and the largest of them: so they stay a third of a tile apart. Left to themselves they fall into step,
    // where all of them multiply, and then all of them find weights.
    auto take_turn = [&] { asm volatile("barrier.cta.sync.aligned %0, 256;" ::"r"(TURN + group) : "memory"); };
    auto pass_turn = [&](int tile) {
        if (group < WARPGROUPS - 1 || tile + 1 < tiles || next_head >= 0)
            asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"r"(TURN + (group + 1) % WARPGROUPS) : "memory");
    };
    if (group == WARPGROUPS - 1) asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"n"(TURN) : "memory");

    for (u32 parity = 0;; parity ^= 1) {
        const int unit = first + group * 64, row = first + warp * 16 + lane / 4;
        const int mine = unit >= s ? 1 : ((CAUSAL ? min(s, unit + 64) : s) + BLOCK_N - 1) / BLOCK_N;
        Softmax softmax;
        softmax.scale = scale * 1.4426950408889634f;
        softmax.begin();
        float sums[SUMS] = {};
        auto mask = [&](float (&x)[BLOCK_N / 2], int tile) {
            const int end = (tile + 1) * BLOCK_N;
            if (end > s || (CAUSAL && end > first + warp * 16 + 1)) {
#pragma unroll
                for (int i = 0; i < BLOCK_N / 2; ++i) {
                    const int key = tile * BLOCK_N + i / 4 * 8 + lane % 4 * 2 + i % 2;
                    if (key >= s || (CAUSAL && key > row + i / 2 % 2 * 8)) x[i] = -INF;
                }
            }
        };
        auto score = [&](float (&x)[BLOCK_N / 2], int tile) {
            products_begin();
            const u32 at = place(fresh(base), 0);
            score_tile(x, at + ((QUERIES + group * QUERY_BYTES) >> 4), at + (before + tile) % STAGES * (KEY_BYTES >> 4));
            products_commit();
        };
        auto prepare = [&](float (&x)[BLOCK_N / 2], int tile, bool in_turn) {
            mask(x, tile);
            auto known = [&] {
                if (in_turn) pass_turn(tile);
            };
            softmax.prepare(x, known, [&](float (&x)[BLOCK_N / 2]) {
                score_exactly(x, base + QUERIES + group * QUERY_BYTES, base + (before + tile) % STAGES * KEY_BYTES, lane, warp);
                mask(x, tile);
            });
        };
        auto values_at = [&](int tile) { return place(fresh(base), 0) + (VALUES >> 4) + (before + tile) % STAGES * (VALUE_BYTES >> 4); };
        barrier_wait(base + QUERIES_LANDED + group * 8, parity);
        if (mine == 1) {
            // A row of few keys would show what is cut off from its weights: it is added as well, beforehand.
            u32 weights[WEIGHTS];
            float x[BLOCK_N / 2], partial[SUMS];
            wait(0);
            score(x, 0);
            products_wait<0>();
            pin(x);
            prepare(x, 0, false);
            softmax.weigh(x, weights);
            softmax.rest(x, weights);
            products_begin();
            weigh_tile(partial, weights, values_at(0));
            products_commit();
            products_wait<0>();
            pin(partial);
#pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] += partial[i];
        }
        for (int tile = 0; tile < mine; ++tile) {
            u32 weights[WEIGHTS];
            float x[BLOCK_N / 2], partial[SUMS];
            wait(tile);
            take_turn();
            score(x, tile);
            products_wait<0>();
            pin(x);
            prepare(x, tile, true);
            softmax.weigh(x, weights);
            products_begin();
            weigh_tile(partial, weights, values_at(tile));
            products_commit();
            fetch_ahead(tile);
            products_wait<0>();
            pin(partial);
            release(tile);
#pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] = fmaf(sums[i], softmax.shrink[i / 2 % 2], partial[i]);
        }
        if (next_head >= 0) {
            // The next item's queries take the place of these.
            asm volatile("barrier.cta.sync.aligned %0, 128;" ::"r"(TOGETHER + group) : "memory");
            if (threadIdx.x % 128 == 0) fetch_queries(group, next_head, next_first);
        }
        // Other rows of the item have more tiles; this warpgroup only lets them pass.
        for (int tile = mine; tile < tiles; ++tile) {
            take_turn();
            pass_turn(tile);
            fetch_ahead(tile);
            wait(tile);
            release(tile);
        }

        __half* to = o + (static_cast<size_t>(head) * s + row) * HEAD_DIM + lane % 4 * 8;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float inverse = 1.0f / sums[HEAD_DIM / 2 + 2 * r];
#pragma unroll
            for (int i = 0; i < HEAD_DIM / 32; ++i) {
                u32 y[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) y[j] = pack2(sums[16 * i + 4 * j + 2 * r] * inverse, sums[16 * i + 4 * j + 2 * r + 1] * inverse);
                transpose4(y, lane);
                if (row + r * 8 < s) *reinterpret_cast<uint4*>(to + r * 8 * HEAD_DIM + i * 32) = make_uint4(y[0], y[1], y[2], y[3]);
            }
        }

        if (next_head < 0) return;
        item += static_cast<int>(gridDim.x);
        before = uniform(before + tiles);
        head = next_head;
        first = next_first;
        tiles = tiles_of(first);
        look_ahead();
    }
}

// Values [heads, s, HEAD_DIM] as [heads, HEAD_DIM, pitch], pitch a multiple of 16, zero beyond s. Of 16 keys, position 4t + 2j + e has key 8j + 2t + e: so a thread
// holds weights as the product of the values takes them.
extern "C" __global__ void __launch_bounds__(256) transpose_values(const u8* __restrict__ v, u8* __restrict__ to, int s, int pitch) {
    // An odd number of words a row, and columns far apart in a warp: reads fall on different banks.
    constexpr int WORDS = HEAD_DIM / 4, ROW_WORDS = WORDS + 1;
    __shared__ u32 tile[128 * ROW_WORDS];
    const int blocks = (s + 127) / 128, head = static_cast<int>(blockIdx.x) / blocks, first = static_cast<int>(blockIdx.x) % blocks * 128;
    const u8* from = v + static_cast<size_t>(head) * s * HEAD_DIM;
    for (int i = threadIdx.x; i < 128 * WORDS / 4; i += 256) {
        const int key = i / (WORDS / 4), chunk = i % (WORDS / 4);
        uint4 x = make_uint4(0, 0, 0, 0);
        if (first + key < s) x = *reinterpret_cast<const uint4*>(from + static_cast<size_t>(first + key) * HEAD_DIM + chunk * 16);
        u32* at = tile + key * ROW_WORDS + chunk * 4;
        at[0] = x.x;
        at[1] = x.y;
        at[2] = x.z;
        at[3] = x.w;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32, t = lane % 4, apart = (lane / 8 & 1) + (lane / 8 & 2) * 4;
    u8* out = to + static_cast<size_t>(head) * HEAD_DIM * pitch;
    // A warp takes 32 keys by four words of four columns.
    for (int i = threadIdx.x / 32; i < WORDS; i += 8) {
        const int keys = i % 4 * 32 + lane / 4 % 2 * 16, column = i / 16 * 16 + i / 4 % 4 * 2 + apart;
        const u32* at = tile + (keys + 2 * t) * ROW_WORDS + column;
        const u32 a = at[0], b = at[ROW_WORDS], c = at[8 * ROW_WORDS], d = at[9 * ROW_WORDS];
        const u32 ab[2] = {__byte_perm(a, b, 0x5140), __byte_perm(a, b, 0x7362)}, cd[2] = {__byte_perm(c, d, 0x5140), __byte_perm(c, d, 0x7362)};
        if (first + keys >= pitch) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 y = __byte_perm(ab[j / 2], cd[j / 2], j % 2 ? 0x7632 : 0x5410);
            *reinterpret_cast<u32*>(out + static_cast<size_t>(column * 4 + j) * pitch + first + keys + 4 * t) = y;
        }
    }
}
