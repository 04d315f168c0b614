// fma: `rounds` times x = x * a + b for each of `count` values, in registers: what fp32 arithmetic can do at most. a is a little below 1, so that
// x is still on its way to b / (1 - a) at the end: too few or too many steps show in the answer, which is the CPU's bit for bit.
// Flops: 2 * rounds a value. Bytes: each value read and written once.
//
// Fast: CHAINS values a thread, which do not wait for each other. Launch: block THREADS, grid ceil(count / (THREADS * CHAINS)). The reference
// takes any grid of 256 threads.
#include "common.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef CHAINS
#define CHAINS 8
#endif

extern "C" __global__ void __launch_bounds__(256) fma_reference(const float* __restrict__ in, float* __restrict__ out, long long count, int rounds,
                                                                float a, float b) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        float x = in[i];
        for (int round = 0; round < rounds; ++round) x = fmaf(x, a, b);
        out[i] = x;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) fma_fast(const float* __restrict__ in, float* __restrict__ out, long long count, int rounds,
                                                               float a, float b) {
    const long long first = static_cast<long long>(blockIdx.x) * THREADS * CHAINS + threadIdx.x;
    float x[CHAINS];
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) {
        const long long i = first + chain * THREADS;
        x[chain] = i < count ? in[i] : 0.0f;
    }
#pragma unroll 16
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain) x[chain] = fmaf(x[chain], a, b);
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) {
        const long long i = first + chain * THREADS;
        if (i < count) out[i] = x[chain];
    }
}
