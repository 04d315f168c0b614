// mma: products of tiles by tensor cores, again and again from registers or shared memory: what they can do at most. For each of `tiles` tiles
// out = a b^T, with a of 64 rows, b of 128 rows, both of DEPTH elements in 128 bytes, summed over `rounds` equal products and divided by
// their number, so that a product left out shows in the answer. Sums are fp32; fp32 elements are multiplied as tf32.
// Flops: 2 * 64 * 128 * DEPTH * rounds a tile. Bytes: a, b read once, out written once.
//
// Fast: Hopper by wgmma, a warpgroup a tile; all others by mma.sync, 8 warps a tile. Launch: a block a tile, of 128 threads on sm_90a and
// of 256 elsewhere. The reference multiplies once, without tensor cores; any grid of 256 threads.
#include "common.cuh"

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int ROWS = 64, COLUMNS = 128, ROW_BYTES = 128;
constexpr int DEPTH = ROW_BYTES / static_cast<int>(sizeof(elem));
// 32 bytes of a row are what one instruction multiplies, whatever the type.
constexpr int STEPS = ROW_BYTES / 32;
// Products that are summed by a tensor core before they are added up outside: 8-bit products are cut to 14 bits or so of the sum they join, and
// a long sum loses them (3 % after 16 products on an H200).
#if defined(ELEM_E4M3)
constexpr int FOLD = 2;
#else
constexpr int FOLD = 16;
#endif

#if defined(ELEM_F16)
#define MMA_TYPE "f16"
#define MMA_DEPTH "16"
#elif defined(ELEM_BF16)
#define MMA_TYPE "bf16"
#define MMA_DEPTH "16"
#elif defined(ELEM_E4M3)
#define MMA_TYPE "e4m3"
#define MMA_DEPTH "32"
#else
#define MMA_TYPE "tf32"
#define MMA_DEPTH "8"
#endif

__device__ __forceinline__ void plain_products(const elem* a, const elem* b, float* out, long long tiles, long long first, long long step) {
    const long long count = tiles * ROWS * COLUMNS;
    for (long long i = first; i < count; i += step) {
        const long long tile = i / (ROWS * COLUMNS);
        const elem* row = a + (tile * ROWS + i / COLUMNS % ROWS) * DEPTH;
        const elem* column = b + (tile * COLUMNS + i % COLUMNS) * DEPTH;
        float sum = 0.0f;
        for (int k = 0; k < DEPTH; ++k) sum = fmaf(to_float(row[k]), to_float(column[k]), sum);
        out[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256) mma_reference(const elem* __restrict__ a, const elem* __restrict__ b, float* __restrict__ out,
                                                                long long tiles, int rounds) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    plain_products(a, b, out, tiles, static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step);
}

// Four bytes at any address.
__device__ __forceinline__ u32 word(const u8* at) {
    if ((reinterpret_cast<size_t>(at) & 3) == 0) return *reinterpret_cast<const u32*>(at);
    return at[0] | at[1] << 8 | at[2] << 16 | static_cast<u32>(at[3]) << 24;
}

// A tile's rows into shared memory, the 16-byte pieces of each row swapped by the row's number: as wgmma wants them, and no two rows of a
// fragment in the same banks.
template <int THREADS>
__device__ __forceinline__ void fetch(u8* to, const void* from, long long tile, int rows) {
    const u8* at = static_cast<const u8*>(from) + tile * rows * ROW_BYTES;
    for (int i = threadIdx.x; i < rows * ROW_BYTES / 4; i += THREADS) {
        const int row = i / 32, piece = i / 4 % 8;
        *reinterpret_cast<u32*>(to + row * ROW_BYTES + (piece ^ row % 8) * 16 + i % 4 * 4) = word(at + i * 4);
    }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#define LIST                                                                                                                                         \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37," \
    "%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define USE_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define USE_16(i) USE_4(i), USE_4(i + 4), USE_4(i + 8), USE_4(i + 12)
#if defined(ELEM_F16) || defined(ELEM_BF16)
#define WHOLE_ROWS ", 0, 0"
#else
#define WHOLE_ROWS ""
#endif

// d = a b^T or d += a b^T, 32 bytes deep.
__device__ __forceinline__ void product(float (&d)[COLUMNS / 2], u64 a, u64 b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k" MMA_DEPTH ".f32." MMA_TYPE "." MMA_TYPE " {" LIST
                 "}, %64, %65, p, 1, 1" WHOLE_ROWS ";\n}"
                 : USE_16(0), USE_16(16), USE_16(32), USE_16(48)
                 : "l"(a), "l"(b), "r"(add));
}

// 128-byte rows swapped as above, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ u64 describe(const u8* at) {
    const u64 address = (static_cast<u32>(__cvta_generic_to_shared(at)) & 0x3ffff) >> 4;
    return 1ull << 62 | static_cast<u64>(1024 >> 4) << 32 | 1ull << 16 | address;
}

extern "C" __global__ void __launch_bounds__(128) mma_fast(const elem* __restrict__ a, const elem* __restrict__ b, float* __restrict__ out,
                                                           long long tiles, int rounds) {
    __shared__ alignas(1024) u8 left[ROWS * ROW_BYTES];
    __shared__ alignas(1024) u8 right[COLUMNS * ROW_BYTES];
    const long long tile = blockIdx.x;
    fetch<128>(left, a, tile, ROWS);
    fetch<128>(right, b, tile, COLUMNS);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const u64 from = describe(left), with = describe(right);
    float d[COLUMNS / 2], sum[COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) d[i] = sum[i] = 0.0f;
    for (int done = 0; done < rounds; done += FOLD) {
        const int count = min(FOLD, rounds - done);
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) asm volatile("" : "+f"(d[i])::"memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int round = 0; round < count; ++round)
#pragma unroll
            for (int step = 0; step < STEPS; ++step) product(d, from + 2 * step, with + 2 * step, round + step);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) {
            asm volatile("" : "+f"(d[i])::"memory");
            sum[i] += d[i];
        }
    }
    const float share = 1.0f / static_cast<float>(rounds);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* to = out + (tile * ROWS + warp * 16 + lane / 4) * COLUMNS + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) to[i / 2 % 2 * 8 * COLUMNS + i / 4 * 8 + i % 2] = sum[i] * share;
}

#elif defined(ELEM_E4M3) && (__CUDA_ARCH__ < 890 || (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200))

// No 8-bit tensor cores, or none that mma.sync reaches: on Blackwell's large parts it would convert to fp16. The op is not offered there.
extern "C" __global__ void __launch_bounds__(256) mma_fast(const elem* __restrict__ a, const elem* __restrict__ b, float* __restrict__ out,
                                                           long long tiles, int rounds) {
    plain_products(a + blockIdx.x * 1ll * ROWS * DEPTH, b + blockIdx.x * 1ll * COLUMNS * DEPTH, out + blockIdx.x * 1ll * ROWS * COLUMNS, 1,
                   threadIdx.x, 256);
}

#else

// d += a b^T for 16 rows and 8 columns, 32 bytes deep.
__device__ __forceinline__ void product(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k" MMA_DEPTH ".row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Each warp has 32 rows and 32 columns of the tile, all of it in registers.
extern "C" __global__ void __launch_bounds__(256) mma_fast(const elem* __restrict__ a, const elem* __restrict__ b, float* __restrict__ out,
                                                           long long tiles, int rounds) {
    const long long tile = blockIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
    const int first_row = warp / 4 * 32, first_column = warp % 4 * 32;
    __shared__ alignas(16) u8 left[ROWS * ROW_BYTES];
    __shared__ alignas(16) u8 right[COLUMNS * ROW_BYTES];
    fetch<256>(left, a, tile, ROWS);
    fetch<256>(right, b, tile, COLUMNS);
    __syncthreads();
    // A row's number modulo 8 is the group's for all rows of a thread.
    const auto at = [&](const u8* from, int row, int piece) {
        return *reinterpret_cast<const u32*>(from + (row + group) * ROW_BYTES + (piece ^ group) * 16 + quad * 4);
    };
    u32 rows[2][STEPS][4], columns[4][STEPS][2];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int part = 0; part < 4; ++part)
                rows[i][step][part] = at(left, first_row + 16 * i + part % 2 * 8, 2 * step + part / 2);
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int part = 0; part < 2; ++part) columns[j][step][part] = at(right, first_column + 8 * j, 2 * step + part);
    }
    float sum[2][4][4] = {};
    for (int done = 0; done < rounds; done += FOLD) {
        const int count = min(FOLD, rounds - done);
        float d[2][4][4] = {};
        for (int round = 0; round < count; ++round)
#pragma unroll
            for (int step = 0; step < STEPS; ++step)
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) product(d[i][j], rows[i][step], columns[j][step]);
#pragma unroll
        for (int i = 0; i < 32; ++i) sum[i / 16][i / 4 % 4][i % 4] += d[i / 16][i / 4 % 4][i % 4];
    }
    const float share = 1.0f / static_cast<float>(rounds);
    float* to = out + (tile * ROWS + first_row + group) * COLUMNS + first_column + quad * 2;
#pragma unroll
    for (int i = 0; i < 32; ++i)
        to[(i / 16 * 16 + i / 2 % 2 * 8) * COLUMNS + i / 4 % 4 * 8 + i % 2] = sum[i / 16][i / 4 % 4][i % 4] * share;
}

#endif
