// Scaled dot product attention, forward: o = softmax(scale * q k^T) v, for q, k, v, o of shape [heads, s, HEAD_DIM] (heads = batch * heads).
// With CAUSAL=1 query i sees keys 0..i. ELEM_E4M3 reads e4m3 and writes fp16; every other type writes what it reads. scale must be positive.
//
// attention_reference: one warp per query row, two passes over the keys in fp32. Grid: ceil(heads * s / 4), block: 128 threads.
//
// attention_fast (16-bit types and e4m3): each warp owns 16 query rows, its queries, probabilities and sums stay in registers. Tiles of BLOCK_N keys and
// values go through a ring of STAGES buffers in swizzled shared memory; all threads copy them in and mbarriers say "landed" and "free again". On sm_90a the
// products are wgmma, so the scores of a tile are formed while the values of the tile before are added; elsewhere they are mma.sync fed by ldmatrix.
// Grid: ceil(s / (16 * WARPS)) * heads, block: 32 * WARPS (WARPS a multiple of 4), dynamic shared memory: STAGES * BLOCK_N * HEAD_DIM * 4 + 1024 bytes.
//
// attention_fast (fp32): 64 query rows a block on plain FMAs. Grid: ceil(s / 64) * heads, block: 256,
// dynamic shared memory: (128 * (HEAD_DIM + 4) + 64 * 68) * 4 bytes.
#include "common.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WGMMA 1
#else
#define WGMMA 0
#endif
#ifndef BLOCK_N
#define BLOCK_N 64
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef STAGES
#define STAGES (WGMMA ? 4 : 3)
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM (HEAD_DIM <= 64 ? 2 : 1)
#endif

static_assert(HEAD_DIM % 32 == 0 && HEAD_DIM <= 128, "HEAD_DIM is 32, 64, 96 or 128");
static_assert(BLOCK_N % 32 == 0 && BLOCK_N <= 128 && WARPS % 4 == 0 && STAGES >= (WGMMA ? 4 : 3), "BLOCK_N, WARPS or STAGES out of range");

#if defined(ELEM_E4M3)
typedef __half out_elem;
#else
typedef elem out_elem;
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INF __int_as_float(0x7f800000)

// Which head and which first query row a block works on. Causal blocks near the end of the sequence have the most keys: they start first, within groups of
// heads whose keys and values stay in the L2 cache together.
__device__ __forceinline__ void find_block(int rows, int heads, int s, int& head, int& first) {
    const int blocks = (s + rows - 1) / rows;
#if CAUSAL
    const long long fits = (32LL << 20) / (4LL * s * HEAD_DIM);
    const int group = fits < 1 ? 1 : fits < heads ? static_cast<int>(fits) : heads;
    const int at = static_cast<int>(blockIdx.x) / (group * blocks), rest = static_cast<int>(blockIdx.x) % (group * blocks);
    const int here = min(group, heads - at * group);
    head = at * group + rest % here;
    first = (blocks - 1 - rest / here) * rows;
#else
    head = static_cast<int>(blockIdx.x) / blocks;
    first = static_cast<int>(blockIdx.x) % blocks * rows;
#endif
}

extern "C" __global__ void __launch_bounds__(128) attention_reference(const elem* __restrict__ q, const elem* __restrict__ k, const elem* __restrict__ v,
                                                                      out_elem* __restrict__ o, int heads, int s, float scale) {
    constexpr int PER_LANE = HEAD_DIM / 32;
    const int lane = threadIdx.x % 32;
    const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
    if (row >= static_cast<long long>(heads) * s) return;
    const long long head = row / s;
    const int keys = CAUSAL ? static_cast<int>(row % s) + 1 : s;
    q += row * HEAD_DIM;
    k += head * s * HEAD_DIM;
    v += head * s * HEAD_DIM;

    auto score = [&](int key) {
        float sum = 0.0f;
        for (int d = 0; d < HEAD_DIM; ++d) sum += to_float(q[d]) * to_float(k[static_cast<size_t>(key) * HEAD_DIM + d]);
        return sum * scale;
    };
    float top = -INF;
    for (int key = lane; key < keys; key += 32) top = fmaxf(top, score(key));
    for (int apart = 16; apart; apart /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, apart));

    float sum = 0.0f, at[PER_LANE] = {};
    for (int base = 0; base < keys; base += 32) {
        const float mine = base + lane < keys ? expf(score(base + lane) - top) : 0.0f;
        sum += mine;
        for (int i = 0; i < 32 && base + i < keys; ++i) {
            const float p = __shfl_sync(~0u, mine, i);
            for (int d = 0; d < PER_LANE; ++d) at[d] += p * to_float(v[static_cast<size_t>(base + i) * HEAD_DIM + d * 32 + lane]);
        }
    }
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    for (int d = 0; d < PER_LANE; ++d) o[row * HEAD_DIM + d * 32 + lane] = static_cast<out_elem>(at[d] / sum);
}

#if defined(ELEM_F16) || defined(ELEM_BF16) || defined(ELEM_E4M3)

#if defined(ELEM_BF16)
#define MMA_TYPE "bf16"
#else
#define MMA_TYPE "f16"
#endif

// Tiles are cut into columns of WIDE 16-bit elements, each a swizzled block of BLOCK_N rows of 128 or 64 bytes, as wgmma and ldmatrix both read without conflicts.
constexpr int WIDE = HEAD_DIM % 64 == 0 ? 64 : 32;
constexpr int ROW_BYTES = WIDE * 2;
constexpr int COLUMN_BYTES = BLOCK_N * ROW_BYTES;
constexpr int TILE_BYTES = BLOCK_N * HEAD_DIM * 2;
constexpr int THREADS = WARPS * 32;
// Tiles copied ahead of the one in use. wgmma still reads the values of the tile before while the next copy starts, so one buffer more must be left alone.
constexpr int AHEAD = WGMMA ? STAGES - 2 : STAGES - 1;

__device__ __forceinline__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// Byte offset in a tile of the 16-byte chunk that holds elements 8 * chunk.. of a row.
__device__ __forceinline__ u32 tile_offset(int row, int chunk) {
    const int twist = WIDE == 64 ? row & 7 : (row >> 1) & 3;
    return chunk / (WIDE / 8) * COLUMN_BYTES + row * ROW_BYTES + ((chunk % (WIDE / 8)) ^ twist) * 16;
}

__device__ __forceinline__ void barrier_init(u64* barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(u64* barrier) {
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_wait(u64* barrier, int parity) {
    u32 done;
    do {
#if __CUDA_ARCH__ >= 900
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
#else
        asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
#endif
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    } while (!done);
}

// Waits until all copies of this thread but the newest PENDING have landed.
template <int PENDING>
__device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two floats as 16-bit elements, the first in the low half.
__device__ __forceinline__ u32 pack2(float low, float high) {
    u32 y;
    asm("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

// Two neighbouring elements of device memory as 16-bit elements.
__device__ __forceinline__ u32 load2(const elem* p, bool aligned) {
#if defined(ELEM_E4M3)
    const u32 bytes = aligned ? *reinterpret_cast<const u16*>(p) : p[0].__x | p[1].__x << 8;
    const __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(static_cast<u16>(bytes), __NV_E4M3);
    return pair.x | static_cast<u32>(pair.y) << 16;
#else
    if (aligned) return *reinterpret_cast<const u32*>(p);
    const u16* at = reinterpret_cast<const u16*>(p);
    return at[0] | static_cast<u32>(at[1]) << 16;
#endif
}

// Copies the keys or values of one tile into shared memory; rows past the end become zeros. A thread copies chunk `chunk` of every PASS-th row from `row`.
constexpr int CHUNKS = HEAD_DIM / 8;
constexpr int FITS = THREADS / CHUNKS < BLOCK_N ? THREADS / CHUNKS : BLOCK_N;
constexpr int PASS = FITS >= 128 ? 128 : FITS >= 64 ? 64 : FITS >= 32 ? 32 : FITS >= 16 ? 16 : 8;

__device__ __forceinline__ void load_tile(u32 to, const elem* from, int rows, bool aligned) {
    const int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    if (row >= PASS) return;
    to += tile_offset(row, chunk);
    from += row * HEAD_DIM + chunk * 8;
#if !defined(ELEM_E4M3)
    if (aligned) {
#pragma unroll
        for (int i = 0; i < BLOCK_N; i += PASS) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * ROW_BYTES), "l"(from + i * HEAD_DIM), "r"(row + i < rows ? 16 : 0)
                         : "memory");
        }
        return;
    }
#endif
#pragma unroll 1
    for (int i = 0; i < BLOCK_N; i += PASS) {
        u32 x[4] = {};
        if (row + i < rows) {
#pragma unroll
            for (int j = 0; j < 4; ++j) x[j] = load2(from + i * HEAD_DIM + 2 * j, aligned);
        }
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + i * ROW_BYTES), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
    }
}

#if WGMMA

#define LIST_0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define LIST_1 LIST_0 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST_2 LIST_1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define LIST_3 LIST_2 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define USE_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define USE_16(i) USE_4(i), USE_4(i + 4), USE_4(i + 8), USE_4(i + 12)
#define WGMMA_ASM(N, LIST, A0, A1, A2, A3, B, ADD, TRANS, ...)                                                                                  \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" N "k16.f32." MMA_TYPE "." MMA_TYPE " {" LIST \
                 "}, {" A0 "," A1 "," A2 "," A3 "}, " B ", p, 1, 1, " TRANS ";\n}"                                                               \
                 : __VA_ARGS__                                                                                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ACCUMULATE), "n"(TRANSPOSED))

// d (+)= a b for 64 rows of a warpgroup, 16 deep: a in registers, b in shared memory, with its 16 as columns (0) or as rows (1, TRANSPOSED).
template <int N, int ACCUMULATE, int TRANSPOSED>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], const u32* a, u64 b) {
    if constexpr (N == 32) WGMMA_ASM("32", LIST_0, "%16", "%17", "%18", "%19", "%20", "%21", "%22", USE_16(0));
    if constexpr (N == 64) WGMMA_ASM("64", LIST_1, "%32", "%33", "%34", "%35", "%36", "%37", "%38", USE_16(0), USE_16(16));
    if constexpr (N == 96) WGMMA_ASM("96", LIST_2, "%48", "%49", "%50", "%51", "%52", "%53", "%54", USE_16(0), USE_16(16), USE_16(32));
    if constexpr (N == 128) WGMMA_ASM("128", LIST_3, "%64", "%65", "%66", "%67", "%68", "%69", "%70", USE_16(0), USE_16(16), USE_16(32), USE_16(48));
}

// Says where a tile is: address, distance of its columns (used where the product's columns run along the rows of memory), distance of its groups of 8 rows.
__device__ __forceinline__ u64 describe(u32 address) {
    constexpr u64 fixed = static_cast<u64>(WIDE == 64 ? 1 : 2) << 62 | static_cast<u64>(8 * ROW_BYTES >> 4) << 32 |
                               static_cast<u64>(COLUMN_BYTES >> 4) << 16;
    return fixed | (address & 0x3ffff) >> 4;
}

// Keeps the compiler from moving the use of sums across a wait.
template <int N>
__device__ __forceinline__ void pin(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void score_tile(float (&x)[BLOCK_N / 2], const u32* a, u32 keys) {
    const u64 at = describe(keys);
    wgmma<BLOCK_N, 0, 0>(x, a, at);
#pragma unroll
    for (int i = 1; i < HEAD_DIM / 16; ++i) wgmma<BLOCK_N, 1, 0>(x, a + 4 * i, at + ((i * 16 / WIDE * COLUMN_BYTES + i * 16 % WIDE * 2) >> 4));
}

__device__ __forceinline__ void add_values(float (&sums)[HEAD_DIM / 2], const u32* p, u32 values) {
    const u64 at = describe(values);
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; ++i) wgmma<HEAD_DIM, 1, 1>(sums, p + 4 * i, at + (i * 16 * ROW_BYTES >> 4));
}

#else

template <int N>
__device__ __forceinline__ void pin(float (&)[N]) {}
__device__ __forceinline__ void products_begin() {}
__device__ __forceinline__ void products_commit() {}
template <int PENDING>
__device__ __forceinline__ void products_wait() {}

__device__ __forceinline__ void mma(float* d, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void score_tile(float (&x)[BLOCK_N / 2], const u32* a, u32 keys) {
    const int lane = threadIdx.x % 32, row = lane % 8 + lane / 16 * 8, half = lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; ++i) x[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < BLOCK_N / 16; ++j) {
            u32 b[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                         : "r"(keys + tile_offset(j * 16 + row, i * 2 + half))
                         : "memory");
            mma(x + 8 * j, a + 4 * i, b[0], b[1]);
            mma(x + 8 * j + 4, a + 4 * i, b[2], b[3]);
        }
    }
}

__device__ __forceinline__ void add_values(float (&sums)[HEAD_DIM / 2], const u32* p, u32 values) {
    const int lane = threadIdx.x % 32, row = lane % 16, half = lane / 16;
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; ++i) {
#pragma unroll
        for (int j = 0; j < HEAD_DIM / 16; ++j) {
            u32 b[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                         : "r"(values + tile_offset(i * 16 + row, j * 2 + half))
                         : "memory");
            mma(sums + 8 * j, p + 4 * i, b[0], b[1]);
            mma(sums + 8 * j + 4, p + 4 * i, b[2], b[3]);
        }
    }
}

#endif

// Scores of a tile become probabilities relative to a running maximum of the row. A thread holds two rows of 16, as sums[4 * i + 2 * row + (0, 1)].
struct Softmax {
    float top[2] = {-INF, -INF}, sum[2] = {}, shrink[2];
    // Largest score far from zero: score * scale - top * scale in one rounding would be too coarse.
    bool large = false;

    // True where the sums so far must be multiplied by shrink. The maximum follows only once a score passes it by a factor 2^8, which 16-bit elements bear and
    // which is rare after the first tile.
    __device__ __forceinline__ bool apply(float (&x)[BLOCK_N / 2], float scale) {
        float high[2] = {-INF, -INF};
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) high[i / 2 % 2] = fmaxf(high[i / 2 % 2], x[i]);
        const bool moved = __any_sync(~0u, fmaf(high[0], scale, -top[0] * scale) > 8.0f || fmaf(high[1], scale, -top[1] * scale) > 8.0f);
        if (moved) {
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
        float from[2] = {top[0] * scale, top[1] * scale};
        if (large) {
#pragma unroll
            for (int i = 0; i < BLOCK_N / 2; ++i) x[i] -= top[i / 2 % 2];
            from[0] = from[1] = 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) {
            x[i] = exp2_fast(fmaf(x[i], scale, -from[i / 2 % 2]));
            sum[i / 2 % 2] += x[i];
        }
        return moved;
    }
};

// Four lanes exchange words so that lane i gets word i of each.
__device__ __forceinline__ void transpose4(u32 (&x)[4], int lane) {
#pragma unroll
    for (int apart = 1; apart <= 2; ++apart) {
        const bool upper = lane & apart;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            u32& low = x[apart == 1 ? 2 * j : j];
            u32& high = x[apart == 1 ? 2 * j + 1 : j + 2];
            const u32 got = __shfl_xor_sync(~0u, upper ? low : high, apart);
            (upper ? low : high) = got;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) attention_fast(const elem* __restrict__ q, const elem* __restrict__ k,
                                                                                    const elem* __restrict__ v, out_elem* __restrict__ o, int heads, int s,
                                                                                    float scale) {
    extern __shared__ u8 memory[];
    __shared__ u64 landed[STAGES], released[STAGES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 ring = (shared_address(memory) + 1023) & ~1023u;
    const bool aligned = ((reinterpret_cast<size_t>(q) | reinterpret_cast<size_t>(k) | reinterpret_cast<size_t>(v) | reinterpret_cast<size_t>(o)) & 15) == 0;

    int head, first;
    find_block(WARPS * 16, heads, s, head, first);
    const size_t base = static_cast<size_t>(head) * s * HEAD_DIM;
    k += base;
    v += base;
    // The rows that go through the products together have the same number of tiles; causal ones need fewer than the block's last row.
    constexpr int TOGETHER = WGMMA ? 64 : 16;
    const int unit = first + warp * 16 / TOGETHER * TOGETHER, row = first + warp * 16 + lane / 4;
    const int tiles = ((CAUSAL ? min(s, first + WARPS * 16) : s) + BLOCK_N - 1) / BLOCK_N;
    const int mine = unit >= s ? 1 : ((CAUSAL ? min(s, unit + TOGETHER) : s) + BLOCK_N - 1) / BLOCK_N;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&landed[i], WARPS);
            barrier_init(&released[i], WARPS);
        }
    }
    __syncthreads();

    auto copy = [&](int tile) {
        if (tile < tiles) {
            const u32 to = ring + tile % STAGES * 2 * TILE_BYTES;
            const size_t at = static_cast<size_t>(tile) * BLOCK_N * HEAD_DIM;
            load_tile(to, k + at, s - tile * BLOCK_N, aligned);
            load_tile(to + TILE_BYTES, v + at, s - tile * BLOCK_N, aligned);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    auto hand_over = [&](int tile) {
#if WGMMA
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncwarp();
        if (lane == 0 && tile < tiles) barrier_arrive(&landed[tile % STAGES]);
    };
    auto release = [&](int tile) {
        __syncwarp();
        if (lane == 0) barrier_arrive(&released[tile % STAGES]);
    };
    auto copy_next = [&](int tile) {
        copies_wait<AHEAD - 2>();
        hand_over(tile + 1);
        const int next = tile + AHEAD;
        if (next >= STAGES && next < tiles) barrier_wait(&released[next % STAGES], (next / STAGES - 1) & 1);
        copy(next);
    };

    for (int i = 0; i < AHEAD; ++i) copy(i);
    u32 a[HEAD_DIM / 4];
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 4; ++i) {
        const int at = row + i % 2 * 8;
        a[i] = at < s ? load2(q + base + static_cast<size_t>(at) * HEAD_DIM + i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2, aligned) : 0;
    }
    copies_wait<AHEAD - 1>();
    hand_over(0);

    const float scale2 = scale * 1.4426950408889634f;
    Softmax softmax;
    float x[BLOCK_N / 2], sums[HEAD_DIM / 2] = {};
    u32 p[BLOCK_N / 4];
    auto keys_at = [&](int tile) { return ring + tile % STAGES * 2 * TILE_BYTES; };
    auto values_at = [&](int tile) { return keys_at(tile) + TILE_BYTES; };
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
    auto pack = [&] {
#pragma unroll
        for (int i = 0; i < BLOCK_N / 4; ++i) p[i] = pack2(x[2 * i], x[2 * i + 1]);
    };

    barrier_wait(&landed[0], 0);
    products_begin();
    score_tile(x, a, keys_at(0));
    products_commit();
    copy_next(0);
    products_wait<0>();
    pin(x);
    mask(0);
    softmax.apply(x, scale2);
    pack();
    for (int tile = 1; tile < mine; ++tile) {
        barrier_wait(&landed[tile % STAGES], tile / STAGES & 1);
        pin(x);
        pin(sums);
        products_begin();
        score_tile(x, a, keys_at(tile));
        products_commit();
        add_values(sums, p, values_at(tile - 1));
        products_commit();
        if (!WGMMA) release(tile - 1);
        copy_next(tile);
        products_wait<1>();
        pin(x);
        mask(tile);
        const bool moved = softmax.apply(x, scale2);
        products_wait<0>();
        pin(sums);
        if (WGMMA) release(tile - 1);
        if (moved) {
#pragma unroll
            for (int i = 0; i < HEAD_DIM / 2; ++i) sums[i] *= softmax.shrink[i / 2 % 2];
        }
        pack();
    }
    pin(sums);
    products_begin();
    add_values(sums, p, values_at(mine - 1));
    products_commit();
    products_wait<0>();
    pin(sums);
    // Other rows of the block may have tiles left: they count on this warp's share of the copies.
    for (int tile = mine; tile < tiles; ++tile) {
        release(tile - 1);
        copy_next(tile);
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float total = softmax.sum[r];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        const float inverse = 1.0f / total;
        out_elem* to = o + base + static_cast<size_t>(row + r * 8) * HEAD_DIM;
#pragma unroll
        for (int i = 0; i < HEAD_DIM / 32; ++i) {
            u32 y[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) y[j] = pack2(sums[16 * i + 4 * j + 2 * r] * inverse, sums[16 * i + 4 * j + 2 * r + 1] * inverse);
            transpose4(y, lane);
            if (row + r * 8 >= s) continue;
            u16* at = reinterpret_cast<u16*>(to + i * 32 + lane % 4 * 8);
            if (aligned) {
                *reinterpret_cast<uint4*>(at) = make_uint4(y[0], y[1], y[2], y[3]);
            } else {
                for (int j = 0; j < 8; ++j) at[j] = static_cast<u16>(y[j / 2] >> j % 2 * 16);
            }
        }
    }
}

#else

extern "C" __global__ void __launch_bounds__(256) attention_fast(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                                                                 float* __restrict__ o, int heads, int s, float scale) {
    constexpr int ROWS = 64, KEYS = 64, STRIDE = HEAD_DIM + 4, P_STRIDE = KEYS + 4;
    extern __shared__ float4 memory4[];
    float* queries = reinterpret_cast<float*>(memory4);
    float* tile = queries + ROWS * STRIDE;
    float* probabilities = tile + KEYS * STRIDE;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const bool aligned = ((reinterpret_cast<size_t>(q) | reinterpret_cast<size_t>(k) | reinterpret_cast<size_t>(v)) & 15) == 0;

    int head, first;
    find_block(ROWS, heads, s, head, first);
    const size_t base = static_cast<size_t>(head) * s * HEAD_DIM;
    auto load = [&](float* to, const float* from, int row) {
        for (int i = threadIdx.x; i < ROWS * HEAD_DIM / 4; i += 256) {
            const int r = i / (HEAD_DIM / 4), c = i % (HEAD_DIM / 4) * 4;
            const float* at = from + base + static_cast<size_t>(row + r) * HEAD_DIM + c;
            float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (row + r < s) x = aligned ? *reinterpret_cast<const float4*>(at) : make_float4(at[0], at[1], at[2], at[3]);
            *reinterpret_cast<float4*>(to + r * STRIDE + c) = x;
        }
    };
    load(queries, q, first);

    // A thread holds rows 4 * ty.., the scores of keys tx + 16 * j and the sums of columns 2 * tx + 32 * j + (0, 1).
    float top[4], sum[4], sums[4][HEAD_DIM / 16] = {};
    for (int i = 0; i < 4; ++i) {
        top[i] = -INF;
        sum[i] = 0.0f;
    }
    const int keys = CAUSAL ? min(s, first + ROWS) : s;
    for (int start = 0; start < keys; start += KEYS) {
        __syncthreads();
        load(tile, k, start);
        __syncthreads();
        float x[4][4] = {};
#pragma unroll 4
        for (int d = 0; d < HEAD_DIM; d += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a[i] = *reinterpret_cast<const float4*>(queries + (4 * ty + i) * STRIDE + d);
                b[i] = *reinterpret_cast<const float4*>(tile + (tx + 16 * i) * STRIDE + d);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) x[i][j] += a[i].x * b[j].x + a[i].y * b[j].y + a[i].z * b[j].z + a[i].w * b[j].w;
            }
        }
        __syncthreads();
        load(tile, v, start);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float high = top[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = start + tx + 16 * j;
                x[i][j] = key >= s || (CAUSAL && key > first + 4 * ty + i) ? -INF : x[i][j] * scale;
                high = fmaxf(high, x[i][j]);
            }
            for (int apart = 8; apart; apart /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, apart));
            const float shrink = expf(top[i] - high);
            top[i] = high;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float p = expf(x[i][j] - high);
                sum[i] += p;
                probabilities[(4 * ty + i) * P_STRIDE + tx + 16 * j] = p;
            }
#pragma unroll
            for (int j = 0; j < HEAD_DIM / 16; ++j) sums[i][j] *= shrink;
        }
        __syncthreads();
#pragma unroll 2
        for (int key = 0; key < KEYS; key += 4) {
            float p[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) *reinterpret_cast<float4*>(p[i]) = *reinterpret_cast<const float4*>(probabilities + (4 * ty + i) * P_STRIDE + key);
#pragma unroll
            for (int t = 0; t < 4; ++t) {
#pragma unroll
                for (int j = 0; j < HEAD_DIM / 32; ++j) {
                    const float2 b = *reinterpret_cast<const float2*>(tile + (key + t) * STRIDE + 2 * tx + 32 * j);
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        sums[i][2 * j] += p[i][t] * b.x;
                        sums[i][2 * j + 1] += p[i][t] * b.y;
                    }
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        for (int apart = 8; apart; apart /= 2) sum[i] += __shfl_xor_sync(~0u, sum[i], apart);
        if (first + 4 * ty + i >= s) continue;
        float* to = o + base + static_cast<size_t>(first + 4 * ty + i) * HEAD_DIM + 2 * tx;
#pragma unroll
        for (int j = 0; j < HEAD_DIM / 16; ++j) to[j / 2 * 32 + j % 2] = sums[i][j] / sum[i];
    }
}

#endif
