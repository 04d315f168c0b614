// Scan and FiLM of one tile, shared out over the blocks of a cluster, for ff_refine.cu. Needs CHANNELS, THREADS and CLUSTER.
// What waits for no other block or thread is loaded into registers by the constructors, ahead of its use.
#pragma once

#include "ff.cuh"

__device__ constexpr int least(int a, int b) { return a < b ? a : b; }
__device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

constexpr int WARPS = THREADS / 32;

struct Tokens {
    alignas(16) float scanned[2][CHANNELS];
    alignas(16) float normed[CHANNELS];
    alignas(16) float hidden[CHANNELS];
    // 1 + gamma, beta.
    alignas(16) float film[2 * CHANNELS];
};

// --- Exchange between the blocks of a tile ---

__device__ __forceinline__ void arrive() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Stores into the same variable of another block of the cluster.
__device__ __forceinline__ void store_at(int peer, float* to, float value) {
#if CLUSTER > 1
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to)), remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(peer));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
#else
    *to = value;
#endif
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

// --- Scan and layer norm ---

// Both passes up to this tile only; the blocks of the first and the last tile also know the final states.
__device__ __forceinline__ void scan_to(Tokens& s, const float* __restrict__ tokens, const float* __restrict__ scan, int k,
                                        int tiles, bool leader, float* __restrict__ states) {
    // Tokens loaded together: the recurrence is short, waiting for each load would not be.
    constexpr int BATCH = 16;
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * CHANNELS; i += THREADS) {
        const int direction = i / CHANNELS, c = i % CHANNELS;
        const int steps = direction == 0 ? k + 1 : tiles - k, stride = direction == 0 ? CHANNELS : -CHANNELS;
        const float* at = tokens + (direction == 0 ? 0 : static_cast<size_t>(tiles - 1) * CHANNELS) + c;
        const Scan pass(scan, direction, CHANNELS, c);
        const float gate = merge_gate(scan, CHANNELS, c);
        float state = 0.0f;
#pragma unroll 1
        for (int first = 0; first < steps; first += BATCH, at += static_cast<long long>(BATCH) * stride) {
            float batch[BATCH];
#pragma unroll
            for (int j = 0; j < BATCH; ++j) batch[j] = first + j < steps ? at[j * stride] : 0.0f;
#pragma unroll
            for (int j = 0; j < BATCH; ++j) state = first + j < steps ? pass.step(state, batch[j]) : state;
        }
        s.scanned[direction][c] = (direction == 0 ? gate : 1.0f - gate) * (pass.output_gain * state);
        if (leader && steps == tiles) states[direction * CHANNELS + c] = state;
    }
}

struct TokenNorm {
    static constexpr int PER_THREAD = ceil_div(CHANNELS, THREADS), PER_LANE = ceil_div(CHANNELS, 32);
    elem weight[PER_THREAD], bias[PER_THREAD];

    __device__ __forceinline__ TokenNorm(const Weights& w) {
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int c = least(i * THREADS + threadIdx.x, CHANNELS - 1);
            weight[i] = w.token_norm_weight()[c];
            bias[i] = w.token_norm_bias()[c];
        }
    }
    // Every warp takes the moments of all channels: cheaper than waiting for one of them.
    __device__ __forceinline__ void run(Tokens& s) const {
        const int lane = threadIdx.x % 32;
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int c = lane; c < CHANNELS; c += 32) sum += clean_mixed(s.scanned[0][c] + s.scanned[1][c]);
        const float mean = warp_sum(sum) * (1.0f / CHANNELS);
#pragma unroll
        for (int c = lane; c < CHANNELS; c += 32) {
            const float distance = clean_mixed(s.scanned[0][c] + s.scanned[1][c]) - mean;
            squares += distance * distance;
        }
        const float inverse = rsqrtf(warp_sum(squares) * (1.0f / CHANNELS) + NORM_EPS);
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int c = i * THREADS + threadIdx.x;
            if (c >= CHANNELS) break;
            const float distance = clean_mixed(s.scanned[0][c] + s.scanned[1][c]) - mean;
            s.normed[c] = distance * inverse * to_float(weight[i]) + to_float(bias[i]);
        }
    }
};

// --- Linear layers ---

// A layer with OUT rows of CHANNELS, 8 lanes per row; this block's share of the rows.
template <int OUT>
struct Layer {
    static constexpr int SHARE = ceil_div(OUT, CLUSTER), AT_ONCE = THREADS / 8, PASSES = ceil_div(SHARE, AT_ONCE);
    static constexpr int PACKS = CHANNELS / PACK, PER_LANE = ceil_div(PACKS, 8);
    // Held from the start if that takes at most 32 registers.
    static constexpr bool HELD = PASSES * PER_LANE <= 8;
    struct Row {
        Pack packs[PER_LANE];
        elem bias;
    };
    const elem *weight, *bias;
    int rank;
    Row held[HELD ? PASSES : 1];

    __device__ __forceinline__ Layer(const elem* __restrict__ weight, const elem* __restrict__ bias, int rank)
        : weight(weight), bias(bias), rank(rank) {
        if constexpr (HELD) {
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass) load(pass, held[pass]);
        }
    }
    // Past the block's share it is the last row again, which then goes nowhere.
    __device__ __forceinline__ int row(int pass) const {
        return least(rank * SHARE + least(pass * AT_ONCE + threadIdx.x / 8, SHARE - 1), OUT - 1);
    }
    __device__ __forceinline__ void load(int pass, Row& to) const {
        const int o = row(pass);
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            const int p = i * 8 + threadIdx.x % 8;
            if (PACKS % 8 == 0 || p < PACKS) to.packs[i] = reinterpret_cast<const Pack*>(weight + static_cast<size_t>(o) * CHANNELS)[p];
        }
        to.bias = bias[o];
    }
    // activation(row, sum) goes into `out` of all blocks.
    template <typename F>
    __device__ __forceinline__ void multiply(int pass, const Row& from, const float* input, float* out, F activation) const {
        const int o = row(pass), lane = threadIdx.x % 8;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            const int p = i * 8 + lane;
            if (PACKS % 8 != 0 && p >= PACKS) break;
#pragma unroll
            for (int j = 0; j < PACK; ++j) sum += to_float(from.packs[i].at[j]) * input[p * PACK + j];
        }
#pragma unroll
        for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        const bool live = pass * AT_ONCE + static_cast<int>(threadIdx.x) / 8 < least(SHARE, OUT - rank * SHARE);
        const float value = activation(o, sum + to_float(from.bias));
        if (live && lane < CLUSTER) store_at(lane, out + o, value);
    }
    template <typename F>
    __device__ __forceinline__ void run(const float* input, float* out, F activation) {
        if constexpr (HELD) {
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass) multiply(pass, held[pass], input, out, activation);
        } else {
#pragma unroll 1
            for (int pass = 0; pass < PASSES; ++pass) {
                load(pass, held[0]);
                multiply(pass, held[0], input, out, activation);
            }
        }
    }
};
