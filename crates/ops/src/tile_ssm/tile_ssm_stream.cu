// tile_ssm_stream: tile_ssm one way (DIRECTION 0 forward, 1 backward; see tile_ssm.cu for what it computes) for many
// samples and channels: no scratch and nothing passes between blocks.
//
// A block takes one sample and WIDTH = ACROSS*CHANNELS channels and goes through all tokens in chunks of SPAN =
// 32/ACROSS*ITEMS, warp after warp in turn. A warp finds its chunk's share r by itself (threads as in tile_ssm:
// ITEMS consecutive tokens of CHANNELS neighbouring channels each), takes the state from the warp before it, passes
// d^SPAN*s + r on, and only then writes its outputs; so loads, sums and stores of different chunks overlap, and the
// chain from chunk to chunk is one multiply-add between two named barriers.
// Tokens come STAGES chunks ahead per warp through a ring in shared memory. Each thread copies just the words that it
// reads itself, so that the ring needs no barriers and has no bank conflicts.
//
// Launch: grid B*ceil(C/WIDTH), block THREADS (512 at most), dynamic shared memory
// THREADS*ITEMS*STAGES*CHANNELS*sizeof(elem) bytes: 192 KiB by default, which only sm_90 and sm_100 have. Worth it
// where the grid fills half of the multiprocessors or more; otherwise tile_ssm_fast has more blocks to offer.
// Parameters as those of tile_ssm_fast, all but init must be given.
#ifndef DIRECTION
#define DIRECTION 0
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef CHANNELS
#define CHANNELS (PACK < 8 ? PACK : 8)
#endif
#ifndef ACROSS
#define ACROSS (32 / CHANNELS)
#endif
#ifndef ITEMS
#define ITEMS 16
#endif
#ifndef STAGES
#define STAGES 3
#endif
// Blocks that must fit a multiprocessor: bounds the registers.
#ifndef BLOCKS
#define BLOCKS 1
#endif

#include "ssm_scan.cuh"

constexpr bool BACK = DIRECTION == 1;
constexpr int SPAN = DEEP * ITEMS;
constexpr int COLUMNS = (WIDTH + 31) / 32;  // Channels of a lane where one lane works per channel.
static_assert(!BOTH, "one way only");
static_assert(WARPS <= 16, "a block has 16 named barriers");

// One word into shared memory, not through registers. Blocks that take neighbouring channels run side by side: what is
// fetched beyond the own row serves them.
__device__ __forceinline__ void copy_ahead(unsigned to, const elem* from)
{
    constexpr int BYTES = sizeof(Word<V>);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
}

// Named barriers, one for each warp that waits: polling would take issue slots and shared memory from warps at work.
__device__ __forceinline__ void wait_for_turn(int warp) { asm volatile("bar.sync %0, 64;" ::"r"(warp) : "memory"); }
__device__ __forceinline__ void give_turn(int warp) { asm volatile("bar.arrive %0, 64;" ::"r"(warp) : "memory"); }

// The chunks of a warp, one after the other; ranks count chunks in the order of the scan.
struct Stream {
    const elem* tokens;
    const Params& p;
    Place at;
    Word<V>* ring;  // This thread's words: one in THREADS.
    int chunks;

    __device__ Stream(const elem* tokens, const Params& p, bool aligned, Word<V>* ring)
        : tokens(tokens), p(p), at(p, aligned), ring(ring + threadIdx.x), chunks((p.steps + SPAN - 1) / SPAN)
    {
        const int groups = groups_of(p), tile = blockIdx.x;
        at.b = tile / groups;
        at.group = tile - at.b * groups;
        at.c = at.group * WIDTH + Place::channel();
    }
    __device__ __forceinline__ void go_to(int rank)
    {
        at.rank = rank;
        at.chunk = BACK ? chunks - 1 - rank : rank;
        at.k = at.chunk * SPAN + threadIdx.x % 32 / ACROSS * ITEMS;
    }
    __device__ __forceinline__ void request(int rank, int stage)
    {
        go_to(rank);
        if (rank < chunks && at.whole(p)) {
            const elem* from = tokens + at.token(p, 0);
            const unsigned to = (unsigned)__cvta_generic_to_shared(ring + stage * ITEMS * THREADS);
#pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                copy_ahead(to + i * THREADS * sizeof(Word<V>), from + (long long)i * p.channels);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    // The oldest request; STAGES are under way.
    __device__ __forceinline__ void receive(Tokens& raw, int stage) const
    {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) raw.at[i] = ring[(stage * ITEMS + i) * THREADS];
    }
};

// The thread's outputs from the state that enters its tokens. Only a part-filled last chunk has the final state here.
__device__ __forceinline__ void emit(const Table& table, const Tokens& raw, const elem* tokens, const Params& p,
                                     const Place& at, bool careful, float (&s)[V], elem* __restrict__ y,
                                     elem* __restrict__ state)
{
    float out[V];
    Table::read(table.out, out);
    const bool ends = !BACK && p.steps % SPAN;
    if (!careful && !(ends && at.k + ITEMS == p.steps)) {
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
            __stcs(words<V>(to + (long long)i * p.channels), from_floats<V>(out));
        }
        return;
    }
#pragma unroll 1
    for (int n = 0; n < ITEMS; ++n) {
        const int i = item(n, BACK);
        careful_step<BACK>(table, tokens, p, at, i, s);
        float scaled[V];
#pragma unroll
        for (int v = 0; v < V; ++v) scaled[v] = out[v] * s[v];
        if (at.k + i < p.steps) store_channels(y + at.token(p, i), at, p.channels, scaled);
        if (ends && at.k + i == p.steps - 1)
            store_channels(state + (long long)at.b * p.channels + at.c, at, p.channels, s);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_ssm_stream(const elem* __restrict__ tokens, const elem* __restrict__ decay, const elem* __restrict__ input_gain,
                const elem* __restrict__ output_gain, const elem* __restrict__ state_bias,
                const elem* __restrict__ init, elem* __restrict__ y, elem* __restrict__ state, int batch, int steps,
                int channels, int param_stride, int init_slots, float clamp)
{
    __shared__ Table table;
    __shared__ alignas(16) float sums[WARPS][WIDTH];  // Each warp's share, then the state that enters it.
    __shared__ float span_power[WIDTH];
    __shared__ float carries[WARPS][WIDTH];  // From the warp before.
    extern __shared__ Word<V> ring[];
    const Params p{decay, input_gain, output_gain, state_bias, init, nullptr, batch, steps, channels, param_stride,
                   init_slots, 0, 0, fabsf(clamp)};
    const size_t bits = address_bits(tokens) | address_bits(y) | address_bits(state);
    Stream stream(tokens, p, bits % sizeof(Word<V>) == 0, ring);
    const Place& at = stream.at;
    const int warp = Place::warp(), lane = threadIdx.x % 32, param_offset = BACK ? param_stride : 0;
    // The table's loads wait for each other; and behind all the tokens of a full ring they would wait long.
    if (threadIdx.x < 4) {
        const elem* const from = threadIdx.x == 0   ? decay
                                 : threadIdx.x == 1 ? input_gain
                                 : threadIdx.x == 2 ? output_gain
                                                    : state_bias;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + param_offset + at.group * WIDTH));
    }
    stream.request(warp, 0);
    table.fill(p, at.group, param_offset);
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) {
        const int c = at.group * WIDTH + i;
        // Rounded once, since it is multiplied many times over.
        double power = clamped_decay(c < channels ? to_float(decay[param_offset + c]) : 0.0f);
#pragma unroll
        for (int n = 1; n < SPAN; n *= 2) power *= power;
        span_power[i] = (float)power;
        // Backward, an initial state behind a part-filled chunk enters as an input instead.
        carries[0][i] = BACK && steps % SPAN ? 0.0f : p.initial(at.b, BACK, c);
        if (steps == 0 && c < channels) state[(long long)at.b * channels + c] = from_float(carries[0][i]);
    }
#pragma unroll
    for (int i = 1; i < STAGES; ++i) stream.request(warp + i * WARPS, i);
    __syncthreads();
    int stage = 0;
    for (int rank = warp; rank < stream.chunks; rank += WARPS) {
        stream.go_to(rank);
        Tokens raw;
        stream.receive(raw, stage);
        float s[V];
        const bool careful = own_share<BACK>(table, raw, tokens, p, at, s);
        stream.request(rank + STAGES * WARPS, stage);
        stream.go_to(rank);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        combine<BACK>(table, s, sums);
        __syncwarp();
        // Everything that can be read before the turn comes is; between the barriers lies only the chain.
        float shares[COLUMNS], powers[COLUMNS], entering[COLUMNS], end[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int i = lane + j * 32;
            shares[j] = i < WIDTH ? sums[warp][i] : 0.0f;
            powers[j] = i < WIDTH ? span_power[i] : 0.0f;
        }
        const bool last = rank == stream.chunks - 1;
        if (rank > 0 && WARPS > 1) wait_for_turn(warp);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int i = lane + j * 32;
            entering[j] = i < WIDTH ? carries[warp][i] : 0.0f;
            end[j] = powers[j] * entering[j] + shares[j];
            if (i < WIDTH) carries[(warp + 1) % WARPS][i] = end[j];
        }
        __syncwarp();
        if (!last && WARPS > 1) give_turn((warp + 1) % WARPS);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            const int i = lane + j * 32, c = at.group * WIDTH + i;
            if (i < WIDTH) sums[warp][i] = entering[j];
            if (last && (BACK || steps % SPAN == 0) && i < WIDTH && c < channels)
                state[(long long)at.b * channels + c] = from_float(end[j]);
        }
        __syncwarp();
        enter<BACK>(table, sums, s);
        __syncwarp();
        emit(table, raw, tokens, p, at, careful, s, y, state);
    }
}
