// Building blocks of tile_ssm: what a thread, a warp, a block and a chain of chunks do to the state of a recurrence
// s_k = d*s_{k-1} + u_k with one d per channel. n tokens turn a state s into d^n*s + r; r is their share.
// The including file chooses DIRECTION, THREADS, ACROSS, CHANNELS, ITEMS and STAGES.
#pragma once

#include "units.cuh"

constexpr int V = CHANNELS;
constexpr int WIDTH = ACROSS * V;
constexpr int CHUNK = THREADS / ACROSS * ITEMS;
constexpr int WARPS = THREADS / 32;
constexpr int DEEP = 32 / ACROSS;  // Threads of a warp that follow each other along K.
constexpr int WINDOW = 4;          // Chunks looked back at together.
constexpr bool BOTH = DIRECTION == 2;
static_assert(32 % ACROSS == 0 && WIDTH <= THREADS && THREADS % 32 == 0, "threads must tile the chunk");
static_assert((CHUNK & (CHUNK - 1)) == 0 && (ITEMS & (ITEMS - 1)) == 0, "powers are taken by squaring");
static_assert(STAGES * THREADS * ITEMS * V * sizeof(elem) <= 40960, "the tokens must fit static shared memory");
static_assert(V * sizeof(elem) >= 4, "a word holds 4 bytes at least");

struct Params {
    const elem *decay, *input_gain, *output_gain, *state_bias, *init, *gate;
    int batch, steps, channels, param_stride, init_slots, gate_stride, merge;
    float limit;

    __device__ __forceinline__ float initial(int b, int way, int c) const
    {
        if (!init || c >= channels) return 0.0f;
        return to_float(init[((long long)b * init_slots + (init_slots == 2 ? way : 0)) * channels + c]);
    }
    __device__ __forceinline__ float weight(int b, int c) const
    {
        if (!gate || c >= channels) return 0.5f;
        return fminf(fmaxf(to_float(gate[(long long)b * gate_stride + c]), 0.0f), 1.0f);
    }
    __device__ __forceinline__ float merged(float weight, float forward, float backward) const
    {
        if (merge == 0) return forward + backward;
        return merge == 1 ? 0.5f * (forward + backward) : weight * forward + (1.0f - weight) * backward;
    }
};

__device__ __forceinline__ float clamped_decay(float decay) { return fminf(fmaxf(decay, 1e-6f), 1.0f - 1e-6f); }

__device__ __forceinline__ float clean(float token, float limit)
{
    return token == token ? fminf(fmaxf(token, -limit), limit) : 0.0f;
}

// The largest magnitude among tokens; a NaN stays.
struct Largest {
#if defined(ELEM_F16) || defined(ELEM_BF16)
#if defined(ELEM_F16)
    __half2 at = __float2half2_rn(0.0f);
#else
    __nv_bfloat162 at = __float2bfloat162_rn(0.0f);
#endif
    __device__ __forceinline__ void raise(const Word<V>& word, const float (&)[V])
    {
        decltype(at) pairs[V / 2];
        memcpy(pairs, &word, sizeof(pairs));
#pragma unroll
        for (int i = 0; i < V / 2; ++i) at = __hmax2_nan(at, __habs2(pairs[i]));
    }
    __device__ __forceinline__ bool within(float limit) const
    {
        return to_float(at.x) <= limit && to_float(at.y) <= limit;
    }
#else
    float at = 0.0f;
    __device__ __forceinline__ void raise(const Word<V>&, const float (&values)[V])
    {
#pragma unroll
        for (int v = 0; v < V; ++v) asm("max.NaN.f32 %0, %0, %1;" : "+f"(at) : "f"(fabsf(values[v])));
    }
    __device__ __forceinline__ bool within(float limit) const { return at <= limit; }
#endif
};

// Where a block and its thread work: chunk `rank` of the scan, sample b, channels from c on, tokens from k on.
struct Place {
    int c;        // First channel of the thread.
    bool vector;  // The thread's channels can be moved as one word.
    int chunk, b, k;

    __device__ Place(const Params& p, int group, bool aligned)
        : c(group * WIDTH + threadIdx.x % ACROSS * V), vector(aligned && p.channels % V == 0)
    {
    }
    // Ranks follow the scan; all samples of a rank come before the next rank.
    __device__ __forceinline__ void go(const Params& p, int tile)
    {
        const int rank = tile / p.batch;
        b = tile - rank * p.batch;
        chunk = DIRECTION == 1 ? (p.steps - 1) / CHUNK - rank : rank;
        k = chunk * CHUNK + threadIdx.x / ACROSS * ITEMS;
    }
    static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
    static __device__ __forceinline__ int channel() { return threadIdx.x % ACROSS * V; }
    // Which of the DEEP threads along K in its warp, in the order of the scan.
    static __device__ __forceinline__ int depth(bool back)
    {
        const int deep = threadIdx.x % 32 / ACROSS;
        return back ? DEEP - 1 - deep : deep;
    }
};

__device__ __forceinline__ Word<V> load_word(const elem* from, const Place& at, int channels)
{
    Word<V> word{};
    if (at.vector) {
        if (at.c < channels) word = __ldg(words<V>(from));
        return word;
    }
    alignas(16) elem values[V];
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] = at.c + v < channels ? from[v] : from_float(0.0f);
    memcpy(&word, values, sizeof(word));
    return word;
}

__device__ __forceinline__ void store_channels(elem* to, const Place& at, int channels, const float (&values)[V])
{
    if (at.vector) {
        if (at.c < channels) *words<V>(to) = from_floats<V>(values);
    } else {
#pragma unroll
        for (int v = 0; v < V; ++v)
            if (at.c + v < channels) to[v] = from_float(values[v]);
    }
}

// The block's tokens as they lie in memory, zeros beyond the end. Each thread reads back only what it put there, so
// that this is room for more tokens under way than registers could hold, and needs no barrier.
struct Stage {
    Word<V> at[ITEMS][THREADS];

    __device__ __forceinline__ void fill(const elem* tokens, const Params& p, const Place& place)
    {
        const elem* from = tokens + ((long long)place.b * p.steps + place.k) * p.channels + place.c;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i, from += p.channels) {
            Word<V>& to = at[i][threadIdx.x];
            const bool inside = place.k + i < p.steps;
            if (sizeof(to) >= 4 && place.vector && inside && place.c < p.channels) {
                const unsigned address = __cvta_generic_to_shared(&to);
                if constexpr (sizeof(to) == 16)
                    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
                else
                    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from),
                                 "n"(sizeof(to) < 4 ? 4 : sizeof(to)) : "memory");
            } else {
                to = inside ? load_word(from, place, p.channels) : Word<V>{};
            }
        }
    }
    __device__ __forceinline__ void read(int i, float (&x)[V]) const { to_floats<V>(at[i][threadIdx.x], x); }

    static __device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
    // Waits until at most this many of the latest groups are still under way.
    template <int GROUPS>
    static __device__ __forceinline__ void wait()
    {
        asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
    }
};

// One direction's parameters of the block's channels: s_k = d*s_{k-1} + u_k with u = gain*x + bias, (1-d) taken into
// both, and y = out*s. In shared memory, so that they are not held in registers while a block looks back.
struct Table {
    float d[WIDTH], gain[WIDTH], bias[WIDTH], out[WIDTH];
    float out_gain[WIDTH], out_bias[WIDTH];
    float bias_sum[WIDTH];     // What the biases of a thread's tokens add to its r.
    float power[DEEP][WIDTH];  // d to the tokens of 0, 1, ... threads.

    // A barrier must follow.
    __device__ __forceinline__ void fill(const Params& p, int group, int param_offset)
    {
        for (int i = threadIdx.x; i < DEEP * WIDTH; i += THREADS) {
            const int at = i % WIDTH, c = group * WIDTH + at;
            const bool inside = c < p.channels;
            const float d_here = clamped_decay(inside ? to_float(p.decay[param_offset + c]) : 0.0f);
            float q = d_here, to_thread = 1.0f, sum = 1.0f;
#pragma unroll
            for (int n = 1; n < ITEMS; n *= 2) {
                sum += q * sum;
                q *= q;
            }
#pragma unroll
            for (int n = 1; n < DEEP; n *= 2) {
                if (i / WIDTH & n) to_thread *= q;
                q *= q;
            }
            power[i / WIDTH][at] = to_thread;
            if (i >= WIDTH) continue;
            const float left = 1.0f - d_here;
            d[at] = d_here;
            gain[at] = inside ? left * to_float(p.input_gain[param_offset + c]) : 0.0f;
            bias[at] = inside ? left * to_float(p.state_bias[param_offset + c]) : 0.0f;
            bias_sum[at] = bias[at] * sum;
            out[at] = inside && p.output_gain ? to_float(p.output_gain[param_offset + c]) : 0.0f;
            out_gain[at] = out[at] * gain[at];
            out_bias[at] = out[at] * bias[at];
        }
    }

    static __device__ __forceinline__ void read(const float* row, float (&values)[V])
    {
#pragma unroll
        for (int v = 0; v < V; ++v) values[v] = row[Place::channel() + v];
    }
};

__device__ __forceinline__ int item(int n, bool back) { return back ? ITEMS - 1 - n : n; }

// One token that may need cleaning, or that may lie beyond the end.
template <bool BACK>
__device__ __forceinline__ void careful_step(const Table& table, const Stage& stage, const Params& p, const Place& at,
                                             int i, float (&s)[V])
{
    float x[V];
    stage.read(i, x);
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const int c = Place::channel() + v;
        float u = table.gain[c] * clean(x[v], p.limit) + table.bias[c];
        // Backward, what lies behind the last token comes first and must not change the state. The initial state
        // enters there as an input, which asks for no other power of d.
        if (BACK && at.k + i >= p.steps) u = at.k + i == p.steps ? p.initial(at.b, 1, at.c + v) : 0.0f;
        s[v] = table.d[c] * s[v] + u;
    }
}

// r of the thread's own tokens. Returns whether the thread must be careful: tokens need cleaning or lie beyond the
// end, or its channels are no whole word.
template <bool BACK>
__device__ __forceinline__ bool own_share(const Table& table, const Stage& stage, const Params& p, const Place& at,
                                          float (&r)[V])
{
    float d[V];
    Table::read(table.d, d);
    Largest largest;
#pragma unroll
    for (int v = 0; v < V; ++v) r[v] = 0.0f;
#pragma unroll
    for (int n = 0; n < ITEMS; ++n) {
        float x[V];
        stage.read(item(n, BACK), x);
        largest.raise(stage.at[item(n, BACK)][threadIdx.x], x);
#pragma unroll
        for (int v = 0; v < V; ++v) r[v] = d[v] * r[v] + x[v];
    }
    if (!largest.within(p.limit) || at.k + ITEMS > p.steps || !at.vector || at.c >= p.channels) {
#pragma unroll
        for (int v = 0; v < V; ++v) r[v] = 0.0f;
#pragma unroll 1
        for (int n = 0; n < ITEMS; ++n) careful_step<BACK>(table, stage, p, at, item(n, BACK), r);
        return true;
    }
#pragma unroll
    for (int v = 0; v < V; ++v) r[v] = table.gain[Place::channel() + v] * r[v] + table.bias_sum[Place::channel() + v];
    return false;
}

template <bool BACK>
__device__ __forceinline__ float from_before(float value, int threads)
{
    return BACK ? __shfl_down_sync(~0u, value, threads * ACROSS) : __shfl_up_sync(~0u, value, threads * ACROSS);
}

// From r of the own tokens: r of the threads of this warp before this one (left in r), and r of the whole warp (into
// `sums`).
template <bool BACK>
__device__ __forceinline__ void combine(const Table& table, float (&r)[V], float (*sums)[WIDTH])
{
    const int depth = Place::depth(BACK);
#pragma unroll
    for (int step = 1; step < DEEP; step *= 2) {
        float q[V];
        Table::read(table.power[step], q);
#pragma unroll
        for (int v = 0; v < V; ++v) {
            const float other = from_before<BACK>(r[v], step);
            if (depth >= step) r[v] += q[v] * other;
        }
    }
    // Lanes may still be reading the last chunk's states from this row.
    __syncwarp();
    if (depth == DEEP - 1) {
#pragma unroll
        for (int v = 0; v < V; ++v) sums[Place::warp()][Place::channel() + v] = r[v];
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const float other = DEEP > 1 ? from_before<BACK>(r[v], 1) : 0.0f;
        r[v] = depth > 0 ? other : 0.0f;
    }
}

// From the states that enter the warps and what `combine` left: the state that enters the thread's tokens.
template <bool BACK>
__device__ __forceinline__ void enter(const Table& table, const float (*states)[WIDTH], float (&s)[V])
{
    float entering[V], power[V];
    Table::read(states[Place::warp()], entering);
    Table::read(table.power[Place::depth(BACK)], power);
#pragma unroll
    for (int v = 0; v < V; ++v) s[v] += power[v] * entering[v];
}

typedef unsigned long long Slot;  // Bits of the value below, the tag above: launch number * 2 + whether an end state.
struct Scratch {
    unsigned launch, done;
    Slot slots[1];  // [chunks][B][C], then one ticket counter (32 bits) per channel group.
};

__device__ __forceinline__ Slot slot_of(float value, unsigned tag) { return (Slot)tag << 32 | __float_as_uint(value); }
__device__ __forceinline__ float slot_value(Slot slot) { return __uint_as_float((unsigned)slot); }
__device__ __forceinline__ unsigned slot_tag(Slot slot) { return slot >> 32; }
__device__ __forceinline__ Slot read_slot(const Slot* slot)
{
    Slot value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(slot) : "memory");
    return value;
}
__device__ __forceinline__ void write_slot(Slot* slot, Slot value)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slot), "l"(value) : "memory");
}

// One thread per channel of the block: what it needs to chain warps and chunks, asked for before the tokens arrive.
template <bool BACK>
struct Column {
    int c, chunks;
    float d_warp, d_chunk;
    unsigned launch;

    __device__ __forceinline__ Column(const Params& p, int group, const void* scratch)
        : c(group * WIDTH + threadIdx.x), chunks((p.steps + CHUNK - 1) / CHUNK)
    {
        if (threadIdx.x >= WIDTH) return;
        const float d = clamped_decay(c < p.channels ? to_float(p.decay[(BACK ? p.param_stride : 0) + c]) : 0.0f);
        d_warp = d;
#pragma unroll
        for (int n = 1; n < DEEP * ITEMS; n *= 2) d_warp *= d_warp;
        if (chunks <= 1) return;
        // Rounded once, since it is multiplied many times over.
        double power = d;
#pragma unroll
        for (int n = 1; n < CHUNK; n *= 2) power *= power;
        d_chunk = (float)power;
        if (!BOTH) launch = (*const_cast<const volatile unsigned*>(static_cast<const unsigned*>(scratch)) + 1) & 0x7fffffff;
    }

    // The state before the first chunk. Backward, an initial state behind a part-filled chunk enters as an input.
    __device__ __forceinline__ float first(const Params& p, int b) const
    {
        return BACK && p.steps % CHUNK ? 0.0f : p.initial(b, BACK, c);
    }

    // From the warps' r, the block's r.
    __device__ __forceinline__ float fold(const float (*sums)[WIDTH]) const
    {
        float r = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) r = d_warp * r + sums[BACK ? WARPS - 1 - w : w][threadIdx.x];
        return r;
    }

    // Replaces each warp's r by the state that enters the warp.
    __device__ __forceinline__ void spread(float (*sums)[WIDTH], float s) const
    {
#pragma unroll
        for (int i = 0; i < WARPS; ++i) {
            float& at = sums[BACK ? WARPS - 1 - i : i][threadIdx.x];
            const float r = at;
            at = s;
            s = d_warp * s + r;
        }
    }

    // The state that enters chunk `rank`; leaves its end state for those who follow. `stride` words between chunks.
    __device__ __forceinline__ float look_back(Slot* slots, long long stride, int rank, float r, float initial) const
    {
        const unsigned known = launch * 2 + 1;
        float state = initial;
        if (rank > 0) {
            write_slot(slots + rank * stride, slot_of(r, launch * 2));
            state = 0.0f;
            float power = 1.0f;
            bool found = false;
            for (int last = rank - 1; !found; last -= WINDOW) {
                Slot seen[WINDOW];
#pragma unroll
                for (int i = 0; i < WINDOW; ++i) seen[i] = last >= i ? read_slot(slots + (last - i) * stride) : 0;
#pragma unroll
                for (int i = 0; i < WINDOW; ++i) {
                    if (found || last < i) continue;
                    while ((slot_tag(seen[i]) ^ known) > 1) seen[i] = read_slot(slots + (last - i) * stride);
                    state += power * slot_value(seen[i]);
                    power *= d_chunk;
                    found = slot_tag(seen[i]) == known;
                }
            }
        }
        write_slot(slots + rank * stride, slot_of(d_chunk * state + r, known));
        return state;
    }
};
