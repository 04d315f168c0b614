// What the programs of the FF path share: where the weights lie, how dirty numbers are cleaned, loads of a few columns.
#pragma once

#include "common.cuh"

// Type of the map that a level reads: elem for level 0, float for a level that takes the unrounded result of the one
// before it.
#if defined(SOURCE_F32)
typedef float source;
#else
typedef elem source;
#endif

constexpr float TOKEN_LIMIT = 1e4f;
constexpr float NORM_EPS = 1e-5f;

// A path's weights are one array of elem, matrices row-major [out, in], in this order. Numbers of elements before each
// part, for C channels; all parts start at a multiple of C.
struct Weights {
    const elem* base;
    int c;
    __device__ __forceinline__ const elem* part(int vectors, int squares) const {
        return base + vectors * c + squares * c * c;
    }
    __device__ __forceinline__ const elem* token_norm_weight() const { return part(0, 0); }
    __device__ __forceinline__ const elem* token_norm_bias() const { return part(1, 0); }
    __device__ __forceinline__ const elem* mlp0_weight() const { return part(2, 0); }
    __device__ __forceinline__ const elem* mlp0_bias() const { return part(2, 1); }
    __device__ __forceinline__ const elem* mlp2_weight() const { return part(3, 1); }
    __device__ __forceinline__ const elem* mlp2_bias() const { return part(3, 3); }
    __device__ __forceinline__ const elem* depthwise_weight() const { return part(5, 3); }
    __device__ __forceinline__ const elem* depthwise_bias() const { return part(14, 3); }
    __device__ __forceinline__ const elem* pointwise_weight() const { return part(15, 3); }
    __device__ __forceinline__ const elem* pointwise_bias() const { return part(15, 5); }
    __device__ __forceinline__ const elem* norm_weight() const { return part(17, 5); }
    __device__ __forceinline__ const elem* norm_bias() const { return part(19, 5); }
};

// One direction's scan parameters out of the array [9, C]: decay, input gain, output gain, state bias of the forward
// pass, the same four of the backward pass, merge gate.
struct Scan {
    float decay, input_gain, output_gain, bias;
    __device__ __forceinline__ Scan(const float* scan, int direction, int channels, int c) {
        const float* at = scan + static_cast<size_t>(4 * direction) * channels + c;
        decay = fminf(fmaxf(at[0], 1e-6f), 1.0f - 1e-6f);
        input_gain = at[channels];
        output_gain = at[2 * channels];
        bias = at[3 * channels];
    }
    // What a token adds to the state. NaN counts as 0; fmaxf and fminf would turn it into a limit.
    __device__ __forceinline__ float input(float token) const {
        const float limited = fminf(fmaxf(token, -TOKEN_LIMIT), TOKEN_LIMIT), x = token == token ? limited : 0.0f;
        return (1.0f - decay) * (input_gain * x + bias);
    }
    __device__ __forceinline__ float step(float state, float token) const { return decay * state + input(token); }
};

__device__ __forceinline__ float merge_gate(const float* scan, int channels, int c) {
    return fminf(fmaxf(scan[static_cast<size_t>(8) * channels + c], 0.0f), 1.0f);
}

// v where it is finite, `infinite` in place of an infinity, 0 in place of NaN.
__device__ __forceinline__ float finite_or(float v, float infinite) {
    const float other = v == v ? infinite : 0.0f;
    return fabsf(v) <= 3.402823466e38f ? v : other;
}

// Before the layer norm only what is not finite changes.
__device__ __forceinline__ float clean_mixed(float v) { return finite_or(v, copysignf(TOKEN_LIMIT, v)); }

__device__ __forceinline__ float clean_proxy(float v) { return finite_or(v, v > 0.0f ? 1.0f : 0.0f); }

__device__ __forceinline__ float sigmoid(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }

// Weights are the softplus of the learned numbers.
struct Gate {
    float boundary, uncertainty, bias;
    __device__ __forceinline__ float alpha(elem at_boundary, elem at_uncertainty) const {
        float b = clean_proxy(to_float(at_boundary)), u = clean_proxy(to_float(at_uncertainty));
        return sigmoid(boundary * b + uncertainty * u + bias);
    }
};

// NaN stays NaN.
__device__ __forceinline__ float relu(float v) { return v < 0.0f ? 0.0f : v; }

template <typename T>
__device__ __forceinline__ float widen(T v) {
    return static_cast<float>(v);
}

template <typename T, int N>
struct alignas(sizeof(T) * N) Few {
    T at[N];
};

// Columns of a tile that one thread takes together: as many as divide the tile's edge, at most 8.
__device__ constexpr int columns_of(int tile) { return tile % 8 == 0 ? 8 : tile % 4 == 0 ? 4 : tile % 2 == 0 ? 2 : 1; }

// Elements of one load of T within N columns.
template <typename T, int N>
__device__ constexpr int load_width() {
    return N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
}

// Rows of a map are a multiple of the tile's edge long, so its base alone decides whether all loads are aligned.
template <typename T, int N>
__device__ __forceinline__ bool aligned(const T* map) {
    return reinterpret_cast<size_t>(map) % (load_width<T, N>() * sizeof(T)) == 0;
}

// N neighbours of a row, in loads of up to 16 bytes if `vector`.
template <typename T, int N>
__device__ __forceinline__ void load_columns(const T* __restrict__ from, bool vector, T (&to)[N]) {
    constexpr int W = load_width<T, N>();
    if (vector) {
#pragma unroll
        for (int i = 0; i < N; i += W) {
            Few<T, W> few = *reinterpret_cast<const Few<T, W>*>(from + i);
#pragma unroll
            for (int j = 0; j < W; ++j) to[i + j] = few.at[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = from[i];
    }
}

// The same for stores.
template <typename T, int N>
__device__ __forceinline__ void store_columns(T* __restrict__ to, bool vector, const float (&from)[N]) {
    constexpr int W = load_width<T, N>();
#pragma unroll
    for (int i = 0; i < N; i += W) {
        Few<T, W> few;
#pragma unroll
        for (int j = 0; j < W; ++j) few.at[j] = static_cast<T>(from[i + j]);
        if (vector) *reinterpret_cast<Few<T, W>*>(to + i) = few;
#pragma unroll
        for (int j = 0; j < W; ++j) {
            if (!vector) to[i + j] = few.at[j];
        }
    }
}

// Launched with programmatic serialization, a kernel starts while the one before it in the stream still runs: everything but
// weights must wait. Launched plainly, both do nothing.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// First element of a tile in one channel's plane.
__device__ __forceinline__ int tile_corner(int id, int tile, int width) {
    int columns = width / tile;
    return (id / columns * width + id % columns) * tile;
}
