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

// Values that all blocks of the tile get from each other, each set once. A block's barrier of a set completes when all
// bytes of the set have come; a block must wait for all sets before it ends. Stores signal the barrier themselves: a cluster
// barrier that also orders memory would flush to the whole device.
struct Mail {
    enum Set { HIDDEN, FILM, MOMENTS, SETS };
    unsigned long long barriers[SETS];

    // Called by all threads before anything else; `started` then waits for the other blocks, before the first store.
    __device__ __forceinline__ void open(const int (&floats)[SETS]) {
#if CLUSTER > 1
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < SETS; ++i) {
                asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&barriers[i])) : "memory");
                asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(&barriers[i])), "r"(4 * floats[i])
                             : "memory");
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
    }
    __device__ __forceinline__ void started() {
#if CLUSTER > 1
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
    }
    // Stores into the same variable of a block of the cluster.
    __device__ __forceinline__ void send(Set set, int peer, float* to, float value) {
#if CLUSTER > 1
        unsigned there, barrier;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(to)), "r"(peer));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(address(&barriers[set])), "r"(peer));
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there),
                     "r"(__float_as_uint(value)), "r"(barrier)
                     : "memory");
#else
        *to = value;
#endif
    }
    __device__ __forceinline__ void receive(Set set) {
#if CLUSTER > 1
        asm volatile(
            "{\n.reg .pred done;\nagain:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
            "@!done bra again;\n}" ::"r"(address(&barriers[set]))
            : "memory");
#endif
        // A barrier of the block as well: what its threads have read before is then ordered before what they write next.
        __syncthreads();
    }
    template <typename T>
    __device__ __forceinline__ static unsigned address(const T* at) {
        return static_cast<unsigned>(__cvta_generic_to_shared(at));
    }
};

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

// --- Scan and layer norm ---

// One channel's scan in one direction, from the end of the sequence to this tile; i counts channels, forward ones first.
struct TokenScan {
    // Tokens loaded at once: the recurrence is short, waiting for each load would not be.
    static constexpr int BATCH = 32;
    int direction, c, steps, stride;
    const float* at;
    Scan pass;
    float gate, batch[BATCH];

    __device__ __forceinline__ TokenScan(const float* __restrict__ tokens, const float* __restrict__ scan, int i, int k, int tiles)
        : direction(i / CHANNELS % 2),
          c(i % CHANNELS),
          steps(direction == 0 ? k + 1 : tiles - k),
          stride(CHANNELS - 2 * CHANNELS * direction),
          at(tokens + static_cast<size_t>((tiles - 1) * direction) * CHANNELS + c),
          pass(scan, direction, CHANNELS, c),
          gate(merge_gate(scan, CHANNELS, c)) {
#pragma unroll
        for (int j = 0; j < BATCH; ++j) batch[j] = token(j);
    }
    // What lies behind the last step is loaded from there and not used.
    __device__ __forceinline__ float token(int step) const { return at[least(step, steps - 1) * static_cast<long long>(stride)]; }

    __device__ __forceinline__ float next(float state, int step, float token) const {
        const float after = pass.decay * state + pass.input(token);
        return step < steps ? after : state;
    }
    __device__ __forceinline__ float run() const {
        float state = 0.0f;
#pragma unroll
        for (int first = 0; first < BATCH; first += 8) {
            if (first >= steps) break;
#pragma unroll
            for (int j = first; j < first + 8; ++j) state = next(state, j, batch[j]);
        }
#pragma unroll 1
        for (int first = BATCH; first < steps; first += 8) {
            float more[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) more[j] = token(first + j);
#pragma unroll
            for (int j = 0; j < 8; ++j) state = next(state, first + j, more[j]);
        }
        return state;
    }
};

// All channels in both directions; the blocks of the first and the last tile also know the final states.
__device__ __forceinline__ void scan_all(Tokens& s, TokenScan& loaded, const float* __restrict__ tokens,
                                         const float* __restrict__ scan, int k, int tiles, bool leader,
                                         float* __restrict__ states) {
    const int whole = leader ? tiles : 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * CHANNELS; i += THREADS) {
        if (2 * CHANNELS > THREADS && i >= THREADS) loaded = TokenScan(tokens, scan, i, k, tiles);
        const float state = loaded.run(), share = loaded.direction == 0 ? loaded.gate : 1.0f - loaded.gate;
        s.scanned[loaded.direction][loaded.c] = share * (loaded.pass.output_gain * state);
        if (loaded.steps == whole) states[i] = state;
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
        float values[PER_LANE], sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int j = 0; j < PER_LANE; ++j) {
            const int c = 32 * j + threadIdx.x % 32;
            values[j] = CHANNELS % 32 == 0 || c < CHANNELS ? mixed(s, c) : 0.0f;
            sum += values[j];
        }
        const float mean = warp_sum(sum) * (1.0f / CHANNELS);
#pragma unroll
        for (int j = 0; j < PER_LANE; ++j) {
            const bool live = CHANNELS % 32 == 0 || 32 * j + static_cast<int>(threadIdx.x) % 32 < CHANNELS;
            squares += live ? (values[j] - mean) * (values[j] - mean) : 0.0f;
        }
        const float inverse = rsqrtf(warp_sum(squares) * (1.0f / CHANNELS) + NORM_EPS);
#pragma unroll
        for (int i = 0; i < PER_THREAD; ++i) {
            const int c = i * THREADS + threadIdx.x;
            if (c < CHANNELS) s.normed[c] = (mixed(s, c) - mean) * inverse * to_float(weight[i]) + to_float(bias[i]);
        }
    }
    __device__ __forceinline__ static float mixed(const Tokens& s, int c) {
        return clean_mixed(s.scanned[0][c] + s.scanned[1][c]);
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
    __device__ __forceinline__ static float dot(const Row& from, const float* input) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            const int p = i * 8 + threadIdx.x % 8;
            if (PACKS % 8 != 0 && p >= PACKS) break;
#pragma unroll
            for (int j = 0; j < PACK; ++j) sum += to_float(from.packs[i].at[j]) * input[p * PACK + j];
        }
        return sum;
    }
    // activation(row, sum) goes into `out` of all blocks. The passes of a group run side by side.
    template <typename F>
    __device__ __forceinline__ void run(const float* input, Mail& mail, Mail::Set set, float* out, F activation) {
        constexpr int GROUP = HELD ? PASSES : 1;
#pragma unroll 1
        for (int first = 0; first < PASSES; first += GROUP) {
            float sums[GROUP];
#pragma unroll
            for (int pass = 0; pass < GROUP; ++pass) {
                if (!HELD) load(first, held[pass]);
                sums[pass] = dot(held[pass], input);
            }
#pragma unroll
            for (int step = 4; step > 0; step /= 2) {
#pragma unroll
                for (int pass = 0; pass < GROUP; ++pass) sums[pass] += __shfl_xor_sync(0xffffffffu, sums[pass], step);
            }
#pragma unroll
            for (int pass = 0; pass < GROUP; ++pass) sums[pass] = activation(row(first + pass), sums[pass] + to_float(held[pass].bias));
#pragma unroll
            for (int pass = 0; pass < GROUP; ++pass) {
                const int at = (first + pass) * AT_ONCE + threadIdx.x / 8, lane = threadIdx.x % 8;
                if (at < least(SHARE, OUT - rank * SHARE) && lane < CLUSTER) mail.send(set, lane, out + rank * SHARE + at, sums[pass]);
            }
        }
    }
};
