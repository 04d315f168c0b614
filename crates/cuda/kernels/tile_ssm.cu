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
// Between chunks, one way: decoupled look-back. A block publishes r, then sums what lies before it, back to the first
// chunk whose end state is known, and publishes its own end state. Value and tag share one 64-bit word, so no fence is
// needed; tags carry a launch number that the last block of a launch raises, so nothing is reset between launches.
// Blocks wait only for blocks of smaller index. Both ways, this could not be: tile_ssm_carries goes first and leaves
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
// Both ways, a thread holds both directions' outputs in registers.
#ifndef ITEMS
#define ITEMS (DIRECTION == 2 ? 2 : 4)
#endif
// Tiles of tokens a block has under way or at work.
#ifndef STAGES
#define STAGES (DIRECTION == 2 ? 1 : 2)
#endif
// Blocks that must fit a multiprocessor.
#ifndef BLOCKS
#define BLOCKS (4 - DIRECTION)
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

// What a launch of one-way blocks shares besides the slots.
__device__ __forceinline__ unsigned* tickets(void* scratch, const Params& p, int chunks)
{
    return reinterpret_cast<unsigned*>(static_cast<Scratch*>(scratch)->slots + (long long)chunks * p.batch * p.channels);
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
__device__ __forceinline__ void emit(const Table& table, const Stage& stage, const Params& p, const Place& at,
                                     bool careful, float (&s)[V], elem* __restrict__ y, elem* __restrict__ state)
{
    elem* to = y + ((long long)at.b * p.steps + at.k) * p.channels + at.c;
    float out[V];
    Table::read(table.out, out);
    if (!careful && (BACK ? at.k > 0 : at.k + ITEMS < p.steps)) {
        // y itself obeys the recurrence, with its gain in the inputs.
        float d[V], gain[V], bias[V];
        Table::read(table.d, d);
        Table::read(table.out_gain, gain);
        Table::read(table.out_bias, bias);
#pragma unroll
        for (int v = 0; v < V; ++v) out[v] *= s[v];
#pragma unroll
        for (int n = 0; n < ITEMS; ++n) {
            const int i = item(n, BACK);
            float x[V];
            stage.read(i, x);
#pragma unroll
            for (int v = 0; v < V; ++v) out[v] = d[v] * out[v] + (gain[v] * x[v] + bias[v]);
            *words<V>(to + (long long)i * p.channels) = from_floats<V>(out);
        }
        return;
    }
#pragma unroll 1
    for (int n = 0; n < ITEMS; ++n) {
        const int i = item(n, BACK);
        careful_step<BACK>(table, stage, p, at, i, s);
        float scaled[V];
#pragma unroll
        for (int v = 0; v < V; ++v) scaled[v] = out[v] * s[v];
        if (at.k + i < p.steps) store_channels(to + (long long)i * p.channels, at, p.channels, scaled);
        if (at.k + i == (BACK ? 0 : p.steps - 1))
            store_channels(state + state_offset<BACK>(p, at), at, p.channels, s);
    }
}

template <bool BACK>
__device__ __forceinline__ void one_way(Stage* stages, Table& table, float (*sums)[WIDTH], int& next,
                                        const elem* __restrict__ tokens, const Params& p, elem* __restrict__ y,
                                        elem* __restrict__ state, void* scratch, bool aligned)
{
    const int groups = (p.channels + WIDTH - 1) / WIDTH, group = blockIdx.x % groups;
    int tile = blockIdx.x / groups;
    Place at(p, group, aligned);
    at.go(p, tile);
    if (p.steps == 0) return no_tokens<BACK>(p, at, state);
    stages[0].fill(tokens, p, at);
    Stage::commit();
    const Column<BACK> column(p, group, scratch);
    const int tiles = column.chunks * p.batch, started = gridDim.x / groups;
    // Tiles beyond the first of each block are handed out in order, so that no block waits for one nobody has begun.
    const auto take = [&] { return started + (int)atomicAdd(tickets(scratch, p, column.chunks) + group, 1); };
    if (threadIdx.x == 0) next = started < tiles ? take() : tiles;
    table.fill(p, group, BACK ? p.param_stride : 0);
    __syncthreads();

    for (int turn = 0; tile < tiles; ++turn) {
        const Stage& stage = stages[turn % STAGES];
        const int tile_next = next;
        if (STAGES > 1) {
            if (tile_next < tiles) {
                Place ahead = at;
                ahead.go(p, tile_next);
                stages[(turn + 1) % STAGES].fill(tokens, p, ahead);
            }
            Stage::commit();
        }
        int after_next = tiles;
        if (threadIdx.x == 0 && tile_next < tiles) after_next = take();
        Stage::wait<STAGES - 1>();
        float s[V];
        const bool careful = own_share<BACK>(table, stage, p, at, s);
        combine<BACK>(table, s, sums);
        __syncthreads();
        if (threadIdx.x < WIDTH) {
            const float r = column.fold(sums), initial = tile < p.batch ? column.first(p, at.b) : 0.0f;
            const long long stride = (long long)p.batch * p.channels, offset = (long long)at.b * p.channels + column.c;
            float entering = initial;
            if (column.chunks > 1 && column.c < p.channels)
                entering = column.look_back(static_cast<Scratch*>(scratch)->slots + offset, stride, tile / p.batch, r,
                                            initial);
            column.spread(sums, entering);
        }
        if (threadIdx.x == 0) next = after_next;
        __syncthreads();
        enter<BACK>(table, sums, s);
        emit<BACK>(table, stage, p, at, careful, s, y, state);
        tile = tile_next;
        at.go(p, tile);
        if (STAGES == 1 && tile < tiles) {
            stages[0].fill(tokens, p, at);
            Stage::commit();
        }
    }
    // Every thread of the block has read the launch number and had its tickets by now; the last block raises the one
    // and takes back the others.
    if (column.chunks > 1 && threadIdx.x == 0) {
        Scratch* words = static_cast<Scratch*>(scratch);
        if (atomicAdd(&words->done, 1) == gridDim.x - 1) {
            for (int g = 0; g < groups; ++g) tickets(scratch, p, column.chunks)[g] = 0;
            words->done = 0;
            words->launch += 1;
        }
    }
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
__device__ __forceinline__ bool enter_carried(const Column<BACK>& column, const Table& table, const Stage& stage,
                                              const Params& p, const Place& at, void* scratch, float (*sums)[WIDTH],
                                              float (&s)[V])
{
    const bool careful = own_share<BACK>(table, stage, p, at, s);
    combine<BACK>(table, s, sums);
    __syncthreads();
    if (threadIdx.x < WIDTH) {
        float entering = column.first(p, at.b);
        if (column.chunks > 1 && column.c < p.channels) {
            const Carries carries(scratch, p, column.chunks);
            entering = carries.at[BACK * carries.way + at.chunk * carries.stride + (long long)at.b * p.channels + column.c];
        }
        column.spread(sums, entering);
    }
    __syncthreads();
    enter<BACK>(table, sums, s);
    return careful;
}

// The states behind the thread's tokens, times the output gain.
template <bool BACK>
__device__ __forceinline__ void run_through(const Table& table, const Stage& stage, const Params& p, const Place& at,
                                            bool careful, float (&s)[V], float (&y)[ITEMS][V], elem* state)
{
#pragma unroll
    for (int n = 0; n < ITEMS; ++n) {
        const int i = item(n, BACK);
        if (careful) {
            careful_step<BACK>(table, stage, p, at, i, s);
        } else {
            float x[V];
            stage.read(i, x);
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int c = Place::channel() + v;
                s[v] = table.d[c] * s[v] + (table.gain[c] * x[v] + table.bias[c]);
            }
        }
        if (at.k + i == (BACK ? 0 : p.steps - 1))
            store_channels(state + state_offset<BACK>(p, at), at, p.channels, s);
#pragma unroll
        for (int v = 0; v < V; ++v) y[i][v] = table.out[Place::channel() + v] * s[v];
    }
}

__device__ __forceinline__ void both_ways(Stage& stage, Table* tables, float (*sums)[WIDTH],
                                          const elem* __restrict__ tokens, const Params& p, elem* __restrict__ y,
                                          elem* __restrict__ state, void* scratch, bool aligned)
{
    const int groups = (p.channels + WIDTH - 1) / WIDTH, group = blockIdx.x % groups;
    Place at(p, group, aligned);
    at.go(p, blockIdx.x / groups);
    if (p.steps == 0) {
        no_tokens<false>(p, at, state);
        return no_tokens<true>(p, at, state);
    }
    stage.fill(tokens, p, at);
    Stage::commit();
    const Column<false> forward_column(p, group, scratch);
    const Column<true> backward_column(p, group, scratch);
    tables[0].fill(p, group, 0);
    tables[1].fill(p, group, p.param_stride);
    Stage::wait<0>();
    __syncthreads();
    float s[V], forward[ITEMS][V], backward[ITEMS][V];
    bool careful = enter_carried<true>(backward_column, tables[1], stage, p, at, scratch, sums + WARPS, s);
    run_through<true>(tables[1], stage, p, at, careful, s, backward, state);
    careful = enter_carried<false>(forward_column, tables[0], stage, p, at, scratch, sums, s);
    run_through<false>(tables[0], stage, p, at, careful, s, forward, state);
    float weights[V];
#pragma unroll
    for (int v = 0; v < V; ++v) weights[v] = p.weight(at.b, at.c + v);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        float out[V];
#pragma unroll
        for (int v = 0; v < V; ++v) out[v] = p.merged(weights[v], forward[i][v], backward[i][v]);
        if (at.k + i < p.steps)
            store_channels(y + ((long long)at.b * p.steps + at.k + i) * p.channels + at.c, at, p.channels, out);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_ssm_fast(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
              const elem* __restrict__ output_gain, const elem* __restrict__ state_bias, const elem* __restrict__ init,
              const elem* __restrict__ gate, elem* __restrict__ y, elem* __restrict__ state, void* scratch, int batch,
              int steps, int channels, int param_stride, int init_slots, int gate_stride, int merge, float clamp)
{
    __shared__ Stage stages[STAGES];
    __shared__ alignas(16) Table tables[BOTH ? 2 : 1];
    __shared__ alignas(16) float sums[(BOTH ? 2 : 1) * WARPS][WIDTH];
    __shared__ int next;
    const Params p{decay, input_gain, output_gain, state_bias, init, gate, batch, steps, channels, param_stride,
                   init_slots, gate_stride, merge, fabsf(clamp)};
    const size_t bits = address_bits(tokens) | address_bits(y) | address_bits(state);
    const bool aligned = bits % sizeof(Word<V>) == 0;
    if constexpr (BOTH) {
        both_ways(stages[0], tables, sums, tokens, p, y, state, scratch, aligned);
    } else {
        one_way<DIRECTION == 1>(stages, tables[0], sums, next, tokens, p, y, state, scratch, aligned);
    }
}

// The chunk's share of one direction into its place in scratch.
template <bool BACK>
__device__ __forceinline__ void leave_share(const Column<BACK>& column, const Table& table, const Stage& stage,
                                            const Params& p, const Place& at, const Carries& carries,
                                            float (*sums)[WIDTH])
{
    float r[V];
    own_share<BACK>(table, stage, p, at, r);
    combine<BACK>(table, r, sums);
    __syncthreads();
    if (threadIdx.x < WIDTH && column.c < p.channels)
        carries.at[BACK * carries.way + at.chunk * carries.stride + (long long)at.b * p.channels + column.c] =
            column.fold(sums);
}

// Turns the shares of all chunks into the states that enter them.
template <bool BACK>
__device__ __forceinline__ void chain(const Column<BACK>& column, const Params& p, const Carries& carries, int b)
{
    float* at = carries.at + BACK * carries.way + (long long)b * p.channels + column.c;
    float s = column.first(p, b);
    for (int first = 0; first < column.chunks; first += WINDOW) {
        float r[WINDOW];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            const int chunk = BACK ? column.chunks - 1 - first - i : first + i;
            r[i] = first + i < column.chunks ? __ldcg(at + chunk * carries.stride) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            const int chunk = BACK ? column.chunks - 1 - first - i : first + i;
            if (first + i < column.chunks) at[chunk * carries.stride] = s;
            s = column.d_chunk * s + r[i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_ssm_carries(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
                 const elem* __restrict__ state_bias, const elem* __restrict__ init, void* scratch, int batch,
                 int steps, int channels, int param_stride, int init_slots, float clamp)
{
    __shared__ Stage stage;
    __shared__ alignas(16) Table tables[2];
    __shared__ alignas(16) float sums[2][WARPS][WIDTH];
    __shared__ bool last;
    const Params p{decay, input_gain, nullptr, state_bias, init, nullptr, batch, steps, channels, param_stride,
                   init_slots, 0, 0, fabsf(clamp)};
    const int groups = (channels + WIDTH - 1) / WIDTH, group = blockIdx.x % groups;
    Place at(p, group, address_bits(tokens) % sizeof(Word<V>) == 0);
    at.go(p, blockIdx.x / groups);
    stage.fill(tokens, p, at);
    Stage::commit();
    const Column<false> forward(p, group, scratch);
    const Column<true> backward(p, group, scratch);
    const Carries carries(scratch, p, forward.chunks);
    tables[0].fill(p, group, 0);
    tables[1].fill(p, group, param_stride);
    Stage::wait<0>();
    __syncthreads();
    leave_share(forward, tables[0], stage, p, at, carries, sums[0]);
    leave_share(backward, tables[1], stage, p, at, carries, sums[1]);
    __threadfence();
    __syncthreads();
    // The counter falls back to 0 by itself after the last of a column's chunks.
    if (threadIdx.x == 0)
        last = atomicInc(carries.counters + at.b * groups + group, forward.chunks - 1) == forward.chunks - 1;
    __syncthreads();
    if (!last || threadIdx.x >= WIDTH || forward.c >= channels) return;
    __threadfence();
    chain(forward, p, carries, at.b);
    chain(backward, p, carries, at.b);
}
