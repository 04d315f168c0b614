// One level of the FF path on the chosen tiles: bidirectional scan over the tokens, FiLM, modulation, depthwise 3x3, 1x1 to
// twice the channels, GroupNorm over the tile, gate, residual and fusion gate. See ff_path.cu for what runs before it and
// for the plain version.
//
// A tile falls to CLUSTER blocks. Each takes one chunk of ROWS rows (or several, one after the other, if the tile has more)
// and all channels of it. Threads hold strips of the tile (this file), warps the products (ff_product.cuh), both in registers
// to the end. The blocks share out the rows of the FiLM layers (ff_film.cuh) and exchange those and the moments of the
// GroupNorm through distributed shared memory. A block with several chunks takes the products twice: for the moments, and
// again once they are known. CLUSTER 1 needs no cluster and is the only choice before sm_90. Sums have a fixed order, so
// results are the same in every run.
//
// A block goes through its code once, so fetching instructions costs as much as executing them: loops are unrolled only where
// registers are indexed or loads must overlap.
//
// 16-bit elements: products on tensor cores (m16n8k16), fp32 sums. With SPLIT the convolved values go in as a rounded part
// and a rounded rest: without it about one value in a million leaves the tolerance in f16, many more in bf16. fp32: FMA.
//
// Grid B * K * CLUSTER, block THREADS, no dynamic shared memory. Constants (ff_shape.cuh): CHANNELS (multiple of 16), TILE
// (edge), CLUSTER (1, 2, 4, 8), ROWS, THREADS (128, 256, 512), SPLIT, SOURCE_F32 (map is float), ALIGNED (0 if map, heavy,
// detail or unrounded is not 16-byte aligned). Shared memory grows with ROWS * TILE * CHANNELS and must stay within 48 KB.
// May be launched with programmatic stream serialization, like the kernels of ff_path.cu.
//
// map [B, C, H, W], read within the tiles only, must not be heavy. ids [B, K]. tokens [B, K, C]. scan and weights as in ff.cuh,
// weights 16-byte aligned. heavy, detail [B, C, H, W] in elem, unrounded the same in float: written within the tiles only; the
// last two may be null. states: float [2, C] per sample (forward, backward), state_stride floats from sample to sample.
#include "ff_product.cuh"

// Upper left pixel of the tile in channel 0 of the level's input.
struct Place {
    const source* corner;
    long long plane;
    int width;
};

// What one thread convolves: a strip with a border of one pixel, before modulation.
struct Strip {
    int column, channel, row;
    source rows[BAND + 2][COLUMNS], left[BAND + 2], right[BAND + 2];
    elem kernel[9], bias;

    // Items count strips of a row, channels, bands. Beyond the tile, and for items that are not there, some pixel within the
    // tile is loaded and not used.
    __device__ __forceinline__ void place_at(int item, int channels, int chunk) {
        column = item % STRIPS * COLUMNS;
        channel = item / STRIPS % channels;
        row = chunk * ROWS + item / (STRIPS * channels) * BAND;
    }
    __device__ __forceinline__ void load(const Place& place) {
        const source* from = place.corner + channel * place.plane + column;
#pragma unroll
        for (int i = 0; i < BAND + 2; ++i) {
            const source* at = from + least(row + i > 0 ? row + i - 1 : 0, TILE - 1) * place.width;
            load_columns(at, ALIGNED, rows[i]);
            if constexpr (STRIPS > 1 && !NEIGHBOURS) {
                left[i] = at[column > 0 ? -1 : 0];
                right[i] = at[column + COLUMNS < TILE ? COLUMNS : 0];
            }
        }
    }
    __device__ __forceinline__ void load_kernel(const Weights& w) {
#pragma unroll
        for (int i = 0; i < 9; ++i) kernel[i] = w.depthwise_weight()[channel * 9 + i];
        bias = w.depthwise_bias()[channel];
    }

    // Called by whole warps.
    __device__ __forceinline__ void convolve(Shared& s, int chunk, bool live) const {
        const float scale = s.tokens.film[channel], shift = s.tokens.film[CHANNELS + channel];
        float sums[BAND][COLUMNS];
#pragma unroll
        for (int i = 0; i < BAND + 2; ++i) {
            // Outside the tile is zero, not the modulated zero.
            const bool inside = row + i >= 1 && row + i <= TILE;
            float values[COLUMNS + 2];
#pragma unroll
            for (int x = 0; x < COLUMNS; ++x) values[x + 1] = inside ? scale * widen(rows[i][x]) + shift : 0.0f;
            float before = 0.0f, after = 0.0f;
            if constexpr (NEIGHBOURS) {
                before = __shfl_up_sync(0xffffffffu, values[COLUMNS], 1);
                after = __shfl_down_sync(0xffffffffu, values[1], 1);
            } else if constexpr (STRIPS > 1) {
                before = inside ? scale * widen(left[i]) + shift : 0.0f;
                after = inside ? scale * widen(right[i]) + shift : 0.0f;
            }
            values[0] = column > 0 ? before : 0.0f;
            values[COLUMNS + 1] = column + COLUMNS < TILE ? after : 0.0f;
#pragma unroll
            for (int out = 0; out < BAND; ++out) {
                const int dy = i - out;
                if (dy < 0 || dy > 2) continue;
#pragma unroll
                for (int x = 0; x < COLUMNS; ++x) {
                    float sum = dy == 0 ? to_float(bias) : sums[out][x];
#pragma unroll
                    for (int dx = 0; dx < 3; ++dx) sum += to_float(kernel[3 * dy + dx]) * values[x + dx];
                    sums[out][x] = sum;
                }
            }
        }
        if (!live) return;
        elem* to = &s.x[0][(row - chunk * ROWS) * TILE + column][channel];
#pragma unroll
        for (int i = 0; i < BAND; ++i) {
#pragma unroll
            for (int x = 0; x < COLUMNS; ++x) {
                const elem rounded = from_float(sums[i][x]);
                to[(i * TILE + x) * STRIDE] = rounded;
                if constexpr (SPLIT) to[(SLOTS + i * TILE + x) * STRIDE] = from_float(sums[i][x] - to_float(rounded));
            }
        }
    }

    // Residual and fusion gate. gated: this channel's values; heavy, detail and unrounded point to the tile's corner in
    // channel 0, the last two may be null.
    __device__ __forceinline__ void finish(const Shared& s, const float* gated, const Place& place, int chunk, elem* heavy,
                                           elem* detail, float* unrounded) const {
        const float scale = s.tokens.film[channel], shift = s.tokens.film[CHANNELS + channel];
        const long long corner = channel * place.plane + column;
#pragma unroll
        for (int i = 0; i < BAND; ++i) {
            if (TILE % ROWS != 0 && row + i >= TILE) break;
            const int slot = (row - chunk * ROWS + i) * TILE + column;
            float addends[COLUMNS], fused[COLUMNS], difference[COLUMNS];
            load_columns(gated + slot, true, addends);
#pragma unroll
            for (int x = 0; x < COLUMNS; ++x) {
                const float base = widen(rows[i + 1][x]), refined = scale * base + shift + addends[x];
                fused[x] = base + s.alpha[slot + x] * (refined - base);
                difference[x] = fused[x] - base;
            }
            const long long at = corner + (row + i) * place.width;
            store_columns(heavy + at, ALIGNED, fused);
            if (detail) store_columns(detail + at, ALIGNED, difference);
            if (unrounded) store_columns(unrounded + at, ALIGNED, fused);
        }
    }
};

// Inputs of the fusion gate at one pixel.
struct Proxies {
    // Upper left pixel of the tile.
    const elem *boundary, *uncertainty;
    int width;
    elem at_boundary, at_uncertainty;
    __device__ __forceinline__ void load(int pixel, int chunk) {
        const int y = least(chunk * ROWS + pixel / TILE, TILE - 1), at = y * width + pixel % TILE;
        at_boundary = boundary[at];
        at_uncertainty = uncertainty[at];
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        ff_refine_fast(const source* __restrict__ map, const int* __restrict__ ids, const float* __restrict__ tokens,
                       const float* __restrict__ scan, const elem* __restrict__ weights, int tiles, int height, int width,
                       const elem* __restrict__ boundary, const elem* __restrict__ uncertainty, float gate_boundary,
                       float gate_uncertainty, float gate_bias, elem* __restrict__ heavy, elem* __restrict__ detail,
                       float* __restrict__ unrounded, float* __restrict__ states, int state_stride) {
    __shared__ Shared s;
    let_next_start();
    s.mail.open({CHANNELS, 2 * CHANNELS, 3 * CHUNKS * WARPS});
    const int slot = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER, b = slot / tiles, k = slot % tiles;
    const Weights w = {weights, CHANNELS};
    const TokenNorm norm(w);
    Layer<CHANNELS> layer0(w.mlp0_weight(), w.mlp0_bias(), rank);
    Layer<2 * CHANNELS> layer2(w.mlp2_weight(), w.mlp2_bias(), rank);
    wait_for_previous();

    // Loads come back in order: first what is needed first.
    tokens += static_cast<size_t>(b) * tiles * CHANNELS;
    TokenScan token_scan(tokens, scan, threadIdx.x, k, tiles);
    const int corner = tile_corner(ids[slot], TILE, width), own = least(rank, CHUNKS - 1);
    const long long plane = static_cast<long long>(height) * width, sample = b * CHANNELS * plane + corner;
    const Place place = {map + sample, plane, width};
    Proxies proxies = {boundary + b * plane + corner, uncertainty + b * plane + corner, width};
    Strip strip;
    if (LOADED) {
        strip.place_at(threadIdx.x, CHANNELS, own);
        strip.load(place);
        strip.load_kernel(w);
        proxies.load(threadIdx.x, own);
    }
    scan_all(s.tokens, token_scan, tokens, scan, k, tiles, rank == 0, states + static_cast<size_t>(b) * state_stride);
    __syncthreads();
    norm.run(s.tokens);
    __syncthreads();
    s.mail.started();
    layer0.run(s.tokens.normed, s.mail, Mail::HIDDEN, s.tokens.hidden, [](int, float v) { return v * sigmoid(v); });
    Products sums(w);
    s.mail.receive(Mail::HIDDEN);
    // 1 + tanh(v) = 2 sigmoid(2v).
    layer2.run(s.tokens.hidden, s.mail, Mail::FILM, s.tokens.film,
               [](int o, float v) { return o < CHANNELS ? 2.0f * sigmoid(2.0f * v) : v; });
    s.mail.receive(Mail::FILM);

    // Products of one chunk, from the gathering on.
    const Gate gate = {gate_boundary, gate_uncertainty, gate_bias};
    auto multiply_chunk = [&](int chunk) {
        // Columns beyond the channels must not hold a NaN: their weights are zero.
        if constexpr (DEPTH > CHANNELS) {
            for (int i = threadIdx.x; i < (1 + SPLIT) * SLOTS * 16; i += THREADS) {
                s.x[i / 16 / SLOTS][i / 16 % SLOTS][CHANNELS + i % 16] = from_float(0.0f);
            }
        }
        if constexpr (LOADED) {
            if (threadIdx.x < PIXELS) s.alpha[threadIdx.x] = gate.alpha(proxies.at_boundary, proxies.at_uncertainty);
            strip.convolve(s, chunk, threadIdx.x < ITEMS);
        } else {
#pragma unroll 1
            for (int i = threadIdx.x; i < chunk_pixels(chunk); i += THREADS) {
                proxies.load(i, chunk);
                s.alpha[i] = gate.alpha(proxies.at_boundary, proxies.at_uncertainty);
            }
#pragma unroll 1
            for (int i = threadIdx.x; i < ceil_div(ITEMS, 32) * 32; i += THREADS) {
                strip.place_at(i, CHANNELS, chunk);
                strip.load(place);
                strip.load_kernel(w);
                strip.convolve(s, chunk, i < ITEMS);
            }
        }
        __syncthreads();
        sums.run(s, w.pointwise_weight());
    };
    elem *const heavy_at = heavy + sample, *const detail_at = detail ? detail + sample : nullptr;
    float* const unrounded_at = unrounded ? unrounded + sample : nullptr;
    auto finish_chunk = [&](int chunk, float2 moments) {
#pragma unroll
        for (int p = 0; p < PAIRS_PER_WARP; ++p) {
            if (p > 0) __syncthreads();
            sums.gate(s, p, moments);
            __syncthreads();
            if constexpr (LOADED) {
                if (threadIdx.x < ITEMS) strip.finish(s, s.gated[strip.channel], place, chunk, heavy_at, detail_at, unrounded_at);
            } else {
#pragma unroll 1
                for (int i = threadIdx.x; i < ROUND_ITEMS; i += THREADS) {
                    strip.place_at(i, ROUND_CHANNELS, chunk);
                    const int in_round = strip.channel;
                    strip.channel = (in_round / 16 * PAIRS_PER_WARP + p) * 16 + in_round % 16;
                    if (!ALL_PAIRS && strip.channel >= CHANNELS) continue;
                    strip.load(place);
                    strip.finish(s, s.gated[in_round], place, chunk, heavy_at, detail_at, unrounded_at);
                }
            }
        }
    };
    if constexpr (ONE_PASS) {
        if (rank < CHUNKS) {
            multiply_chunk(rank);
            note_moments(s, sums, rank);
        }
        // The sums of all warps have come, so all have read their part of x.
        s.mail.receive(Mail::MOMENTS);
        if (rank < CHUNKS) finish_chunk(rank, tile_moments(s));
    } else {
        float2 moments;
#pragma unroll 1
        for (int pass = 0; pass < 2; ++pass) {
#pragma unroll 1
            for (int chunk = rank; chunk < CHUNKS; chunk += CLUSTER) {
                multiply_chunk(chunk);
                if (pass == 0) note_moments(s, sums, chunk);
                __syncthreads();
                if (pass == 1) finish_chunk(chunk, moments);
                if (pass == 1) __syncthreads();
            }
            if (pass == 1) break;
            s.mail.receive(Mail::MOMENTS);
            moments = tile_moments(s);
        }
    }
}
