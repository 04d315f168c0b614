// Scaled dot product attention, forward, for sm_90a: o = softmax(scale * q k^T) v, for q, k, v, o of shape [heads, s, HEAD_DIM] (heads = batch * heads) in fp16 or
// bf16. With CAUSAL=1 query i sees keys 0..i. scale must be positive.
//
// A warpgroup has 64 query rows, a block WARPGROUPS of them, which share keys and values: tiles of BLOCK_N rows in a ring of STAGES, fetched by the copy engine. The
// product of one tile's scores runs while that of the values before it does. Probabilities stay in registers.
//
// Launch: grid ceil(s / (64 * WARPGROUPS)) * heads, block 128 * WARPGROUPS, dynamic shared memory 4 * STAGES * BLOCK_N * HEAD_DIM + 128 * WARPGROUPS * HEAD_DIM +
// 32 * STAGES + 8 * WARPGROUPS + 24 bytes. The maps cut q into boxes of 64 rows, k and v of BLOCK_N rows, by 64 columns (32 where HEAD_DIM is no multiple of 64).
#include "common.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif
#ifndef BLOCK_N
#define BLOCK_N 64
#endif
#ifndef WARPGROUPS
#define WARPGROUPS 2
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM (WARPGROUPS == 2 && HEAD_DIM <= 96 ? 2 : 1)
#endif

#include "attention.cuh"
#include "attention_hopper.cuh"
// Tiles are cut into columns of WIDE elements, each a swizzled block of rows of 128 or 64 bytes.
constexpr int WIDE = HEAD_DIM % 64 == 0 ? 64 : 32;
constexpr int ROW_BYTES = WIDE * 2;
constexpr int COLUMN_BYTES = BLOCK_N * ROW_BYTES;
constexpr int TILE_BYTES = BLOCK_N * HEAD_DIM * 2;
constexpr int QUERY_BYTES = 64 * HEAD_DIM * 2;
constexpr int WARPS = 4 * WARPGROUPS;

#define WGMMA_RS(N, LIST, A0, A1, A2, A3, B, ...)                                                                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" N "k16.f32." MMA_TYPE "." MMA_TYPE " {" LIST "}, {" A0 "," A1 "," A2 "," A3 \
                 "}, " B ", 1, 1, 1, 1;"                                                                                 \
                 : __VA_ARGS__                                                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA_SS(N, LIST, A, B, ADD, ...)                                                                                     \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" N "k16.f32." MMA_TYPE "." MMA_TYPE " {" LIST "}, " A ", " B ", " ADD ", 1, 1, 0, 0;" \
                 : __VA_ARGS__                                                                                                \
                 : "l"(a), "l"(b))

// d += a b for the 64 rows of a warpgroup, 16 deep: a in registers, b in shared memory with the 16 as its rows.
template <int N>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], const u32* a, u64 b) {
    if constexpr (N == 32) WGMMA_RS("32", LIST_0, "%16", "%17", "%18", "%19", "%20", USE_16(0));
    if constexpr (N == 64) WGMMA_RS("64", LIST_1, "%32", "%33", "%34", "%35", "%36", USE_16(0), USE_16(16));
    if constexpr (N == 96) WGMMA_RS("96", LIST_2, "%48", "%49", "%50", "%51", "%52", USE_16(0), USE_16(16), USE_16(32));
    if constexpr (N == 128) WGMMA_RS("128", LIST_3, "%64", "%65", "%66", "%67", "%68", USE_16(0), USE_16(16), USE_16(32), USE_16(48));
}

// d = a b, or d += a b, both operands in shared memory with the 16 as their columns.
template <int N>
__device__ __forceinline__ void wgmma_set(float (&d)[N / 2], u64 a, u64 b) {
    if constexpr (N == 64) WGMMA_SS("64", LIST_1, "%32", "%33", "0", SET_16(0), SET_16(16));
    if constexpr (N == 96) WGMMA_SS("96", LIST_2, "%48", "%49", "0", SET_16(0), SET_16(16), SET_16(32));
    if constexpr (N == 128) WGMMA_SS("128", LIST_3, "%64", "%65", "0", SET_16(0), SET_16(16), SET_16(32), SET_16(48));
    if constexpr (N == 160) WGMMA_SS("160", LIST_4, "%80", "%81", "0", SET_16(0), SET_16(16), SET_16(32), SET_16(48), SET_16(64));
}

template <int N>
__device__ __forceinline__ void wgmma_add(float (&d)[N / 2], u64 a, u64 b) {
    if constexpr (N == 64) WGMMA_SS("64", LIST_1, "%32", "%33", "1", USE_16(0), USE_16(16));
    if constexpr (N == 96) WGMMA_SS("96", LIST_2, "%48", "%49", "1", USE_16(0), USE_16(16), USE_16(32));
    if constexpr (N == 128) WGMMA_SS("128", LIST_3, "%64", "%65", "1", USE_16(0), USE_16(16), USE_16(32), USE_16(48));
    if constexpr (N == 160) WGMMA_SS("160", LIST_4, "%80", "%81", "1", USE_16(0), USE_16(16), USE_16(32), USE_16(48), USE_16(64));
}

__device__ __forceinline__ u64 describe(u32 place) {
    constexpr u32 layout = (WIDE == 64 ? 1u : 2u) << 30 | (8 * ROW_BYTES >> 4);
    return static_cast<u64>(layout) << 32 | place;
}

__device__ __forceinline__ void score_tile(float (&x)[BLOCK_N / 2], u32 queries, u32 keys) {
    wgmma_set<BLOCK_N>(x, describe(queries), describe(keys));
#pragma unroll
    for (int i = 1; i < HEAD_DIM / 16; ++i) {
        const int column = i * 16 / WIDE, within = i * 16 % WIDE * 2;
        wgmma_add<BLOCK_N>(x, describe(queries + ((column * 64 * ROW_BYTES + within) >> 4)), describe(keys + ((column * COLUMN_BYTES + within) >> 4)));
    }
}

__device__ __forceinline__ void add_values(float (&sums)[HEAD_DIM / 2], const u32* p, u32 values) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; ++i) wgmma<HEAD_DIM>(sums, p + 4 * i, describe(values + (i * 16 * ROW_BYTES >> 4)));
}

// Scores of a tile become probabilities relative to a maximum of the row. A thread holds two rows, as x[4 * i + 2 * row + (0, 1)].
struct Softmax {
    float scale, top[2], sum[2], shrink[2];
    // The largest score is far from zero: score * scale - top * scale in one rounding would be too coarse.
    bool large;

    __device__ __forceinline__ void begin() {
        top[0] = top[1] = -INF;
        sum[0] = sum[1] = 0.0f;
        large = false;
    }

    __device__ __forceinline__ void move(const float (&from)[2]) {
        float high[2] = {from[0], from[1]};
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 1));
            high[r] = fmaxf(fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 2)), top[r]);
            shrink[r] = exp2_fast((top[r] - high[r]) * scale);
            top[r] = high[r];
            sum[r] *= shrink[r];
        }
        large = __any_sync(~0u, fmaxf(fabsf(top[0]), fabsf(top[1])) * scale > 1024.0f);
    }

    // Two probabilities as the product of the values takes them, and their sum. bf16 keeps 8 bits of each: what is divided by later is the sum of what was kept,
    // so that a row's weights add up to one and its error stays below 2^-9 of the largest value.
    static __device__ __forceinline__ u32 pack_and_sum(float a, float b, float& to) {
        const u32 pair = pack2(a, b);
#if defined(ELEM_BF16)
        a = __uint_as_float(pair << 16);
        b = __uint_as_float(pair & 0xffff0000u);
#endif
        to += a;
        to += b;
        return pair;
    }

    // True where the sums so far must be multiplied by shrink. The maximum follows only once the probabilities of a tile reach 4096, which 16-bit elements bear
    // and which is rare after the first tile: so the largest score of a tile need not be found.
    template <bool FIRST>
    __device__ __forceinline__ bool apply(float (&x)[BLOCK_N / 2], u32 (&p)[BLOCK_N / 4]) {
        if (!FIRST && !large) {
            const float from[2] = {top[0] * scale, top[1] * scale};
            float here[2] = {0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < BLOCK_N / 4; ++i) {
                const float a = exp2_fast(fmaf(x[2 * i], scale, -from[i % 2])), b = exp2_fast(fmaf(x[2 * i + 1], scale, -from[i % 2]));
                p[i] = pack_and_sum(a, b, here[i % 2]);
            }
            if (!__any_sync(~0u, !(here[0] <= 4096.0f && here[1] <= 4096.0f))) {
                sum[0] += here[0];
                sum[1] += here[1];
                return false;
            }
        }
        float high[2] = {-INF, -INF};
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) high[i / 2 % 2] = fmaxf(high[i / 2 % 2], x[i]);
        move(high);
#pragma unroll
        for (int i = 0; i < BLOCK_N / 4; ++i) {
            p[i] = pack_and_sum(of(x[2 * i], i % 2), of(x[2 * i + 1], i % 2), sum[i % 2]);
        }
        return true;
    }

    // The probability of a score in one of the two rows.
    __device__ __forceinline__ float of(float x, int row) const { return exp2_fast((x - top[row]) * scale); }

#if defined(ELEM_BF16)
    // In the place of probabilities what rounding cut off from them.
    __device__ __forceinline__ void rest(const float (&x)[BLOCK_N / 2], u32 (&p)[BLOCK_N / 4]) {
#pragma unroll
        for (int i = 0; i < BLOCK_N / 4; ++i) {
            const float a = of(x[2 * i], i % 2) - __uint_as_float(p[i] << 16), b = of(x[2 * i + 1], i % 2) - __uint_as_float(p[i] & 0xffff0000u);
            p[i] = pack_and_sum(a, b, sum[i % 2]);
        }
    }
#endif
};

// Shared memory, as offsets: rings of keys and of values, the queries, barriers.
constexpr int VALUES = STAGES * TILE_BYTES;
constexpr int QUERIES = 2 * VALUES;
constexpr int KEYS_LANDED = QUERIES + WARPGROUPS * QUERY_BYTES;
constexpr int KEYS_RELEASED = KEYS_LANDED + STAGES * 8;
constexpr int VALUES_LANDED = KEYS_RELEASED + STAGES * 8;
constexpr int VALUES_RELEASED = VALUES_LANDED + STAGES * 8;
constexpr int QUERIES_LANDED = VALUES_RELEASED + STAGES * 8;

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_SM)
    attention_wgmma(const __grid_constant__ TensorMap query_map, const __grid_constant__ TensorMap key_map, const __grid_constant__ TensorMap value_map,
                    elem* __restrict__ o, int heads, int s, float scale) {
    extern __shared__ __align__(1024) u8 memory[];
    const u32 base = shared_address(memory);
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), group = warp / 4;
    int head, first;
    find_block(static_cast<int>(blockIdx.x), WARPS * 16, heads, s, head, first);
    const int tiles = ((CAUSAL ? min(s, first + WARPS * 16) : s) + BLOCK_N - 1) / BLOCK_N;
    // One thread of the warpgroup that works longest asks for the tiles.
    const bool fetcher = threadIdx.x == WARPS * 32 - 128;

    // Asks for a tile of keys or of values as soon as its buffer is free.
    auto fetch = [&](const TensorMap* map, int ring, int landed, int released, int tile) {
        if (tile >= tiles) return;
        const u32 slot = static_cast<u32>(tile) % STAGES, at = base + landed + slot * 8;
        if (tile >= STAGES) barrier_wait(base + released + slot * 8, (static_cast<u32>(tile) / STAGES - 1) & 1);
        expect(at, TILE_BYTES);
        for (int i = 0; i < HEAD_DIM / WIDE; ++i) tma(base + ring + slot * TILE_BYTES + i * COLUMN_BYTES, map, i * WIDE, tile * BLOCK_N, head, at);
    };
    auto fetch_after = [&](int tile) {
        if (fetcher) {
            fetch(&key_map, 0, KEYS_LANDED, KEYS_RELEASED, tile - 1 + STAGES);
            if (tile > 1) fetch(&value_map, VALUES, VALUES_LANDED, VALUES_RELEASED, tile - 2 + STAGES);
        }
    };
    if (fetcher) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(base + KEYS_LANDED + i * 8, 1);
            barrier_init(base + VALUES_LANDED + i * 8, 1);
            barrier_init(base + KEYS_RELEASED + i * 8, WARPS);
            barrier_init(base + VALUES_RELEASED + i * 8, WARPS);
        }
        barrier_init(base + QUERIES_LANDED, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        expect(base + QUERIES_LANDED, WARPGROUPS * QUERY_BYTES);
        for (int g = 0; g < WARPGROUPS; ++g) {
            for (int i = 0; i < HEAD_DIM / WIDE; ++i) {
                tma(base + QUERIES + g * QUERY_BYTES + i * 64 * ROW_BYTES, &query_map, i * WIDE, first + g * 64, head, base + QUERIES_LANDED);
            }
        }
        for (int tile = 0; tile < STAGES; ++tile) {
            fetch(&key_map, 0, KEYS_LANDED, KEYS_RELEASED, tile);
            fetch(&value_map, VALUES, VALUES_LANDED, VALUES_RELEASED, tile);
        }
    }
    __syncthreads();

    auto wait = [&](int landed, u32 tile) { barrier_wait(base + landed + tile % STAGES * 8, tile / STAGES & 1); };
    auto arrive = [&](int released, u32 tile) {
        __syncwarp();
        if (lane == 0) barrier_arrive(base + released + tile % STAGES * 8);
    };

    const int unit = first + group * 64, row = first + warp * 16 + lane / 4;
    const int mine = unit >= s ? 1 : ((CAUSAL ? min(s, unit + 64) : s) + BLOCK_N - 1) / BLOCK_N;
    Softmax softmax;
    softmax.scale = scale * 1.4426950408889634f;
    softmax.begin();
    float x[BLOCK_N / 2], sums[HEAD_DIM / 2] = {};
    u32 p[BLOCK_N / 4];
    auto score = [&](u32 tile) {
        products_begin();
        const u32 at = place(fresh(base), 0);
        score_tile(x, at + ((QUERIES + group * QUERY_BYTES) >> 4), at + tile % STAGES * (TILE_BYTES >> 4));
        products_commit();
    };
    auto add = [&](u32 tile) {
        pin(sums);
        products_begin();
        add_values(sums, p, place(fresh(base), COLUMN_BYTES) + (VALUES >> 4) + tile % STAGES * (TILE_BYTES >> 4));
        products_commit();
    };
    auto mask = [&](int tile) {
        const int end = (tile + 1) * BLOCK_N;
        if (end > s || (CAUSAL && end > first + warp * 16 + 1)) {
#pragma unroll
            for (int i = 0; i < BLOCK_N / 2; ++i) {
                const int key = tile * BLOCK_N + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (key >= s || (CAUSAL && key > row + i / 2 % 2 * 8)) x[i] = -INF;
            }
        }
    };
    barrier_wait(base + QUERIES_LANDED, 0);
    wait(KEYS_LANDED, 0);
    score(0);
    products_wait<0>();
    pin(x);
    arrive(KEYS_RELEASED, 0);
    mask(0);
    softmax.apply<true>(x, p);
    for (int tile = 1; tile < mine; ++tile) {
        wait(KEYS_LANDED, tile);
        score(tile);
        wait(VALUES_LANDED, tile - 1);
        add(tile - 1);
        fetch_after(tile);
        // The probabilities are packed as they are found, over those that the product of the values reads.
        products_wait<0>();
        pin(sums);
        arrive(VALUES_RELEASED, tile - 1);
        pin(x);
        arrive(KEYS_RELEASED, tile);
        mask(tile);
        if (softmax.apply<false>(x, p)) {
#pragma unroll
            for (int i = 0; i < HEAD_DIM / 2; ++i) sums[i] *= softmax.shrink[i / 2 % 2];
        }
    }
    wait(VALUES_LANDED, mine - 1);
    add(mine - 1);
    products_wait<0>();
    pin(sums);
#if defined(ELEM_BF16)
    // A row of few keys would show what was cut off: it is added as well.
    if (mine == 1) {
        softmax.rest(x, p);
        add(0);
        products_wait<0>();
        pin(sums);
    }
#endif
    if (mine < tiles) {
        // Other rows of the block have more tiles; this warpgroup only lets them pass.
        arrive(VALUES_RELEASED, mine - 1);
        for (int tile = mine; tile < tiles; ++tile) {
            fetch_after(tile);
            wait(KEYS_LANDED, tile);
            arrive(KEYS_RELEASED, tile);
            wait(VALUES_LANDED, tile);
            arrive(VALUES_RELEASED, tile);
        }
    }

    elem* to = o + (static_cast<size_t>(head) * s + row) * HEAD_DIM + lane % 4 * 8;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float total = softmax.sum[r];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        const float inverse = 1.0f / total;
#pragma unroll
        for (int i = 0; i < HEAD_DIM / 32; ++i) {
            u32 y[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) y[j] = pack2(sums[16 * i + 4 * j + 2 * r] * inverse, sums[16 * i + 4 * j + 2 * r + 1] * inverse);
            transpose4(y, lane);
            if (row + r * 8 < s) *reinterpret_cast<uint4*>(to + r * 8 * HEAD_DIM + i * 32) = make_uint4(y[0], y[1], y[2], y[3]);
        }
    }
}
