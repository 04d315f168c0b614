// Draws inputs on the device: each element from a hash of the seed and its place, so that the same seed gives the same numbers
// on every device, whatever the launch. One thread an element, in a grid of any size.
#include "common.cuh"

__device__ __forceinline__ unsigned long long hash(unsigned long long x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Mean 0, variance 1, nearly normal: the sum of four uniform 16-bit numbers, centred and scaled; then scale and shift.
extern "C" __global__ void draw_normal(elem *out, long long count, unsigned long long seed, float scale, float shift) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const unsigned long long bits = hash(hash(seed) ^ i);
        const int sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        out[i] = from_float((sum - 131070) * 2.6428998e-5f * scale + shift);
    }
}

// Uniform in [0, 1); then scale and shift.
extern "C" __global__ void draw_uniform(elem *out, long long count, unsigned long long seed, float scale, float shift) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = from_float((hash(hash(seed) ^ i) >> 40) * 5.9604645e-8f * scale + shift);
}

// One of three values by a uniform number: `low` under `low_below`, `high` from `high_from` on, else 0.
extern "C" __global__ void draw_steps(elem *out, long long count, unsigned long long seed, float low_below, float low, float high_from,
                                      float high) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float uniform = (hash(hash(seed) ^ i) >> 40) * 5.9604645e-8f;
        out[i] = from_float(uniform < low_below ? low : uniform >= high_from ? high : 0.0f);
    }
}
