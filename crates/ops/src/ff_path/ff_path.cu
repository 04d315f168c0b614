// The FF path around its refinement (ff_refine.cu): means of the chosen tiles, copies of what no tile touches, and the
// plain version of one whole level.
//
// A call runs the heavy path on one or two levels. Ids of tiles are int [B, K], unique within a sample, in the order of the
// scan. Level 0 reads the dense map; level 1 reads `unrounded`, where level 0 has left its result within its own tiles as
// fp32, so every tile of level 1 must lie within one of level 0. Fast, per call:
//   ff_begin_fast    level 0's tokens; heavy = dense, detail = 0, states = 0, alpha of the last level that runs
//   ff_refine_fast   level 0, if it has tiles: overwrites its tiles in heavy (and in detail if it is the last level)
//   ff_tokens_fast   level 1's tokens (compiled with SOURCE_F32)
//   ff_refine_fast   level 1 (SOURCE_F32)
//
// Each of the four may be launched with programmatic stream serialization.
//
// ff_begin_fast and ff_tokens_fast: TILE is the tile's edge, THREADS a multiple of 32. A token is the mean over one tile of
// one channel; a few lanes of a warp take it, with loads of up to 16 bytes. Token blocks come first; in ff_begin_fast the
// blocks behind them copy. Block THREADS, no dynamic shared memory, grid:
//   ff_tokens_fast   ceil(B * K * C * lanes / THREADS)
//   ff_begin_fast    the same (0 if K = 0), and any number >= 1 of copying blocks (8 per multiprocessor are best)
// with lanes = the largest power of two <= min(32, TILE * TILE / w), w = min(columns_of(TILE), 16 / bytes of an element of
// the map that is read).
//
// The reference kernels take one thread per output (ff_moments_reference: one block per tile), any block size that is a
// multiple of 32, any number of channels, any edge; buffers between them are fp32.
#include "ff.cuh"

#ifndef TILE
#define TILE 16
#endif
#ifndef THREADS
#define THREADS 256
#endif

template <typename T>
__device__ constexpr int token_lanes() {
    int loads = TILE * TILE / load_width<T, columns_of(TILE)>(), lanes = 1;
    while (lanes < 32 && 2 * lanes <= loads) lanes *= 2;
    return lanes;
}

// Means of the tokens that fall to this block.
template <typename T>
__device__ __forceinline__ void gather_tokens(const T* __restrict__ map, const int* __restrict__ ids, int batch, int tiles,
                                              int channels, int height, int width, float* __restrict__ tokens) {
    constexpr int LANES = token_lanes<T>(), W = load_width<T, columns_of(TILE)>(), LOADS = TILE * TILE / W;
    const long long token = (static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    const bool live = token < static_cast<long long>(batch) * tiles * channels;
    float sum = 0.0f;
    if (live) {
        const int c = token % channels;
        const long long slot = token / channels, b = slot / tiles;
        const T* corner =
            map + (b * channels + c) * static_cast<long long>(height) * width + tile_corner(ids[slot], TILE, width);
        const bool vector = aligned<T, W>(map);
#pragma unroll
        for (int i = 0; i < LOADS; i += LANES) {
            const int at = (i + lane) * W;
            if (LOADS % LANES == 0 || i + lane < LOADS) {
                T values[W];
                load_columns(corner + static_cast<long long>(at / TILE) * width + at % TILE, vector, values);
#pragma unroll
                for (int j = 0; j < W; ++j) sum += widen(values[j]);
            }
        }
    }
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (live && lane == 0) tokens[token] = sum * (1.0f / (TILE * TILE));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ff_tokens_fast(const source* __restrict__ map, const int* __restrict__ ids, int batch, int tiles, int channels,
                   int height, int width, float* __restrict__ tokens) {
    let_next_start();
    wait_for_previous();
    gather_tokens(map, ids, batch, tiles, channels, height, width, tokens);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ff_begin_fast(const elem* __restrict__ dense, const int* __restrict__ ids, int batch, int tiles, int channels, int height,
                  int width, float* __restrict__ tokens, const elem* __restrict__ boundary,
                  const elem* __restrict__ uncertainty, float gate_boundary, float gate_uncertainty, float gate_bias,
                  elem* __restrict__ heavy, elem* __restrict__ detail, elem* __restrict__ alpha, float* __restrict__ states,
                  int states_len) {
    let_next_start();
    wait_for_previous();
    constexpr int TOKENS = THREADS / token_lanes<elem>();
    const long long count = static_cast<long long>(batch) * tiles * channels;
    const int token_blocks = (count + TOKENS - 1) / TOKENS;
    if (static_cast<int>(blockIdx.x) < token_blocks) {
        gather_tokens(dense, ids, batch, tiles, channels, height, width, tokens);
        return;
    }
    const long long first = static_cast<long long>(blockIdx.x - token_blocks) * THREADS + threadIdx.x;
    const long long stride = static_cast<long long>(gridDim.x - token_blocks) * THREADS;
    const long long plane = static_cast<long long>(height) * width, len = batch * plane * channels;
    const size_t low = reinterpret_cast<size_t>(dense) | reinterpret_cast<size_t>(heavy) | reinterpret_cast<size_t>(detail);
    const long long packs = low % sizeof(Pack) == 0 ? len / PACK : 0;
    const Pack* from = reinterpret_cast<const Pack*>(dense);
    const uint4 zero = make_uint4(0, 0, 0, 0);
#pragma unroll 4
    for (long long i = first; i < packs; i += stride) {
        reinterpret_cast<Pack*>(heavy)[i] = from[i];
        reinterpret_cast<uint4*>(detail)[i] = zero;
    }
    for (long long i = packs * PACK + first; i < len; i += stride) {
        heavy[i] = dense[i];
        detail[i] = from_float(0.0f);
    }
    const Gate gate = {gate_boundary, gate_uncertainty, gate_bias};
    for (long long i = first; i < batch * plane; i += stride) alpha[i] = from_float(gate.alpha(boundary[i], uncertainty[i]));
    for (long long i = first; i < states_len; i += stride) states[i] = 0.0f;
}

__device__ __forceinline__ long long thread_index() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

extern "C" __global__ void ff_begin_reference(const elem* __restrict__ dense, int batch, int channels, int height, int width,
                                              const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                                              float gate_boundary, float gate_uncertainty, float gate_bias,
                                              elem* __restrict__ heavy, elem* __restrict__ detail,
                                              elem* __restrict__ alpha, float* __restrict__ states, int states_len) {
    const long long i = thread_index(), pixels = static_cast<long long>(batch) * height * width;
    if (i < pixels * channels) {
        heavy[i] = dense[i];
        detail[i] = from_float(0.0f);
    }
    if (i < pixels) alpha[i] = from_float(Gate{gate_boundary, gate_uncertainty, gate_bias}.alpha(boundary[i], uncertainty[i]));
    // The grid covers the map, which may be smaller than the states.
    for (long long s = i; s < states_len; s += static_cast<long long>(gridDim.x) * blockDim.x) states[s] = 0.0f;
}

// tokens [B, K, C].
extern "C" __global__ void ff_tokens_reference(const source* __restrict__ map, const int* __restrict__ ids, int batch,
                                               int tiles, int channels, int height, int width, int tile,
                                               float* __restrict__ tokens) {
    const long long i = thread_index();
    if (i >= static_cast<long long>(batch) * tiles * channels) return;
    const int c = i % channels;
    const long long slot = i / channels, b = slot / tiles;
    const source* corner =
        map + (b * channels + c) * static_cast<long long>(height) * width + tile_corner(ids[slot], tile, width);
    float sum = 0.0f;
    for (int y = 0; y < tile; ++y) {
        for (int x = 0; x < tile; ++x) sum += widen(corner[static_cast<long long>(y) * width + x]);
    }
    tokens[i] = sum / (tile * tile);
}

// One thread per sample and channel; mixed [B, K, C], states as in ff_refine_fast.
extern "C" __global__ void ff_scan_reference(const float* __restrict__ tokens, const float* __restrict__ scan, int batch,
                                             int tiles, int channels, float* __restrict__ mixed, float* __restrict__ states,
                                             int state_stride) {
    const long long i = thread_index();
    if (i >= static_cast<long long>(batch) * channels) return;
    const int c = i % channels;
    const long long b = i / channels;
    const Scan forward(scan, 0, channels, c), backward(scan, 1, channels, c);
    const float gate = merge_gate(scan, channels, c);
    float state = 0.0f;
    for (int k = 0; k < tiles; ++k) {
        const long long at = (b * tiles + k) * channels + c;
        state = forward.step(state, tokens[at]);
        mixed[at] = gate * (forward.output_gain * state);
    }
    states[b * state_stride + c] = state;
    state = 0.0f;
    for (int k = tiles - 1; k >= 0; --k) {
        const long long at = (b * tiles + k) * channels + c;
        state = backward.step(state, tokens[at]);
        mixed[at] += (1.0f - gate) * (backward.output_gain * state);
    }
    states[b * state_stride + channels + c] = state;
}

// hidden [B * K, C] = SiLU of the first linear layer of the layer norm. Every thread takes the moments again.
extern "C" __global__ void ff_hidden_reference(const float* __restrict__ mixed, const elem* __restrict__ weights,
                                               int slots, int channels, float* __restrict__ hidden) {
    const long long i = thread_index();
    if (i >= static_cast<long long>(slots) * channels) return;
    const Weights w = {weights, channels};
    const int o = i % channels;
    const float* tokens = mixed + i / channels * channels;
    float sum = 0.0f, squares = 0.0f, dot = 0.0f;
    for (int c = 0; c < channels; ++c) sum += clean_mixed(tokens[c]);
    const float mean = sum / channels;
    for (int c = 0; c < channels; ++c) {
        const float distance = clean_mixed(tokens[c]) - mean;
        squares += distance * distance;
    }
    const float inverse = rsqrtf(squares / channels + NORM_EPS);
    for (int c = 0; c < channels; ++c) {
        const float normed = (clean_mixed(tokens[c]) - mean) * inverse;
        const float input = normed * to_float(w.token_norm_weight()[c]) + to_float(w.token_norm_bias()[c]);
        dot += to_float(w.mlp0_weight()[static_cast<long long>(o) * channels + c]) * input;
    }
    dot += to_float(w.mlp0_bias()[o]);
    hidden[i] = dot * sigmoid(dot);
}

// film [B * K, 2C]: gamma with its tanh, beta.
extern "C" __global__ void ff_film_reference(const float* __restrict__ hidden, const elem* __restrict__ weights,
                                             int slots, int channels, float* __restrict__ film) {
    const long long i = thread_index();
    if (i >= static_cast<long long>(slots) * 2 * channels) return;
    const Weights w = {weights, channels};
    const int o = i % (2 * channels);
    const float* input = hidden + i / (2 * channels) * channels;
    float dot = to_float(w.mlp2_bias()[o]);
    for (int c = 0; c < channels; ++c) dot += to_float(w.mlp2_weight()[static_cast<long long>(o) * channels + c]) * input[c];
    film[i] = o < channels ? tanhf(dot) : dot;
}

// modulated [B * K, C, t, t] = (1 + gamma) * tile + beta.
extern "C" __global__ void ff_modulate_reference(const source* __restrict__ map, const int* __restrict__ ids,
                                                 const float* __restrict__ film, int batch, int tiles, int channels,
                                                 int height, int width, int tile, float* __restrict__ modulated) {
    const long long i = thread_index(), area = tile * tile;
    if (i >= static_cast<long long>(batch) * tiles * channels * area) return;
    const int x = i % tile, y = i / tile % tile, c = i / area % channels;
    const long long slot = i / area / channels, b = slot / tiles;
    const long long at = (b * channels + c) * static_cast<long long>(height) * width + tile_corner(ids[slot], tile, width);
    const float* gamma = film + slot * 2 * channels;
    modulated[i] = (1.0f + gamma[c]) * widen(map[at + static_cast<long long>(y) * width + x]) + gamma[channels + c];
}

// convolved [B * K, C, t, t]. Outside the tile is zero, even where the map has neighbours.
extern "C" __global__ void ff_depthwise_reference(const float* __restrict__ modulated, const elem* __restrict__ weights,
                                                  int slots, int channels, int tile, float* __restrict__ convolved) {
    const long long i = thread_index(), area = tile * tile;
    if (i >= static_cast<long long>(slots) * channels * area) return;
    const Weights w = {weights, channels};
    const int x = i % tile, y = i / tile % tile, c = i / area % channels;
    float sum = to_float(w.depthwise_bias()[c]);
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            if (y + dy < 0 || y + dy >= tile || x + dx < 0 || x + dx >= tile) continue;
            sum += to_float(w.depthwise_weight()[c * 9 + (dy + 1) * 3 + dx + 1]) * modulated[i + dy * tile + dx];
        }
    }
    convolved[i] = sum;
}

// wide [B * K, 2C, t, t].
extern "C" __global__ void ff_pointwise_reference(const float* __restrict__ convolved, const elem* __restrict__ weights,
                                                  int slots, int channels, int tile, float* __restrict__ wide) {
    const long long i = thread_index(), area = tile * tile;
    if (i >= static_cast<long long>(slots) * 2 * channels * area) return;
    const Weights w = {weights, channels};
    const int o = i / area % (2 * channels);
    const float* input = convolved + i / area / (2 * channels) * channels * area + i % area;
    float sum = to_float(w.pointwise_bias()[o]);
    for (int c = 0; c < channels; ++c) sum += to_float(w.pointwise_weight()[static_cast<long long>(o) * channels + c]) * input[c * area];
    wide[i] = sum;
}

// moments [B * K, 2]: mean and inverse deviation over all of a tile's wide. One block per tile, at most 1024 threads; the
// same order of additions whenever the block has the same size.
extern "C" __global__ void ff_moments_reference(const float* __restrict__ wide, int channels, int tile,
                                                float* __restrict__ moments) {
    __shared__ double partial[1024];
    const long long len = static_cast<long long>(2) * channels * tile * tile;
    const float* values = wide + blockIdx.x * len;
    double mean = 0.0;
    for (int pass = 0; pass < 2; ++pass) {
        double sum = 0.0;
        for (long long i = threadIdx.x; i < len; i += blockDim.x) {
            const double distance = values[i] - mean;
            sum += pass == 0 ? distance : distance * distance;
        }
        __syncthreads();
        partial[threadIdx.x] = sum;
        __syncthreads();
        double total = 0.0;
        for (int i = 0; i < static_cast<int>(blockDim.x); ++i) total += partial[i];
        if (pass == 0) mean = total / len;
        else if (threadIdx.x == 0) {
            moments[2 * blockIdx.x] = mean;
            moments[2 * blockIdx.x + 1] = 1.0 / sqrt(total / len + NORM_EPS);
        }
    }
}

// GroupNorm, gate, residual, override and fusion gate, one thread per pixel and channel of a tile. detail and unrounded
// may be null.
extern "C" __global__ void ff_fuse_reference(const source* __restrict__ map, const int* __restrict__ ids,
                                             const float* __restrict__ modulated, const float* __restrict__ wide,
                                             const float* __restrict__ moments, const elem* __restrict__ weights, int batch,
                                             int tiles, int channels, int height, int width, int tile,
                                             const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                                             float gate_boundary, float gate_uncertainty, float gate_bias,
                                             elem* __restrict__ heavy, elem* __restrict__ detail,
                                             float* __restrict__ unrounded) {
    const long long i = thread_index(), area = tile * tile, plane = static_cast<long long>(height) * width;
    if (i >= static_cast<long long>(batch) * tiles * channels * area) return;
    const Weights w = {weights, channels};
    const int x = i % tile, y = i / tile % tile, c = i / area % channels;
    const long long slot = i / area / channels, b = slot / tiles;
    const long long pixel = tile_corner(ids[slot], tile, width) + static_cast<long long>(y) * width + x;
    const long long at = (b * channels + c) * plane + pixel;
    float normed[2];
    for (int half = 0; half < 2; ++half) {
        const int o = half * channels + c;
        const float value = wide[(slot * 2 * channels + o) * area + i % area];
        normed[half] = (value - moments[2 * slot]) * moments[2 * slot + 1];
        normed[half] = normed[half] * to_float(w.norm_weight()[o]) + to_float(w.norm_bias()[o]);
    }
    const float refined = modulated[i] + normed[0] * relu(normed[1]);
    const Gate gate = {gate_boundary, gate_uncertainty, gate_bias};
    const float base = widen(map[at]), alpha = gate.alpha(boundary[b * plane + pixel], uncertainty[b * plane + pixel]);
    const float fused = base + alpha * (refined - base);
    heavy[at] = from_float(fused);
    if (detail) detail[at] = from_float(fused - base);
    if (unrounded) unrounded[at] = fused;
}
