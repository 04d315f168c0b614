// tile_ssm: s_k = d*s_{k-1} + (1-d)*(g*x_k + bias), y_k = o*s_k along the K tokens of [B,K,C], channel by channel, in
// fp32. d is decay clamped to [1e-6, 1-1e-6]; x is the token with NaN as 0, clamped to +-|clamp|. DIRECTION 0 goes
// forward, 1 backward, 2 both ways, merged into y by f+b (merge 0), (f+b)/2 (1) or m*f+(1-m)*b (2), m = gate in [0,1].
// decay, input_gain, output_gain, state_bias: [C] (param_stride 0) or [2,C] (param_stride C: forward, backward).
// init: null, [B,C] (init_slots 1) or [B,2,C] (2). gate: null (0.5), [C] (gate_stride 0) or [B,C] (gate_stride C).
// Outputs y [B,K,C] and state [B,C], or [B,2,C] with DIRECTION 2, rounded once.
// Bytes: 2*B*K*C*sizeof(elem). Flops: about 6 per element. Checked by tolerance against a sequential scan.
//
// Fast: a block takes CHUNK tokens by WIDTH channels. A thread has ITEMS consecutive tokens of CHANNELS neighbouring
// channels, staged in shared memory; ACROSS threads lie side by side along C. Since d is constant, n tokens turn a
// state s into d^n*s + r: each thread finds its own r, warps combine them by shuffles, the block through shared
// memory, and then every thread runs through its tokens once more from the state that enters them.
// Between chunks, one way: look-back. A block publishes r, then sums what lies before it in its stretch of STRETCH chunks
// and takes the end state of the stretch before, which that one's last block publishes. So results do not depend on which
// block is first. A value and the launch's number share one 64-bit word, so no fence is needed; the last block of a launch
// raises the number, so nothing is reset between launches. Blocks wait only for blocks of smaller index. Both ways, this could not be: tile_ssm_carries goes first and leaves
// the state that enters each chunk in scratch. It is not needed for a single chunk (K <= CHUNK).
//
// Launch: block THREADS, no dynamic shared memory, grid exactly max(1, ceil(K/CHUNK))*B*ceil(C/WIDTH), CHUNK =
// THREADS/ACROSS*ITEMS, WIDTH = ACROSS*CHANNELS. scratch: 16 + 8*chunks*B*C bytes (both ways another 4*B*ceil(C/WIDTH)
// at the end), 16-byte aligned, zeroed once, used by one launch at a time and by one shape and program only; null for
// one chunk. The reference: any grid of 128 threads; scratch is 4*B*K*C bytes both ways, else null.
#ifndef DIRECTION
#define DIRECTION 0
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef ACROSS
#define ACROSS 8
#endif
#ifndef CHANNELS
#define CHANNELS (PACK < 8 ? PACK : 8)
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
// Blocks that must fit a multiprocessor: bounds the registers.
#ifndef BLOCKS
#define BLOCKS ((768 - 256 * DIRECTION) / THREADS)
#endif

#include "ssm_scan.cuh"

// One direction for one sample and channel; emit(k, y) takes the outputs. Returns the final state.
template <typename Emit>
__device__ __forceinline__ float sequential(const elem* tokens, const Params& p, int b, int c, int way, Emit emit)
{
    const int at = way * p.param_stride + c;
    const float d = clamped_decay(to_float(p.decay[at])), g = to_float(p.input_gain[at]), bias = to_float(p.state_bias[at]);
    const float o = to_float(p.output_gain[at]);
    float s = p.initial(b, way, c);
    for (int i = 0; i < p.steps; ++i) {
        const long long k = (long long)b * p.steps + (way ? p.steps - 1 - i : i);
        const float x = clean(to_float(tokens[k * p.channels + c]), p.limit);
        s = d * s + (1.0f - d) * (g * x + bias);
        emit(k * p.channels + c, o * s);
    }
    return s;
}

extern "C" __global__ void __launch_bounds__(128)
tile_ssm_reference(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
                   const elem* __restrict__ output_gain, const elem* __restrict__ state_bias,
                   const elem* __restrict__ init, const elem* __restrict__ gate, elem* __restrict__ y,
                   elem* __restrict__ state, void* scratch, int batch, int steps, int channels, int param_stride,
                   int init_slots, int gate_stride, int merge, float clamp)
{
    const Params p{decay, input_gain, output_gain, state_bias, init, gate, batch, steps, channels, param_stride,
                   init_slots, gate_stride, merge, fabsf(clamp)};
    float* forward = static_cast<float*>(scratch);
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < batch * channels; at += gridDim.x * blockDim.x) {
        const int b = at / channels, c = at % channels;
        if (BOTH) {
            const float weight = p.weight(b, c);
            const long long slot = 2LL * b * channels + c;
            state[slot] = from_float(sequential(tokens, p, b, c, 0, [&](long long i, float f) { forward[i] = f; }));
            state[slot + channels] = from_float(sequential(tokens, p, b, c, 1, [&](long long i, float f) {
                y[i] = from_float(p.merged(weight, forward[i], f));
            }));
        } else {
            const auto store = [&](long long i, float f) { y[i] = from_float(f); };
            state[at] = from_float(sequential(tokens, p, b, c, DIRECTION, store));
        }
    }
}

template <bool BACK>
__device__ __forceinline__ long long state_offset(const Params& p, const Place& at)
{
    return (BOTH ? 2LL * at.b + BACK : at.b) * p.channels + at.c;
}

template <bool BACK>
__device__ __forceinline__ void no_tokens(const Params& p, const Place& at, elem* state)
{
    for (int v = 0; v < V; ++v)
        if (at.c + v < p.channels) state[state_offset<BACK>(p, at) + v] = from_float(p.initial(at.b, BACK, at.c + v));
}

// The thread's outputs from the state that enters its tokens.
template <bool BACK>
__device__ __forceinline__ void emit(const Table& table, const Tokens& raw, const elem* tokens, const Params& p,
                                     const Place& at, bool careful, float (&s)[V], elem* __restrict__ y,
                                     elem* __restrict__ state)
{
    float out[V];
    Table::read(table.out, out);
    if (!careful && (BACK ? at.k > 0 : at.k + ITEMS < p.steps)) {
        // y itself obeys the recurrence, with its gain in the inputs.
        float d[V], gain[V], bias[V];
        Table::read(table.d, d);
        Table::read(table.out_gain, gain);
        Table::read(table.out_bias, bias);
        elem* to = y + at.token(p, 0);
#pragma unroll
        for (int v = 0; v < V; ++v) out[v] *= s[v];
#pragma unroll
        for (int n = 0; n < ITEMS; ++n) {
            const int i = item(n, BACK);
            float x[V];
            to_floats<V>(raw.at[i], x);
#pragma unroll
            for (int v = 0; v < V; ++v) out[v] = d[v] * out[v] + (gain[v] * x[v] + bias[v]);
            *words<V>(to + (long long)i * p.channels) = from_floats<V>(out);
        }
        return;
    }
    // Here also the thread whose last state is the final one.
#pragma unroll 1
    for (int n = 0; n < ITEMS; ++n) {
        const int i = item(n, BACK);
        careful_step<BACK>(table, tokens, p, at, i, s);
        float scaled[V];
#pragma unroll
        for (int v = 0; v < V; ++v) scaled[v] = out[v] * s[v];
        if (at.k + i < p.steps) store_channels(y + at.token(p, i), at, p.channels, scaled);
        if (at.k + i == (BACK ? 0 : p.steps - 1))
            store_channels(state + state_offset<BACK>(p, at), at, p.channels, s);
    }
}

template <bool BACK>
__device__ __forceinline__ void one_way(Table& table, float (*sums)[WIDTH], unsigned& launch,
                                        const elem* __restrict__ tokens, const Params& p, elem* __restrict__ y,
                                        elem* __restrict__ state, void* scratch, bool aligned)
{
    const Place at(p, aligned);
    if (p.steps == 0) return no_tokens<BACK>(p, at, state);
    Tokens raw;
    if (at.whole(p)) raw.load(tokens, p, at);
    Scratch* shared = static_cast<Scratch*>(scratch);
    const bool chained = p.steps > CHUNK;
    if (threadIdx.x == 0 && chained) launch = *const_cast<volatile unsigned*>(&shared->launch) + 1;
    table.fill(p, at.group, BACK ? p.param_stride : 0);
    __syncthreads();
    float s[V];
    const bool careful = own_share<BACK>(table, raw, tokens, p, at, s);
    combine<BACK>(table, s, sums);
    __syncthreads();
    if (threadIdx.x < WIDTH) {
        const int c = at.column();
        float entering = at.rank < STRETCH ? first_state<BACK>(p, at.b, c) : 0.0f;
        if (chained && c < p.channels)
            entering = look_back(shared->slots + (long long)at.b * p.channels + c, (long long)p.batch * p.channels,
                                 at.rank, launch, table.chunk_power[threadIdx.x], fold<BACK>(table, sums), entering);
        spread<BACK>(table, sums, entering);
    }
    __syncthreads();
    // The block has used the launch number by now; the last one to say so raises it.
    if (chained && threadIdx.x == 0 && atomicAdd(&shared->done, 1) == gridDim.x - 1) {
        shared->done = 0;
        shared->launch += 1;
    }
    enter<BACK>(table, sums, s);
    emit<BACK>(table, raw, tokens, p, at, careful, s, y, state);
}

struct Carries {  // [2][chunks][B][C] behind the header, then one counter per sample and channel group.
    float* at;
    unsigned* counters;
    long long stride, way;
    __device__ Carries(void* scratch, const Params& p, int chunks)
        : at(reinterpret_cast<float*>(static_cast<Scratch*>(scratch)->slots)), stride((long long)p.batch * p.channels),
          way(chunks * stride)
    {
        counters = reinterpret_cast<unsigned*>(at + 2 * way);
    }
};

// Leaves in s the state that enters the thread's tokens; returns whether it must be careful with them.
template <bool BACK>
__device__ __forceinline__ bool enter_carried(const Table& table, const Tokens& raw, const elem* tokens,
                                              const Params& p, const Place& at, void* scratch, float (*sums)[WIDTH],
                                              float (&s)[V])
{
    const bool careful = own_share<BACK>(table, raw, tokens, p, at, s);
    combine<BACK>(table, s, sums);
    __syncthreads();
    if (threadIdx.x < WIDTH) {
        const int c = at.column(), chunks = chunks_of(p);
        float entering = first_state<BACK>(p, at.b, c);
        if (chunks > 1 && c < p.channels) {
            const Carries carries(scratch, p, chunks);
            entering = carries.at[BACK * carries.way + at.chunk * carries.stride + (long long)at.b * p.channels + c];
        }
        spread<BACK>(table, sums, entering);
    }
    __syncthreads();
    enter<BACK>(table, sums, s);
    return careful;
}

// Runs through the thread's tokens; each(i, y) takes the outputs.
template <bool BACK, typename Each>
__device__ __forceinline__ void run_through(const Table& table, const Tokens& raw, const elem* tokens, const Params& p,
                                            const Place& at, bool careful, float (&s)[V], elem* state, Each each)
{
    float out[V];
#pragma unroll
    for (int n = 0; n < ITEMS; ++n) {
        const int i = item(n, BACK);
        if (careful) {
            careful_step<BACK>(table, tokens, p, at, i, s);
        } else {
            float x[V];
            to_floats<V>(raw.at[i], x);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int c = Place::channel() + v;
                s[v] = table.d[c] * s[v] + (table.gain[c] * x[v] + table.bias[c]);
            }
        }
        if (at.k + i == (BACK ? 0 : p.steps - 1))
            store_channels(state + state_offset<BACK>(p, at), at, p.channels, s);
#pragma unroll
        for (int v = 0; v < V; ++v) out[v] = table.out[Place::channel() + v] * s[v];
        each(i, out);
    }
}

__device__ __forceinline__ void both_ways(Table* tables, float (*sums)[WIDTH], const elem* __restrict__ tokens,
                                          const Params& p, elem* __restrict__ y, elem* __restrict__ state,
                                          void* scratch, bool aligned)
{
    const Place at(p, aligned);
    if (p.steps == 0) {
        no_tokens<false>(p, at, state);
        return no_tokens<true>(p, at, state);
    }
    Tokens raw;
    if (at.whole(p)) raw.load(tokens, p, at);
    tables[0].fill(p, at.group, 0);
    tables[1].fill(p, at.group, p.param_stride);
    __syncthreads();
    float s[V], backward[ITEMS][V], weights[V];
    bool careful = enter_carried<true>(tables[1], raw, tokens, p, at, scratch, sums + WARPS, s);
    run_through<true>(tables[1], raw, tokens, p, at, careful, s, state, [&](int i, const float (&out)[V]) {
#pragma unroll
        for (int v = 0; v < V; ++v) backward[i][v] = out[v];
    });
    careful = enter_carried<false>(tables[0], raw, tokens, p, at, scratch, sums, s);
#pragma unroll
    for (int v = 0; v < V; ++v) weights[v] = p.weight(at.b, at.c + v);
    run_through<false>(tables[0], raw, tokens, p, at, careful, s, state, [&](int i, float (&out)[V]) {
#pragma unroll
        for (int v = 0; v < V; ++v) out[v] = p.merged(weights[v], out[v], backward[i][v]);
        if (at.k + i < p.steps) store_channels(y + at.token(p, i), at, p.channels, out);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_ssm_fast(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
              const elem* __restrict__ output_gain, const elem* __restrict__ state_bias, const elem* __restrict__ init,
              const elem* __restrict__ gate, elem* __restrict__ y, elem* __restrict__ state, void* scratch, int batch,
              int steps, int channels, int param_stride, int init_slots, int gate_stride, int merge, float clamp)
{
    __shared__ Table tables[BOTH ? 2 : 1];
    __shared__ alignas(16) float sums[(BOTH ? 2 : 1) * WARPS][WIDTH];
    __shared__ unsigned launch;
    const Params p{decay, input_gain, output_gain, state_bias, init, gate, batch, steps, channels, param_stride,
                   init_slots, gate_stride, merge, fabsf(clamp)};
    const size_t bits = address_bits(tokens) | address_bits(y) | address_bits(state);
    const bool aligned = bits % sizeof(Word<V>) == 0;
    if constexpr (BOTH) {
        both_ways(tables, sums, tokens, p, y, state, scratch, aligned);
    } else {
        one_way<DIRECTION == 1>(tables[0], sums, launch, tokens, p, y, state, scratch, aligned);
    }
}

// The chunk's share of one direction into its place in scratch.
template <bool BACK>
__device__ __forceinline__ void leave_share(const Table& table, const Tokens& raw, const elem* tokens, const Params& p,
                                            const Place& at, const Carries& carries, float (*sums)[WIDTH])
{
    float r[V];
    own_share<BACK>(table, raw, tokens, p, at, r);
    combine<BACK>(table, r, sums);
    __syncthreads();
    const int c = at.column();
    if (threadIdx.x < WIDTH && c < p.channels)
        carries.at[BACK * carries.way + at.chunk * carries.stride + (long long)at.b * p.channels + c] =
            fold<BACK>(table, sums);
}

// Turns the shares of all chunks into the states that enter them.
template <bool BACK>
__device__ __forceinline__ void chain(const Table& table, const Params& p, const Carries& carries, int chunks, int b,
                                      int c)
{
    float* at = carries.at + BACK * carries.way + (long long)b * p.channels + c;
    float s = first_state<BACK>(p, b, c);
    for (int first = 0; first < chunks; first += WINDOW) {
        float r[WINDOW];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            const int chunk = BACK ? chunks - 1 - first - i : first + i;
            r[i] = first + i < chunks ? __ldcg(at + chunk * carries.stride) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            const int chunk = BACK ? chunks - 1 - first - i : first + i;
            if (first + i < chunks) at[chunk * carries.stride] = s;
            s = table.chunk_power[threadIdx.x] * s + r[i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_ssm_carries(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
                 const elem* __restrict__ state_bias, const elem* __restrict__ init, void* scratch, int batch,
                 int steps, int channels, int param_stride, int init_slots, float clamp)
{
    __shared__ Table tables[2];
    __shared__ alignas(16) float sums[2][WARPS][WIDTH];
    __shared__ bool last;
    const Params p{decay, input_gain, nullptr, state_bias, init, nullptr, batch, steps, channels, param_stride,
                   init_slots, 0, 0, fabsf(clamp)};
    const Place at(p, address_bits(tokens) % sizeof(Word<V>) == 0);
    Tokens raw;
    if (at.whole(p)) raw.load(tokens, p, at);
    const int chunks = chunks_of(p), c = at.column();
    const Carries carries(scratch, p, chunks);
    tables[0].fill(p, at.group, 0);
    tables[1].fill(p, at.group, param_stride);
    __syncthreads();
    leave_share<false>(tables[0], raw, tokens, p, at, carries, sums[0]);
    leave_share<true>(tables[1], raw, tokens, p, at, carries, sums[1]);
    __threadfence();
    __syncthreads();
    // The counter falls back to 0 by itself after the last of a column's chunks.
    if (threadIdx.x == 0)
        last = atomicInc(carries.counters + at.b * groups_of(p) + at.group, chunks - 1) == chunks - 1;
    __syncthreads();
    if (!last || threadIdx.x >= WIDTH || c >= channels) return;
    __threadfence();
    chain<false>(tables[0], p, carries, chunks, at.b, c);
    chain<true>(tables[1], p, carries, chunks, at.b, c);
}
