// fused_pack_op_unpack: out = (vs*x + vb) * max(0, gs*x + gb) on every pixel of the tiles indices[b,k] (id =
// ty*(W/t)+tx, int32 [B,K], each at most once per row), out = x elsewhere. feature and out [B,C,H,W] are separate
// buffers; H and W are multiples of t. In fp32, rounded once; NaN stays NaN.
// Bytes: 2*B*C*H*W*sizeof(elem). Flops: at most 5 per pixel.
//
// Fast: a block takes one row of tiles (CELLS of them at a time) and a span of channels. It marks the selected cells of
// this row in shared memory while its first units are already on their way; then each thread keeps one unit of the
// row, reads its mark once, and walks over ITEMS channels. A unit is the widest power of two of bytes, at most 16, that
// divides a tile row and both addresses.
// Launch: no dynamic shared memory; block (x, y, z) with x = min(units of min(W/t, CELLS)*t elements, THREADS),
// y = min(t, THREADS/x), z = THREADS/(x*y); grid (H/t*ceil(W/t/CELLS), ceil(C/(z*ITEMS)), B). Any other grid, and any other block of
// THREADS threads or fewer, is right, too. The reference takes 256 threads per block and any grid.
// Limits: W*t and the grids below 2^31.
#include "units.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
// Blocks that must fit a multiprocessor: bounds the registers.
#ifndef BLOCKS
#define BLOCKS (768 / THREADS)
#endif
// Tile edge; 0 takes it from the argument.
#ifndef TILE
#define TILE 0
#endif

constexpr int CELLS = 1024;

struct Sizes {
    int batch, channels, height, width, tiles, tile;
};

struct Affine {
    float value_scale, value_bias, gate_scale, gate_bias;
    __device__ __forceinline__ float operator()(float x) const
    {
        const float gate = gate_scale * x + gate_bias;
        // Not fmaxf, which would turn a NaN into 0.
        return (value_scale * x + value_bias) * (gate < 0.0f ? 0.0f : gate);
    }
};

extern "C" __global__ void __launch_bounds__(256)
fused_pack_op_unpack_reference(const elem* __restrict__ feature, const int* __restrict__ indices,
                               elem* __restrict__ out, int batch, int channels, int height, int width, int tiles,
                               int tile, float value_scale, float value_bias, float gate_scale, float gate_bias)
{
    const Affine op{value_scale, value_bias, gate_scale, gate_bias};
    const long long count = (long long)batch * channels * height * width;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        const int x = at % width, y = at / width % height;
        const long long b = at / width / height / channels;
        const int id = y / tile * (width / tile) + x / tile;
        bool selected = false;
        for (int k = 0; k < tiles; ++k) selected |= indices[b * tiles + k] == id;
        out[at] = selected ? from_float(op(to_float(feature[at]))) : feature[at];
    }
}

// ITEMS channels of one unit, from channel c on.
template <int N>
struct Units {
    Word<N> at[ITEMS];

    __device__ __forceinline__ void load(const Word<N>* from, long long step, int c, int channels)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
            if (c + i * blockDim.z < channels) at[i] = __ldg(from + i * step);
    }
    __device__ __forceinline__ void apply(const Affine& op)
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            float x[N];
            to_floats<N>(at[i], x);
#pragma unroll
            for (int j = 0; j < N; ++j) x[j] = op(x[j]);
            at[i] = from_floats<N>(x);
        }
    }
    __device__ __forceinline__ void store(Word<N>* to, long long step, int c, int channels) const
    {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
            if (c + i * blockDim.z < channels) to[i * step] = at[i];
    }
};

__device__ __forceinline__ void mark_cells(bool* marks, const int* __restrict__ indices, int tiles, int id_first,
                                           int cells)
{
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    __syncthreads();
    for (int i = thread; i < cells; i += threads) marks[i] = false;
    __syncthreads();
    for (int k = thread; k < tiles; k += threads) {
        const int cell = __ldg(indices + k) - id_first;
        if ((unsigned)cell < (unsigned)cells) marks[cell] = true;
    }
    __syncthreads();
}

template <int N>
__device__ __forceinline__ void apply_cells(const elem* __restrict__ feature, const int* __restrict__ indices,
                                            elem* __restrict__ out, const Sizes& s, const Affine& op, bool* marks)
{
    const int tile = TILE ? TILE : s.tile;
    const int row = tile / N, pitch = s.width / N;
    const int grid_width = s.width / tile, cells = min(grid_width, CELLS), parts = (grid_width + cells - 1) / cells;
    const int bands = s.height / tile * parts;
    const long long map = (long long)s.height * pitch, step = blockDim.z * map;
    const int c_first = blockIdx.y * blockDim.z * ITEMS + threadIdx.z;
    for (int b = blockIdx.z; b < s.batch; b += gridDim.z) {
        for (int band = blockIdx.x; band < bands; band += gridDim.x) {
            const int ty = parts == 1 ? band : band / parts, tx_first = (band - ty * parts) * cells;
            const int cells_here = min(cells, grid_width - tx_first);
            const long long corner = (long long)b * s.channels * map + (long long)ty * tile * pitch +
                                     (long long)tx_first * row;
            const auto offset = [&](int c, int dy, int ux) { return corner + c * map + (long long)dy * pitch + ux; };
#if EARLY
            Units<N> values;
            bool loaded = c_first < s.channels && threadIdx.y < tile && threadIdx.x < cells_here * row;
            if (loaded)
                values.load(words<N>(feature) + offset(c_first, threadIdx.y, threadIdx.x), step, c_first, s.channels);
#endif
            mark_cells(marks, indices + (long long)b * s.tiles, s.tiles, ty * grid_width + tx_first, cells_here);

#pragma unroll 1
            for (int c = c_first; c < s.channels; c += gridDim.y * blockDim.z * ITEMS) {
#pragma unroll 1
                for (int dy = threadIdx.y; dy < tile; dy += blockDim.y) {
#pragma unroll 1
                    for (int ux = threadIdx.x; ux < cells_here * row; ux += blockDim.x) {
                        const long long at = offset(c, dy, ux);
#if EARLY
                        if (!loaded) values.load(words<N>(feature) + at, step, c, s.channels);
                        loaded = false;
#else
                        Units<N> values;
                        values.load(words<N>(feature) + at, step, c, s.channels);
#endif
                        if (marks[ux / row]) values.apply(op);
                        values.store(words<N>(out) + at, step, c, s.channels);
                    }
                }
            }
        }
    }
}

// Takes the widest unit that fits.
template <int N>
__device__ __forceinline__ void apply_widest(const elem* __restrict__ feature, const int* __restrict__ indices,
                                             elem* __restrict__ out, const Sizes& s, const Affine& op, bool* marks,
                                             size_t bits)
{
    if constexpr (N == 1) {
        apply_cells<1>(feature, indices, out, s, op, marks);
    } else if (bits % (N * sizeof(elem)) == 0) {
        apply_cells<N>(feature, indices, out, s, op, marks);
    } else {
        apply_widest<N / 2>(feature, indices, out, s, op, marks, bits);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
fused_pack_op_unpack_fast(const elem* __restrict__ feature, const int* __restrict__ indices, elem* __restrict__ out,
                          int batch, int channels, int height, int width, int tiles, int tile, float value_scale,
                          float value_bias, float gate_scale, float gate_bias)
{
    __shared__ bool marks[CELLS];
    const size_t bits = (TILE ? TILE : tile) * sizeof(elem) | address_bits(feature) | address_bits(out);
    apply_widest<widest_unit(TILE)>(feature, indices, out, Sizes{batch, channels, height, width, tiles, tile},
                                    Affine{value_scale, value_bias, gate_scale, gate_bias}, marks, bits);
}
