// fused_pack_op_unpack: out = (vs*x + vb) * max(0, gs*x + gb) on every pixel of the tiles indices[b,k] (id =
// ty*(W/t)+tx, int32 [B,K], each at most once per row), out = x elsewhere. feature and out [B,C,H,W] are separate
// buffers; H and W are multiples of t. In fp32, rounded once; NaN stays NaN.
// Bytes: 2*B*C*H*W*sizeof(elem). Flops: at most 5 per pixel.
//
// Fast: a block takes one row of tiles (at most CELLS of them) and a span of channels. It marks the selected cells of
// this row in shared memory while its first units are already on their way; then each thread keeps one unit position,
// reads its mark once, and walks over ITEMS channels, ROUNDS times.
// Launch: block THREADS, no dynamic shared memory; with n = min(W/t, CELLS), u = n*t*t*sizeof(elem)/unit bytes and
// span = max(1, THREADS/u)*ITEMS*ROUNDS the grid is B*(H/t)*ceil(W/t/n)*ceil(C/span). Any other grid is right, too.
// The reference takes 256 threads per block and any grid. Limits: W*t and the fast grid below 2^31.
#include "units.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef ROUNDS
#define ROUNDS 1
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

template <int N>
__device__ __forceinline__ void apply(const elem* __restrict__ feature, const int* __restrict__ indices,
                                      elem* __restrict__ out, const Sizes& s, const Affine& op, bool* marks)
{
    const int tile = TILE ? TILE : s.tile;
    const int row = tile / N, plane = tile * row;
    const int grid_width = s.width / tile, grid_height = s.height / tile;
    const int cells = min(grid_width, CELLS);
    const int slots = max(1, THREADS / (cells * plane)), lanes = THREADS / slots;
    const int slot = threadIdx.x / lanes;
    const int span = slots * ITEMS * ROUNDS;
    const unsigned parts = (grid_width + cells - 1) / cells;
    const unsigned spans = (s.channels + span - 1) / span;
    const unsigned works = s.batch * grid_height * parts * spans;
    const int pitch = s.width / N;
    const long long map = (long long)s.height * pitch;

    for (unsigned work = blockIdx.x; work < works; work += gridDim.x) {
        unsigned rest = work / spans;
        const int c_first = (work - rest * spans) * span + slot;
        const int part = rest % parts;
        rest /= parts;
        const int b = rest / grid_height, ty = rest - b * grid_height;
        const int tx_first = part * cells, cells_here = min(cells, grid_width - tx_first);
        const int units = cells_here * row;
        const int p_first = slot < slots ? threadIdx.x - slot * lanes : units * tile;
        const long long corner = ((long long)b * s.channels * s.height + (long long)ty * tile) * pitch +
                                 (long long)tx_first * row;
        Word<N> value[ITEMS];
        auto load = [&](long long at, int c) {
#pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (c + i * slots < s.channels) value[i] = __ldg(words<N>(feature) + at + i * slots * map);
        };
        auto offset = [&](int p) { return corner + c_first * map + (long long)(p / units) * pitch + p % units; };
        if (p_first < units * tile) load(offset(p_first), c_first);

        for (int i = threadIdx.x; i < cells_here; i += THREADS) marks[i] = false;
        __syncthreads();
        for (int k = threadIdx.x; k < s.tiles; k += THREADS) {
            const int cell = __ldg(indices + (long long)b * s.tiles + k) - (ty * grid_width + tx_first);
            if ((unsigned)cell < (unsigned)cells_here) marks[cell] = true;
        }
        __syncthreads();

        for (int p = p_first; p < units * tile; p += lanes) {
            const bool marked = marks[p % units / row];
            long long at = offset(p);
            for (int round = 0; round < ROUNDS; ++round, at += ITEMS * slots * map) {
                const int c = c_first + round * slots * ITEMS;
                if (p != p_first || round > 0) load(at, c);
#pragma unroll
                for (int i = 0; i < ITEMS; ++i) {
                    if (c + i * slots >= s.channels) continue;
                    if (marked) {
                        float x[N];
                        to_floats<N>(value[i], x);
#pragma unroll
                        for (int j = 0; j < N; ++j) x[j] = op(x[j]);
                        value[i] = from_floats<N>(x);
                    }
                    words<N>(out)[at + i * slots * map] = value[i];
                }
            }
        }
        __syncthreads();
    }
}

// Takes the widest unit that fits.
template <int N>
__device__ __forceinline__ void apply_widest(const elem* __restrict__ feature, const int* __restrict__ indices,
                                             elem* __restrict__ out, const Sizes& s, const Affine& op, bool* marks,
                                             size_t bits)
{
    if constexpr (N == 1) {
        apply<1>(feature, indices, out, s, op, marks);
    } else if (bits % (N * sizeof(elem)) == 0) {
        apply<N>(feature, indices, out, s, op, marks);
    } else {
        apply_widest<N / 2>(feature, indices, out, s, op, marks, bits);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
fused_pack_op_unpack_fast(const elem* __restrict__ feature, const int* __restrict__ indices, elem* __restrict__ out,
                          int batch, int channels, int height, int width, int tiles, int tile, float value_scale,
                          float value_bias, float gate_scale, float gate_bias)
{
    __shared__ bool marks[CELLS];
    const size_t bits = (TILE ? TILE : tile) * sizeof(elem) | address_bits(feature) | address_bits(out);
    apply_widest<PACK>(feature, indices, out, Sizes{batch, channels, height, width, tiles, tile},
                       Affine{value_scale, value_bias, gate_scale, gate_bias}, marks, bits);
}
