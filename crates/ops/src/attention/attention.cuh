// What both attention kernels have: places, barriers, and 16-bit elements. HEAD_DIM and CAUSAL are defined before.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INF __int_as_float(0x7f800000)
#if defined(ELEM_BF16)
#define MMA_TYPE "bf16"
#else
#define MMA_TYPE "f16"
#endif

// Which head and which first query row a block of rows has. Causal ones near the end of the sequence have the most keys: they come first, within groups of heads
// whose keys and values stay in the L2 cache together.
__device__ __forceinline__ void find_block(int index, int rows, int heads, int s, int& head, int& first) {
    const int blocks = (s + rows - 1) / rows;
#if CAUSAL
    const long long fits = (32LL << 20) / (4LL * s * HEAD_DIM);
    const int group = fits < 1 ? 1 : fits < heads ? static_cast<int>(fits) : heads;
    const int at = index / (group * blocks), rest = index % (group * blocks);
    const int here = min(group, heads - at * group);
    head = at * group + rest % here;
    first = (blocks - 1 - rest / here) * rows;
#else
    head = index / blocks;
    first = index % blocks * rows;
#endif
}

__device__ __forceinline__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void barrier_init(u32 barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(u32 barrier) {
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}" ::"r"(barrier) : "memory");
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
