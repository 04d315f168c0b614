// rms_norm: y = x * rsqrt(mean(x^2) + eps) * weight over rows of `hidden` elements. x, y [rows, hidden], weight [hidden]. Sums in fp32.
//
// Bytes: x read and y written once, weight once (it stays in cache). Flops: 4 an element. Answers are held against fp64 on the CPU.
//
// Fast: a row is shared by THREADS threads, a block has ROWS rows. A thread reads ITEMS units of UNIT_BYTES and the weights of the same places
// before anything is summed, and keeps them in registers: a row that fits is read once. Partial sums meet by shuffles, and through shared memory
// where a row has several warps. What does not fit into registers is read again for the second step, from cache mostly.
// Launch: block (THREADS, ROWS), grid ceil(rows / ROWS); ROWS is 1 unless THREADS is 32. UNIT_BYTES divides a row and every address.
// Reference: a warp for each row, element by element; block (32, any), grid to cover the rows.
#include "units.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef UNIT_BYTES
#define UNIT_BYTES 16
#endif

constexpr int WARPS = THREADS / 32;
// At least one element: the constant may be meant for a narrower type.
constexpr int UNIT = UNIT_BYTES < static_cast<int>(sizeof(elem)) ? 1 : UNIT_BYTES / static_cast<int>(sizeof(elem));

__device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(0xffffffffu, value, other);
    return value;
}

// The sum over all threads of a row, in each of them.
__device__ __forceinline__ float row_sum(float value)
{
    value = warp_sum(value);
    if constexpr (WARPS > 1) {
        __shared__ float partial[WARPS];
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
        __syncthreads();
        const int lane = threadIdx.x % 32;
        value = warp_sum(lane < WARPS ? partial[lane] : 0.0f);
    }
    return value;
}

__device__ __forceinline__ float squares(const Word<UNIT>& word)
{
    float values[UNIT], sum = 0.0f;
    to_floats<UNIT>(word, values);
#pragma unroll
    for (int i = 0; i < UNIT; ++i) sum += values[i] * values[i];
    return sum;
}

__device__ __forceinline__ Word<UNIT> scaled(const Word<UNIT>& word, const Word<UNIT>& weight, float factor)
{
    float values[UNIT], weights[UNIT];
    to_floats<UNIT>(word, values);
    to_floats<UNIT>(weight, weights);
#pragma unroll
    for (int i = 0; i < UNIT; ++i) values[i] = values[i] * factor * weights[i];
    return from_floats<UNIT>(values);
}

extern "C" __global__ void __launch_bounds__(THREADS* ROWS)
rms_norm_fast(const elem* __restrict__ x, const elem* __restrict__ weight, elem* __restrict__ y, long long rows, int hidden,
              float eps)
{
    const long long row = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y;
    // Whole warps leave: where a block has several rows, a row is a warp.
    if (row >= rows) return;
    const Word<UNIT>* source = words<UNIT>(x + row * hidden);
    const Word<UNIT>* scale = words<UNIT>(weight);
    Word<UNIT>* target = words<UNIT>(y + row * hidden);
    const int units = hidden / UNIT, first = threadIdx.x;
    Word<UNIT> held[ITEMS], weights[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < units) held[item] = source[first + item * THREADS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < units) weights[item] = scale[first + item * THREADS];
    float sum = 0.0f;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < units) sum += squares(held[item]);
    for (int at = first + ITEMS * THREADS; at < units; at += THREADS) sum += squares(source[at]);
    const float factor = rsqrtf(row_sum(sum) / static_cast<float>(hidden) + eps);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        if (first + item * THREADS < units) target[first + item * THREADS] = scaled(held[item], weights[item], factor);
    for (int at = first + ITEMS * THREADS; at < units; at += THREADS) target[at] = scaled(source[at], scale[at], factor);
}

extern "C" __global__ void __launch_bounds__(256)
rms_norm_reference(const elem* __restrict__ x, const elem* __restrict__ weight, elem* __restrict__ y, long long rows, int hidden,
                   float eps)
{
    const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < hidden; i += 32) {
        const float value = to_float(x[row * hidden + i]);
        sum += value * value;
    }
    const float root = sqrtf(warp_sum(sum) / static_cast<float>(hidden) + eps);
    for (int i = threadIdx.x; i < hidden; i += 32)
        y[row * hidden + i] = from_float(to_float(x[row * hidden + i]) / root * to_float(weight[i]));
}
