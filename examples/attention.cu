// Attention forward, one query row per thread: keys and values pass through shared memory, TILE at a time, with an online softmax.
// Supports any length. holdpoint defines ELEM_F16, ELEM_BF16, ELEM_F32 or ELEM_E4M3, and for this op HEAD_DIM and CAUSAL. Of 8-bit inputs the
// result has 16 bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#if defined(ELEM_F16)
typedef __half elem;
#elif defined(ELEM_BF16)
typedef __nv_bfloat16 elem;
#elif defined(ELEM_E4M3)
typedef __nv_fp8_e4m3 elem;
#else
typedef float elem;
#endif
#if defined(ELEM_E4M3)
typedef __half result;
#else
typedef elem result;
#endif

#ifndef TILE
#define TILE 32
#endif
constexpr int ROWS = 64;

extern "C" __global__ void __launch_bounds__(ROWS) attention(const elem* q, const elem* k, const elem* v, result* out, int heads,
                                                             int steps, float scale) {
    __shared__ float keys[TILE][HEAD_DIM], values[TILE][HEAD_DIM];
    const float nothing = __int_as_float(0xff800000);  // Minus infinity.
    const int row = blockIdx.x * ROWS + threadIdx.x;
    const bool is_row = row < steps;
    const size_t head = static_cast<size_t>(blockIdx.y) * steps * HEAD_DIM;
    const size_t at = head + static_cast<size_t>(row) * HEAD_DIM;
    float query[HEAD_DIM], sum[HEAD_DIM], most = nothing, weights = 0.0f;
    for (int d = 0; d < HEAD_DIM; ++d) {
        query[d] = is_row ? scale * static_cast<float>(q[at + d]) : 0.0f;
        sum[d] = 0.0f;
    }
    const int end = CAUSAL ? min(steps, static_cast<int>(blockIdx.x + 1) * ROWS) : steps;
    for (int first = 0; first < end; first += TILE) {
        const int count = min(TILE, end - first);
        for (int i = threadIdx.x; i < count * HEAD_DIM; i += ROWS) {
            keys[i / HEAD_DIM][i % HEAD_DIM] = static_cast<float>(k[head + static_cast<size_t>(first) * HEAD_DIM + i]);
            values[i / HEAD_DIM][i % HEAD_DIM] = static_cast<float>(v[head + static_cast<size_t>(first) * HEAD_DIM + i]);
        }
        __syncthreads();  // The tile is there.
        for (int j = 0; j < count; ++j) {
            if (CAUSAL && first + j > row) break;
            float score = 0.0f;
            for (int d = 0; d < HEAD_DIM; ++d) score += query[d] * keys[j][d];
            if (score == nothing) continue;
            const float top = fmaxf(most, score);
            const float keep = expf(most - top), weight = expf(score - top);
            most = top;
            weights = weights * keep + weight;
            for (int d = 0; d < HEAD_DIM; ++d) sum[d] = sum[d] * keep + weight * values[j][d];
        }
        __syncthreads();  // Nobody reads it any more.
    }
    if (is_row) {
        for (int d = 0; d < HEAD_DIM; ++d) out[at + d] = static_cast<result>(sum[d] / weights);
    }
}
