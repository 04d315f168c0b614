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

// Numbers of a block of `tally`, in this order.
enum { MISMATCHES, FIRST, MAX_ABS, MAX_REL, COUNT, GOT, WANT, GOT_SQUARED, WANT_SQUARED, PRODUCT, ERROR, ERROR_SQUARED, NUMBERS };

// Compares an output with an oracle's 32-bit answer, as `compare.rs` does: values beyond the range of the element type, from `range` on,
// are right where infinity is stored, or `largest` or NaN in a type without it (0 where there is an infinity). With `planted`, an answer
// must not be finite where the oracle's is not. One row of NUMBERS for each block, which the host adds in order, so that the sums are the
// same every time. Block: 256 threads.
extern "C" __global__ void __launch_bounds__(256) tally(const elem *__restrict__ got, const float *__restrict__ want, long long count,
                                                        double atol, double rtol, double range, double largest, int planted,
                                                        double *__restrict__ out) {
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    double all[NUMBERS] = {};
    all[FIRST] = infinity;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const double g = to_float(got[i]), w = want[i];
        const bool same_side = signbit(g) == signbit(w);
        auto reaches = [&](double x) { return atol + (1.0 + rtol) * fabs(x) >= range; };
        const bool beyond = largest > 0.0 ? reaches(w) && (isnan(g) || (same_side && fabs(g) == largest))
                            : isinf(g)    ? reaches(w) && same_side
                                          : isinf(w) && reaches(g) && same_side;
        if (beyond) continue;
        bool right;
        if (planted && !isfinite(w)) {
            right = !isfinite(g);
        } else {
            const double apart = g == w ? 0.0 : fabs(g - w), difference = isnan(apart) ? infinity : apart;
            const double ratio = difference / fmax(fabs(w), 1e-12);
            all[MAX_ABS] = fmax(all[MAX_ABS], difference);
            all[MAX_REL] = fmax(all[MAX_REL], isnan(ratio) ? infinity : ratio);
            // Written so that NaN on either side is a mismatch; infinities match only themselves.
            right = isinf(g) || isinf(w) ? g == w : fabs(g - w) <= atol + rtol * fabs(w);
            all[COUNT] += 1.0;
            all[GOT] += g;
            all[WANT] += w;
            all[GOT_SQUARED] += g * g;
            all[WANT_SQUARED] += w * w;
            all[PRODUCT] += g * w;
            all[ERROR] += fabs(g - w);
            all[ERROR_SQUARED] += (g - w) * (g - w);
        }
        if (!right) {
            all[MISMATCHES] += 1.0;
            all[FIRST] = fmin(all[FIRST], static_cast<double>(i));
        }
    }
    __shared__ double warps[8][NUMBERS];
    auto join = [](int at, double a, double b) {
        return at == FIRST ? fmin(a, b) : at == MAX_ABS || at == MAX_REL ? fmax(a, b) : a + b;
    };
#pragma unroll
    for (int at = 0; at < NUMBERS; ++at) {
        for (int apart = 16; apart; apart /= 2) all[at] = join(at, all[at], __shfl_xor_sync(~0u, all[at], apart));
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32][at] = all[at];
    }
    __syncthreads();
    if (threadIdx.x < NUMBERS) {
        double one = warps[0][threadIdx.x];
        for (int warp = 1; warp < 8; ++warp) one = join(threadIdx.x, one, warps[warp][threadIdx.x]);
        out[blockIdx.x * NUMBERS + threadIdx.x] = one;
    }
}

// Adds to `out` how many elements have other bits.
extern "C" __global__ void count_changed(const elem *__restrict__ before, const elem *__restrict__ after, long long count,
                                         unsigned long long *out) {
    unsigned changed = 0;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        for (int byte = 0; byte < static_cast<int>(sizeof(elem)); ++byte)
            if (reinterpret_cast<const unsigned char *>(before + i)[byte] != reinterpret_cast<const unsigned char *>(after + i)[byte]) {
                changed++;
                break;
            }
    if (changed != 0) atomicAdd(out, static_cast<unsigned long long>(changed));
}
