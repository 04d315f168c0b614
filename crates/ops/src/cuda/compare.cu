// Compares two outputs on the device: how many elements differ by more than a tolerance, or are not numbers in one of them, and
// the first such place. For outputs too large to be worth a trip to the host.
#include "common.cuh"

// out[0]: mismatches; out[1]: the first place, all ones when there is none; out[2]: bits of the largest difference.
extern "C" __global__ void compare(const elem *__restrict__ got, const elem *__restrict__ want, long long count, float atol,
                                   float rtol, unsigned long long *out) {
    unsigned long long mismatches = 0, first = ~0ull;
    float worst = 0.0f;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float g = to_float(got[i]), w = to_float(want[i]);
        const float difference = fabsf(g - w);
        // Written so that NaN on either side is a mismatch.
        if (!(difference <= atol + rtol * fabsf(w))) {
            mismatches++;
            first = min(first, static_cast<unsigned long long>(i));
        }
        worst = fmaxf(worst, difference == difference ? difference : __int_as_float(0x7f800000));
    }
    if (mismatches != 0) {
        atomicAdd(out, mismatches);
        atomicMin(out + 1, first);
    }
    // Bits of floats that are not negative order like the floats. One of a warp tells, and nobody where all is equal: atomics on one
    // place come one after the other.
    const unsigned bits = __reduce_max_sync(~0u, __float_as_uint(worst));
    if (bits != 0 && threadIdx.x % 32 == 0) atomicMax(out + 2, static_cast<unsigned long long>(bits));
}
