// Constants of ff_refine.cu, what follows from them, and the shared memory of a block.
#pragma once

#ifndef CHANNELS
#define CHANNELS 128
#endif
#ifndef TILE
#define TILE 16
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef CLUSTER
#if __CUDA_ARCH__ < 900
#define CLUSTER 1
#elif TILE <= 8 && CHANNELS <= 256
#define CLUSTER 2
#elif TILE <= 16 && CHANNELS <= 128
#define CLUSTER 4
#else
#define CLUSTER 8
#endif
#endif
#ifndef ROWS
#define ROWS default_rows()
#endif
#ifndef SPLIT
#if defined(ELEM_F16) || defined(ELEM_BF16)
#define SPLIT 1
#else
#define SPLIT 0
#endif
#endif
#ifndef ALIGNED
#define ALIGNED 1
#endif

#include "ff_film.cuh"

constexpr bool HALF = sizeof(elem) == 2;
static_assert(CHANNELS % 16 == 0, "channels must be a multiple of 16");
static_assert(THREADS == 128 || THREADS == 256 || THREADS == 512, "unsupported number of threads");
static_assert(CLUSTER == 1 || CLUSTER == 2 || CLUSTER == 4 || CLUSTER == 8, "unsupported cluster");
static_assert(HALF || !SPLIT, "fp32 is not split");

// About 64 pixels, fewer if there are many channels or blocks enough; half of that where a block takes a larger tile alone.
__device__ constexpr int default_rows() {
    int pixels = 64 * 128 / (CHANNELS > 128 ? CHANNELS : 128);
    if (CLUSTER == 1 && TILE * TILE > pixels) pixels /= 2;
    const int rows = least(pixels / TILE, ceil_div(TILE, CLUSTER));
    return rows > 0 ? rows : 1;
}

__device__ constexpr int power_below(int n) {
    int p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

// Channels c and CHANNELS + c must meet in one thread, so warps take 16 of the first half with the same 16 of the second.
constexpr int PAIRS = CHANNELS / 16, WARPS_M = power_below(least(WARPS, PAIRS)), WARPS_N = WARPS / WARPS_M;
constexpr int PAIRS_PER_WARP = ceil_div(PAIRS, WARPS_M);
constexpr int CHUNKS = ceil_div(TILE, ROWS), PIXELS = ROWS * TILE;
// Groups of 8 pixels, the width of one tensor-core product.
constexpr int GROUPS_PER_WARP = ceil_div(ceil_div(PIXELS, 8), WARPS_N), SLOTS = WARPS_N * GROUPS_PER_WARP * 8;
constexpr bool ONE_PASS = CHUNKS <= CLUSTER;
// Whether every thread has all of its pairs, and all of its pixels in every chunk.
constexpr bool ALL_PAIRS = PAIRS == WARPS_M * PAIRS_PER_WARP, ALL_PIXELS = SLOTS == PIXELS && TILE % ROWS == 0;

// Depth of the product in shared memory, and a row's length there: neighbouring rows start half of the banks apart (16-bit),
// every second row 8 banks (fp32).
constexpr int DEPTH = HALF ? ceil_div(CHANNELS, 32) * 32 : CHANNELS;
constexpr int STRIDE = HALF ? DEPTH + (DEPTH % 64 == 0 ? 32 : 0) : DEPTH + 4;

// A thread convolves COLUMNS columns of BAND rows of one channel: one load each if that leaves no thread with two strips.
__device__ constexpr int strip_columns() {
    constexpr int ONE_LOAD = load_width<source, columns_of(TILE)>();
    return CHANNELS * (TILE / ONE_LOAD) <= THREADS ? ONE_LOAD : columns_of(TILE);
}
constexpr int COLUMNS = strip_columns(), STRIPS = TILE / COLUMNS;
// Whether the neighbours of a strip in its row lie in the next lanes.
constexpr bool NEIGHBOURS = STRIPS > 1 && 32 % STRIPS == 0;
__device__ constexpr int band_rows() {
    for (int band = ROWS; band > 1; --band) {
        if (ROWS % band == 0 && CHANNELS * STRIPS * (ROWS / band) >= THREADS) return band;
    }
    return 1;
}
constexpr int BAND = band_rows(), ITEMS = CHANNELS * STRIPS * (ROWS / BAND);

// Results of the product go through shared memory back to the threads that hold the strips, one round per pair of a warp.
// Rows 8 banks apart: the threads of four rows write without conflicts.
constexpr int ROUND_CHANNELS = WARPS_M * 16, ROUND_ITEMS = ROUND_CHANNELS * STRIPS * (ROWS / BAND);
constexpr int GATED_STRIDE = SLOTS + (40 - SLOTS % 32) % 32;
// Whether each thread has at most one strip and one pixel, which can then be loaded at the very start and kept.
constexpr bool LOADED = ONE_PASS && PAIRS_PER_WARP == 1 && ALL_PAIRS && ITEMS <= THREADS && PIXELS <= THREADS;

struct Shared {
    // Gated values are written when all products have been read.
    union {
        alignas(16) elem x[1 + SPLIT][SLOTS][STRIDE];
        alignas(16) float gated[ROUND_CHANNELS][GATED_STRIDE];
    };
    Tokens tokens;
    Mail mail;
    // Count, mean and sum of squared distances of each warp's products.
    float counts[CHUNKS * WARPS], means[CHUNKS * WARPS], squares[CHUNKS * WARPS];
    float alpha[SLOTS];
};
static_assert(sizeof(Shared) <= 48 * 1024, "too many pixels or channels for static shared memory");

__device__ __forceinline__ int chunk_pixels(int chunk) { return TILE % ROWS == 0 ? PIXELS : least(ROWS, TILE - chunk * ROWS) * TILE; }
