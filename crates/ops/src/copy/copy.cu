// copy: out[i] = in[i], what memory can do at most. Bytes: each element read and written once.
//
// Fast: 16 bytes a thread at a time, ITEMS of them under way together; elements where an address or the count does not allow packs.
// Launch: block THREADS, grid ceil(packs / (THREADS * ITEMS)). The reference takes any grid of 256 threads.
// Rounds: the same, several times over in one launch and past the first-level cache: what the second-level one can do, where all of it fits. Any
// grid of blocks that run at the same time, so that all of them go over everything together.
#include "common.cuh"

#ifndef THREADS
#define THREADS 512
#endif
#ifndef ITEMS
#define ITEMS 4
#endif

extern "C" __global__ void __launch_bounds__(256) copy_reference(const elem* __restrict__ in, elem* __restrict__ out, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) out[i] = in[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) copy_fast(const elem* __restrict__ in, elem* __restrict__ out, long long count) {
    const long long first = static_cast<long long>(blockIdx.x) * THREADS * ITEMS + threadIdx.x;
    const bool aligned = ((reinterpret_cast<size_t>(in) | reinterpret_cast<size_t>(out)) & 15) == 0;
    const long long packs = aligned ? count / PACK : 0;
    const uint4* source = reinterpret_cast<const uint4*>(in);
    uint4* target = reinterpret_cast<uint4*>(out);
    uint4 taken[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < packs) taken[item] = source[first + item * THREADS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < packs) target[first + item * THREADS] = taken[item];
    // What is left over, by all threads of the grid.
    const long long step = static_cast<long long>(gridDim.x) * THREADS;
    for (long long i = packs * PACK + static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < count; i += step) out[i] = in[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) copy_rounds(const elem* __restrict__ in, elem* __restrict__ out, long long count, int rounds) {
    const bool aligned = ((reinterpret_cast<size_t>(in) | reinterpret_cast<size_t>(out)) & 15) == 0;
    const long long packs = aligned ? count / PACK : 0;
    const uint4* source = reinterpret_cast<const uint4*>(in);
    uint4* target = reinterpret_cast<uint4*>(out);
    const long long turn = static_cast<long long>(gridDim.x) * THREADS * ITEMS;
    for (int round = 0; round < rounds; ++round)
        for (long long first = static_cast<long long>(blockIdx.x) * THREADS * ITEMS + threadIdx.x; first < packs; first += turn) {
            uint4 taken[ITEMS];
#pragma unroll
            for (int item = 0; item < ITEMS; ++item)
                if (first + item * THREADS < packs)
                    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(taken[item].x), "=r"(taken[item].y), "=r"(taken[item].z), "=r"(taken[item].w)
                                 : "l"(source + first + item * THREADS));
#pragma unroll
            for (int item = 0; item < ITEMS; ++item)
                if (first + item * THREADS < packs)
                    asm volatile("st.global.cg.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(target + first + item * THREADS), "r"(taken[item].x), "r"(taken[item].y),
                                 "r"(taken[item].z), "r"(taken[item].w));
        }
    const long long step = static_cast<long long>(gridDim.x) * THREADS;
    for (long long i = packs * PACK + static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < count; i += step) out[i] = in[i];
}
