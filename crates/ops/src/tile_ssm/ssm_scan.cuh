// Building blocks of tile_ssm: what a thread, a warp, a block and a chain of chunks do to the state of a recurrence
// s_k = d*s_{k-1} + u_k with one d per channel. n tokens turn a state s into d^n*s + r; r is their share.
// The including file chooses DIRECTION, THREADS, ACROSS, CHANNELS and ITEMS.
#pragma once

#include "units.cuh"

constexpr int V = CHANNELS;
constexpr int WIDTH = ACROSS * V;
constexpr int CHUNK = THREADS / ACROSS * ITEMS;
constexpr int WARPS = THREADS / 32;
constexpr int DEEP = 32 / ACROSS;  // Threads of a warp that follow each other along K.
constexpr int WINDOW = 4;          // Chunks that are read together.
constexpr int STRETCH = 16;        // Chunks whose last one passes a state on.
constexpr bool BOTH = DIRECTION == 2;
static_assert(32 % ACROSS == 0 && WIDTH <= THREADS && THREADS % 32 == 0, "threads must tile the chunk");
static_assert((CHUNK & (CHUNK - 1)) == 0 && (ITEMS & (ITEMS - 1)) == 0, "powers are taken by squaring");
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

__device__ __forceinline__ int chunks_of(const Params& p) { return (p.steps + CHUNK - 1) / CHUNK; }
__device__ __forceinline__ int groups_of(const Params& p) { return (p.channels + WIDTH - 1) / WIDTH; }

// Where a block and its thread work.
struct Place {
    int group, rank, chunk, b;  // The block's channels and chunk; ranks count chunks in the order of the scan.
    int c, k;                   // The thread's first channel and token.
    bool vector;                // The thread's channels can be moved as one word.

    // All blocks of a rank come before those of the next, so that a block's predecessors have smaller indices.
    __device__ Place(const Params& p, bool aligned)
    {
        const int groups = groups_of(p), tile = blockIdx.x / groups;
        group = blockIdx.x - tile * groups;
        rank = tile / p.batch;
        b = tile - rank * p.batch;
        chunk = DIRECTION == 1 ? (p.steps - 1) / CHUNK - rank : rank;
        c = group * WIDTH + threadIdx.x % ACROSS * V;
        k = chunk * CHUNK + threadIdx.x / ACROSS * ITEMS;
        vector = aligned && p.channels % V == 0;
    }
    // Whether all of the thread's tokens and channels exist, and as whole words.
    __device__ __forceinline__ bool whole(const Params& p) const
    {
        return vector && c < p.channels && k + ITEMS <= p.steps;
    }
    __device__ __forceinline__ long long token(const Params& p, int i) const
    {
        return ((long long)b * p.steps + k + i) * p.channels + c;
    }
    // The block's channel of this thread where one thread works per channel.
    __device__ __forceinline__ int column() const { return group * WIDTH + threadIdx.x; }
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

// The tokens of a thread that is whole, as they lie in memory: half the registers that floats would take, so that
// many can be under way.
struct Tokens {
    Word<V> at[ITEMS];
    __device__ __forceinline__ void load(const elem* tokens, const Params& p, const Place& place)
    {
        const elem* from = tokens + place.token(p, 0);
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) at[i] = __ldg(words<V>(from + (long long)i * p.channels));
    }
};

// One direction's parameters of the block's channels: s_k = d*s_{k-1} + u_k with u = gain*x + bias, (1-d) taken into
// both, and y = out*s. In shared memory, so that they are not held in registers while a block looks back.
struct alignas(16) Table {
    float d[WIDTH], gain[WIDTH], bias[WIDTH], out[WIDTH];
    float out_gain[WIDTH], out_bias[WIDTH];
    float bias_sum[WIDTH];     // What the biases of a thread's tokens add to its r.
    float power[DEEP][WIDTH];  // d to the tokens of 0, 1, ... threads.
    float warp_power[WIDTH], chunk_power[WIDTH];

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
            warp_power[at] = q;
            if (p.steps > CHUNK) {
                // Rounded once, since it is multiplied many times over.
                double to_chunk = d_here;
#pragma unroll
                for (int n = 1; n < CHUNK; n *= 2) to_chunk *= to_chunk;
                chunk_power[at] = (float)to_chunk;
            }
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

    // The thread's channels of a row, in accesses as wide as they can be.
    static __device__ __forceinline__ void read(const float* row, float (&values)[V])
    {
        constexpr int WIDE = V % 4 == 0 ? 4 : V % 2 == 0 ? 2 : 1;
        struct alignas(4 * WIDE) Part {
            float at[WIDE];
        };
#pragma unroll
        for (int v = 0; v < V; v += WIDE) {
            const Part part = *reinterpret_cast<const Part*>(row + Place::channel() + v);
#pragma unroll
            for (int i = 0; i < WIDE; ++i) values[v + i] = part.at[i];
        }
    }
};

__device__ __forceinline__ int item(int n, bool back) { return back ? ITEMS - 1 - n : n; }

// One token that may need cleaning, may lie beyond the end or may be no whole word. Reads it again: this is rare.
template <bool BACK>
__device__ __forceinline__ void careful_step(const Table& table, const elem* tokens, const Params& p, const Place& at,
                                             int i, float (&s)[V])
{
    Word<V> word{};
    if (at.k + i < p.steps) word = load_word(tokens + at.token(p, i), at, p.channels);
    float x[V];
    to_floats<V>(word, x);
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

// r of the thread's own tokens. Returns whether the thread must be careful with them.
template <bool BACK>
__device__ __forceinline__ bool own_share(const Table& table, const Tokens& raw, const elem* tokens, const Params& p,
                                          const Place& at, float (&r)[V])
{
#pragma unroll
    for (int v = 0; v < V; ++v) r[v] = 0.0f;
    if (at.whole(p)) {
        float d[V];
        Table::read(table.d, d);
        Largest largest;
#pragma unroll
        for (int n = 0; n < ITEMS; ++n) {
            const Word<V>& word = raw.at[item(n, BACK)];
            float x[V];
            to_floats<V>(word, x);
            largest.raise(word, x);
#pragma unroll
            for (int v = 0; v < V; ++v) r[v] = d[v] * r[v] + x[v];
        }
        if (largest.within(p.limit)) {
            float gain[V], bias_sum[V];
            Table::read(table.gain, gain);
            Table::read(table.bias_sum, bias_sum);
#pragma unroll
            for (int v = 0; v < V; ++v) r[v] = gain[v] * r[v] + bias_sum[v];
            return false;
        }
#pragma unroll
        for (int v = 0; v < V; ++v) r[v] = 0.0f;
    }
#pragma unroll 1
    for (int n = 0; n < ITEMS; ++n) careful_step<BACK>(table, tokens, p, at, item(n, BACK), r);
    return true;
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

typedef unsigned long long Slot;  // Bits of the value below, the launch number above.
struct Scratch {
    unsigned launch, done;
    Slot slots[1];  // [chunks][B][C].
};

__device__ __forceinline__ float slot_value(Slot slot) { return __uint_as_float((unsigned)slot); }
__device__ __forceinline__ Slot read_slot(const Slot* slot)
{
    Slot value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(slot) : "memory");
    return value;
}
__device__ __forceinline__ void write_slot(Slot* slot, float value, unsigned launch)
{
    const Slot bits = (Slot)launch << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slot), "l"(bits) : "memory");
}
// What this launch writes there, `seen` being what was read last.
__device__ __forceinline__ float wait_for_slot(const Slot* slot, Slot seen, unsigned launch)
{
    while (seen >> 32 != launch) seen = read_slot(slot);
    return slot_value(seen);
}

// What follows is done by one thread per channel of the block.

// The state before the first chunk. Backward, an initial state behind a part-filled chunk enters as an input instead.
template <bool BACK>
__device__ __forceinline__ float first_state(const Params& p, int b, int c)
{
    return BACK && p.steps % CHUNK ? 0.0f : p.initial(b, BACK, c);
}

// From the warps' r, the block's r.
template <bool BACK>
__device__ __forceinline__ float fold(const Table& table, const float (*sums)[WIDTH])
{
    const float d_warp = table.warp_power[threadIdx.x];
    float r = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) r = d_warp * r + sums[BACK ? WARPS - 1 - w : w][threadIdx.x];
    return r;
}

// Replaces each warp's r by the state that enters the warp.
template <bool BACK>
__device__ __forceinline__ void spread(const Table& table, float (*sums)[WIDTH], float s)
{
    const float d_warp = table.warp_power[threadIdx.x];
#pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        float& at = sums[BACK ? WARPS - 1 - i : i][threadIdx.x];
        const float r = at;
        at = s;
        s = d_warp * s + r;
    }
}

// The state that enters chunk `rank`; `initial` enters the first. Leaves for those who follow the chunk's share, or its end state if
// it is the last of a stretch. Which of them has come first changes nothing: the same terms are added in the same order every time.
// `stride` words lie between chunks.
__device__ __forceinline__ float look_back(Slot* slots, long long stride, int rank, unsigned launch, float d_chunk,
                                           float r, float initial)
{
    const int first = rank / STRETCH * STRETCH;
    const bool ends = rank == first + STRETCH - 1;
    if (!ends) write_slot(slots + rank * stride, r, launch);
    float shares = 0.0f, power = 1.0f;
    for (int from = first; from < rank; from += WINDOW) {
        Slot seen[WINDOW];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) seen[i] = from + i < rank ? read_slot(slots + (from + i) * stride) : 0;
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            if (from + i >= rank) continue;
            shares = d_chunk * shares + wait_for_slot(slots + (from + i) * stride, seen[i], launch);
            power *= d_chunk;
        }
    }
    if (first > 0) {
        const Slot* before = slots + (first - 1) * stride;
        initial = wait_for_slot(before, read_slot(before), launch);
    }
    const float state = power * initial + shares;
    if (ends) write_slot(slots + rank * stride, d_chunk * state + r, launch);
    return state;
}
