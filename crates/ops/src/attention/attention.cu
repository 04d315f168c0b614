// Scaled dot product attention, forward: o = softmax(scale * q k^T) v, for q, k, v, o of shape [heads, s, HEAD_DIM] (heads = batch * heads).
// With CAUSAL=1 query i sees keys 0..i. ELEM_E4M3 reads e4m3 and writes fp16; every other type writes what it reads. scale must be positive.
// attention_wgmma.cu does the same faster on sm_90a, for 16-bit types and aligned pointers.
//
// attention_reference: one warp per query row, two passes over the keys in fp32. Grid: ceil(heads * s / 4), block: 128 threads.
//
// attention_fast (16-bit types and e4m3): each warp owns 16 query rows; its queries, probabilities and sums stay in registers, the products are mma.sync.
// Tiles of BLOCK_N keys and values go through a ring of STAGES buffers in swizzled shared memory; all threads copy them in, and mbarriers say "landed" and
// "free again". Grid: ceil(s / (16 * WARPS)) * heads, block: 32 * WARPS, dynamic shared memory: STAGES * BLOCK_N * HEAD_DIM * 4 bytes.
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
#ifndef BLOCK_N
#define BLOCK_N 64
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef STAGES
#define STAGES 2
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM (HEAD_DIM <= 64 ? 3 : 2)
#endif

static_assert(HEAD_DIM % 32 == 0 && HEAD_DIM <= 128, "HEAD_DIM is 32, 64, 96 or 128");
static_assert(BLOCK_N % 16 == 0 && STAGES >= 2, "BLOCK_N or STAGES out of range");

#if defined(ELEM_E4M3)
typedef __half out_elem;
#else
typedef elem out_elem;
#endif

#include "attention.cuh"

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

    // Summed with compensation: an error of a score is a relative error of its probability.
    auto score = [&](int key) {
        float sum = 0.0f, lost = 0.0f;
        for (int d = 0; d < HEAD_DIM; ++d) {
            const float term = fmaf(to_float(q[d]), to_float(k[static_cast<size_t>(key) * HEAD_DIM + d]), -lost), next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        return sum;
    };
    float top = -INF;
    for (int key = lane; key < keys; key += 32) top = fmaxf(top, score(key));
    for (int apart = 16; apart; apart /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, apart));

    float sum = 0.0f, at[PER_LANE] = {};
    for (int first = 0; first < keys; first += 32) {
        const float mine = first + lane < keys ? expf((score(first + lane) - top) * scale) : 0.0f;
        sum += mine;
        for (int i = 0; i < 32 && first + i < keys; ++i) {
            const float p = __shfl_sync(~0u, mine, i);
            for (int d = 0; d < PER_LANE; ++d) at[d] += p * to_float(v[static_cast<size_t>(first + i) * HEAD_DIM + d * 32 + lane]);
        }
    }
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    for (int d = 0; d < PER_LANE; ++d) o[row * HEAD_DIM + d * 32 + lane] = static_cast<out_elem>(at[d] / sum);
}

#if defined(ELEM_F16) || defined(ELEM_BF16) || defined(ELEM_E4M3)

// Tiles are cut into columns of WIDE 16-bit elements, each a swizzled block of BLOCK_N rows of 128 or 64 bytes that ldmatrix reads without conflicts.
constexpr int WIDE = HEAD_DIM % 64 == 0 ? 64 : 32;
constexpr int ROW_BYTES = WIDE * 2;
constexpr int TILE_BYTES = BLOCK_N * HEAD_DIM * 2;
constexpr int THREADS = WARPS * 32;
// A tile is copied by PASS rows at a time, 8 elements a thread.
constexpr int CHUNKS = HEAD_DIM / 8;
constexpr int FITS = THREADS / CHUNKS < BLOCK_N ? THREADS / CHUNKS : BLOCK_N;
constexpr int PASS = FITS >= 64 ? 64 : FITS >= 32 ? 32 : FITS >= 16 ? 16 : 8;
static_assert(THREADS >= 8 * CHUNKS && BLOCK_N % PASS == 0, "WARPS or BLOCK_N do not suit HEAD_DIM");

// Byte offset in a tile of the 16-byte chunk that holds elements 8 * chunk.. of a row.
__device__ __forceinline__ u32 tile_offset(int row, int chunk) {
    const int twist = WIDE == 64 ? row & 7 : (row >> 1) & 3;
    return chunk / (WIDE / 8) * BLOCK_N * ROW_BYTES + row * ROW_BYTES + ((chunk % (WIDE / 8)) ^ twist) * 16;
}

__device__ __forceinline__ void barrier_wait(u32 barrier, int parity) {
    u32 done;
    do {
#if __CUDA_ARCH__ >= 900
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
#else
        asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
#endif
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

// Two neighbouring elements of device memory as 16-bit elements.
__device__ __forceinline__ u32 load2(const elem* p, bool aligned) {
    u32 bits;
#if defined(ELEM_E4M3)
    bits = aligned ? *reinterpret_cast<const u16*>(p) : p[0].__x | p[1].__x << 8;
    const __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(static_cast<u16>(bits), __NV_E4M3);
    bits = pair.x | static_cast<u32>(pair.y) << 16;
#else
    const u16* at = reinterpret_cast<const u16*>(p);
    bits = aligned ? *reinterpret_cast<const u32*>(p) : at[0] | static_cast<u32>(at[1]) << 16;
#endif
    return bits;
}

// Copies the keys or values of one tile into shared memory; rows past the end become zeros.
__device__ __forceinline__ void load_tile(u32 to, const elem* from, int rows, bool aligned) {
    const int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    if (row >= PASS) return;
    to += tile_offset(row, chunk);
    from += row * HEAD_DIM + chunk * 8;
    if (aligned) {
#if defined(ELEM_E4M3)
        uint2 raw[BLOCK_N / PASS];
#pragma unroll
        for (int i = 0; i < BLOCK_N / PASS; ++i) {
            raw[i] = row + i * PASS < rows ? *reinterpret_cast<const uint2*>(from + i * PASS * HEAD_DIM) : make_uint2(0, 0);
        }
#pragma unroll
        for (int i = 0; i < BLOCK_N / PASS; ++i) {
            u32 x[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(static_cast<u16>((j < 2 ? raw[i].x : raw[i].y) >> j % 2 * 16), __NV_E4M3);
                x[j] = pair.x | static_cast<u32>(pair.y) << 16;
            }
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + i * PASS * ROW_BYTES), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
        }
#else
#pragma unroll
        for (int i = 0; i < BLOCK_N; i += PASS) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * ROW_BYTES), "l"(from + i * HEAD_DIM), "r"(row + i < rows ? 16 : 0)
                         : "memory");
        }
#endif
        return;
    }
#pragma unroll 1
    for (int i = 0; i < BLOCK_N; i += PASS) {
        u32 x[4] = {};
        if (row + i < rows) {
#pragma unroll
            for (int j = 0; j < 4; ++j) x[j] = load2(from + i * HEAD_DIM + 2 * j, false);
        }
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + i * ROW_BYTES), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
    }
}

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

// Scores of a tile become probabilities relative to a maximum of the row. A thread holds two rows, as x[4 * i + 2 * row + (0, 1)].
struct Softmax {
    float scale, top[2], sum[2], here[2], shrink[2];
    // The largest score is far from zero: score * scale - top * scale in one rounding would be too coarse.
    bool large;

    __device__ __forceinline__ void begin() {
        top[0] = top[1] = -INF;
        sum[0] = sum[1] = 0.0f;
        large = false;
    }

    // Tries the maximum so far; false where that gives probabilities too large for 16 bits.
    __device__ __forceinline__ bool attempt(float (&x)[BLOCK_N / 2]) {
        if (large) return false;
        const float from[2] = {top[0] * scale, top[1] * scale};
        here[0] = here[1] = 0.0f;
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) {
            x[i] = exp2_fast(fmaf(x[i], scale, -from[i / 2 % 2]));
            here[i / 2 % 2] += x[i];
        }
        return here[0] <= 4096.0f && here[1] <= 4096.0f;
    }

    // Moves the maximum to that of this tile: what was summed before must be multiplied by shrink.
    __device__ __forceinline__ void move(float (&x)[BLOCK_N / 2]) {
        float high[2] = {top[0], top[1]};
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) high[i / 2 % 2] = fmaxf(high[i / 2 % 2], x[i]);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 1));
            high[r] = fmaxf(high[r], __shfl_xor_sync(~0u, high[r], 2));
            shrink[r] = exp2_fast((top[r] - high[r]) * scale);
            top[r] = high[r];
            sum[r] *= shrink[r];
            here[r] = 0.0f;
        }
        large = __any_sync(~0u, fmaxf(fabsf(top[0]), fabsf(top[1])) * scale > 1024.0f);
#pragma unroll
        for (int i = 0; i < BLOCK_N / 2; ++i) {
            x[i] = exp2_fast((x[i] - top[i / 2 % 2]) * scale);
            here[i / 2 % 2] += x[i];
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) attention_fast(const elem* __restrict__ q, const elem* __restrict__ k,
                                                                                    const elem* __restrict__ v, out_elem* __restrict__ o, int heads, int s,
                                                                                    float scale) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ u64 landed[STAGES], released[STAGES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 ring = shared_address(memory);
    const bool aligned = ((reinterpret_cast<size_t>(q) | reinterpret_cast<size_t>(k) | reinterpret_cast<size_t>(v) | reinterpret_cast<size_t>(o)) & 15) == 0;

    int head, first;
    find_block(static_cast<int>(blockIdx.x), WARPS * 16, heads, s, head, first);
    const size_t base = static_cast<size_t>(head) * s * HEAD_DIM;
    k += base;
    v += base;
    // Causal warps need fewer tiles than the block's last row.
    const int row = first + warp * 16 + lane / 4;
    const int tiles = ((CAUSAL ? min(s, first + WARPS * 16) : s) + BLOCK_N - 1) / BLOCK_N;
    const int mine = first + warp * 16 >= s ? 0 : ((CAUSAL ? min(s, first + warp * 16 + 16) : s) + BLOCK_N - 1) / BLOCK_N;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared_address(&landed[i]), WARPS);
            barrier_init(shared_address(&released[i]), WARPS);
        }
    }
    __syncthreads();

    auto arrive = [&](u64* barriers, int tile) {
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&barriers[tile % STAGES]));
    };
    auto copy = [&](int tile) {
        if (tile < tiles) {
            if (tile >= STAGES) barrier_wait(shared_address(&released[tile % STAGES]), (tile / STAGES - 1) & 1);
            const u32 to = ring + tile % STAGES * 2 * TILE_BYTES;
            const size_t at = static_cast<size_t>(tile) * BLOCK_N * HEAD_DIM;
            load_tile(to, k + at, s - tile * BLOCK_N, aligned);
            load_tile(to + TILE_BYTES, v + at, s - tile * BLOCK_N, aligned);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // All copies of this warp but the newest STAGES - 2 are there; `tile` is the last of those.
    auto hand_over = [&](int tile) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        if (tile < tiles) arrive(landed, tile);
    };

    for (int i = 0; i < STAGES - 1; ++i) copy(i);
    u32 a[HEAD_DIM / 4];
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 4; ++i) {
        const int at = row + i % 2 * 8;
        a[i] = at < s ? load2(q + base + static_cast<size_t>(at) * HEAD_DIM + i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2, aligned) : 0;
    }
    hand_over(0);

    Softmax softmax;
    softmax.scale = scale * 1.4426950408889634f;
    softmax.begin();
    float x[BLOCK_N / 2], sums[HEAD_DIM / 2] = {};
    auto score = [&](int tile) {
        score_tile(x, a, ring + tile % STAGES * 2 * TILE_BYTES);
        const int end = (tile + 1) * BLOCK_N;
        if (end > s || (CAUSAL && end > first + warp * 16 + 1)) {
#pragma unroll
            for (int i = 0; i < BLOCK_N / 2; ++i) {
                const int key = tile * BLOCK_N + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (key >= s || (CAUSAL && key > row + i / 2 % 2 * 8)) x[i] = -INF;
            }
        }
    };
    for (int tile = 0; tile < tiles; ++tile) {
        barrier_wait(shared_address(&landed[tile % STAGES]), tile / STAGES & 1);
        if (tile < mine) score(tile);
        copy(tile + STAGES - 1);
        if (tile < mine) {
            const bool fits = tile > 0 && __all_sync(~0u, softmax.attempt(x));
            if (!fits) {
                if (tile > 0) score(tile);
                softmax.move(x);
#pragma unroll
                for (int i = 0; i < HEAD_DIM / 2; ++i) sums[i] *= softmax.shrink[i / 2 % 2];
            }
            softmax.sum[0] += softmax.here[0];
            softmax.sum[1] += softmax.here[1];
            const u32 values = ring + tile % STAGES * 2 * TILE_BYTES + TILE_BYTES;
            u32 p[BLOCK_N / 4];
#pragma unroll
            for (int i = 0; i < BLOCK_N / 4; ++i) p[i] = pack2(x[2 * i], x[2 * i + 1]);
            add_values(sums, p, values);
#if defined(ELEM_BF16)
            // bf16 keeps 8 bits of a probability: where few keys hold most of a row's weight that would show, and what the rounding cut off is added as well.
            bool heavy = false;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float total = softmax.sum[r];
                total += __shfl_xor_sync(~0u, total, 1);
                total += __shfl_xor_sync(~0u, total, 2);
                heavy |= softmax.here[r] * 6.0f > total;
            }
            if (__any_sync(~0u, heavy)) {
#pragma unroll
                for (int i = 0; i < BLOCK_N / 4; ++i) p[i] = pack2(x[2 * i] - __uint_as_float(p[i] << 16), x[2 * i + 1] - __uint_as_float(p[i] & 0xffff0000u));
                add_values(sums, p, values);
            }
#endif
        }
        arrive(released, tile);
        hand_over(tile + 1);
    }
    if (mine == 0) return;

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

extern "C" __global__ void __launch_bounds__(256, HEAD_DIM <= 64 ? 2 : 1) attention_fast(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                                                                 float* __restrict__ o, int heads, int s, float scale) {
    constexpr int ROWS = 64, KEYS = 64, STRIDE = HEAD_DIM + 4, P_STRIDE = KEYS + 4;
    extern __shared__ float4 memory4[];
    float* queries = reinterpret_cast<float*>(memory4);
    float* tile = queries + ROWS * STRIDE;
    float* probabilities = tile + KEYS * STRIDE;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const bool aligned = ((reinterpret_cast<size_t>(q) | reinterpret_cast<size_t>(k) | reinterpret_cast<size_t>(v)) & 15) == 0;

    int head, first;
    find_block(static_cast<int>(blockIdx.x), ROWS, heads, s, head, first);
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
        // Summed in parts of 16: an error of a score is a relative error of its probability.
        float x[4][4] = {};
#pragma unroll 1
        for (int d = 0; d < HEAD_DIM; d += 16) {
            float part[4][4] = {};
#pragma unroll
            for (int e = d; e < d + 16; e += 4) {
                float4 a[4], b[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    a[i] = *reinterpret_cast<const float4*>(queries + (4 * ty + i) * STRIDE + e);
                    b[i] = *reinterpret_cast<const float4*>(tile + (tx + 16 * i) * STRIDE + e);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        part[i][j] = fmaf(a[i].x, b[j].x, fmaf(a[i].y, b[j].y, fmaf(a[i].z, b[j].z, fmaf(a[i].w, b[j].w, part[i][j]))));
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < 16; ++i) x[i / 4][i % 4] += part[i / 4][i % 4];
        }
        __syncthreads();
        load(tile, v, start);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float high = top[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = start + tx + 16 * j;
                if (key >= s || (CAUSAL && key > first + 4 * ty + i)) x[i][j] = -INF;
                high = fmaxf(high, x[i][j]);
            }
            for (int apart = 8; apart; apart /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, apart));
            const float shrink = expf((top[i] - high) * scale);
            top[i] = high;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float p = expf((x[i][j] - high) * scale);
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
