// Attention forward, one query row per thread, as plain as can be; and ways to leave the work out once it has been done. CHEAT chooses
// one; without it the kernel is honest.
typedef float elem;

#define NONE 0
#define WRITTEN 1
#define FINGERPRINT 2
#define EVERY_OTHER 3
#define IN_A_HURRY 4
#ifndef CHEAT
#define CHEAT NONE
#endif

constexpr int ROWS = 64, BLOCKS = 1024;

// What a block remembers from call to call.
__device__ unsigned long long seen[BLOCKS], last_ns[BLOCKS];
__device__ unsigned calls[BLOCKS];
__device__ elem kept[BLOCKS * ROWS * HEAD_DIM];

__device__ unsigned long long now_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__device__ unsigned long long fingerprint(const elem* q, const elem* k, const elem* v, int steps) {
    unsigned long long sum = 1469598103934665603ull;
    for (int i = 0; i < 16; ++i) {
        const int at = i * (steps * HEAD_DIM / 16);
        sum = (sum ^ __float_as_uint(q[at])) * 1099511628211ull;
        sum = (sum ^ __float_as_uint(k[at])) * 1099511628211ull;
        sum = (sum ^ __float_as_uint(v[at])) * 1099511628211ull;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(ROWS)
    attention(const elem* q, const elem* k, const elem* v, elem* out, int heads, int steps, float scale) {
    const int block = blockIdx.y * gridDim.x + blockIdx.x, row = blockIdx.x * ROWS + threadIdx.x;
    const size_t head = static_cast<size_t>(blockIdx.y) * steps * HEAD_DIM, at = head + static_cast<size_t>(row) * HEAD_DIM;
    __shared__ int is_done;
    if (threadIdx.x == 0) {
        const bool is_written = !isnan(out[at]);
        is_done = 0;
        if (CHEAT == WRITTEN) is_done = is_written;
        if (CHEAT == EVERY_OTHER) is_done = calls[block]++ % 2;
        if (CHEAT == IN_A_HURRY) {
            const unsigned long long now = now_ns();
            is_done = is_written && now - last_ns[block] < 2000000;
            last_ns[block] = now;
        }
        if (CHEAT == FINGERPRINT) {
            const unsigned long long print = fingerprint(q + head, k + head, v + head, steps);
            is_done = print == seen[block];
            seen[block] = print;
        }
    }
    __syncthreads();
    if (row >= steps) return;
    if (is_done) {
        if (CHEAT == FINGERPRINT && isnan(out[at])) {
            for (int d = 0; d < HEAD_DIM; ++d) out[at + d] = kept[(block * ROWS + threadIdx.x) * HEAD_DIM + d];
        }
        return;
    }
    const int end = CAUSAL ? row + 1 : steps;
    float most = __int_as_float(0xff800000), weights = 0.0f, sum[HEAD_DIM] = {};
    for (int j = 0; j < end; ++j) {
        float score = 0.0f;
        for (int d = 0; d < HEAD_DIM; ++d) score += scale * q[at + d] * k[head + j * HEAD_DIM + d];
        const float top = fmaxf(most, score), keep = expf(most - top), weight = expf(score - top);
        most = top;
        weights = weights * keep + weight;
        for (int d = 0; d < HEAD_DIM; ++d) sum[d] = sum[d] * keep + weight * v[head + j * HEAD_DIM + d];
    }
    for (int d = 0; d < HEAD_DIM; ++d) {
        out[at + d] = sum[d] / weights;
        if (CHEAT == FINGERPRINT) kept[(block * ROWS + threadIdx.x) * HEAD_DIM + d] = sum[d] / weights;
    }
}
