// tile_pack: out[b,k,c,dy,dx] = feature[b,c,y+dy,x+dx], (y,x) the corner of tile indices[b,k] (id = ty*(W/t)+tx).
// feature [B,C,H,W], indices int32 [B,K] as given, out [B,K,C,t,t]; H and W are multiples of t. A bit copy.
// Bytes: 2*B*K*C*t*t*sizeof(elem). No arithmetic. Checked bit for bit.
//
// Fast: a unit is the widest power of two of bytes, at most 16, that divides a tile row and both addresses. A block
// takes GROUP neighbouring tiles and a span of channels. A thread keeps one unit position of one of these tiles and
// walks over ITEMS channels: addresses cost two additions per unit, and all its reads are under way together.
// With GROUP > 1 a warp holds rows of several tiles, so tiles that lie side by side share the sectors they read.
//
// Launch: block THREADS, no dynamic shared memory; with u = t*t*sizeof(elem)/unit bytes and
// span = max(1, THREADS/(GROUP*u))*ITEMS the grid is B*ceil(K/GROUP)*ceil(C/span). Any other grid is right, too.
// The reference takes 256 threads per block and any grid. Limits: GROUP*t*t and the fast grid below 2^31.
#include "units.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
#ifndef GROUP
#define GROUP 1
#endif
// Tile edge; 0 takes it from the argument.
#ifndef TILE
#define TILE 0
#endif

struct Sizes {
    int batch, channels, height, width, tiles, tile;
};

extern "C" __global__ void __launch_bounds__(256)
tile_pack_reference(const elem* __restrict__ feature, const int* __restrict__ indices, elem* __restrict__ out,
                    int batch, int channels, int height, int width, int tiles, int tile)
{
    const long long count = (long long)batch * tiles * channels * tile * tile;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        long long rest = at;
        const int dx = rest % tile;
        rest /= tile;
        const int dy = rest % tile;
        rest /= tile;
        const int c = rest % channels;
        rest /= channels;
        const int id = indices[rest];
        const long long b = rest / tiles;
        const int y = id / (width / tile) * tile + dy, x = id % (width / tile) * tile + dx;
        out[at] = feature[((b * channels + c) * height + y) * width + x];
    }
}

template <int N>
__device__ __forceinline__ void gather(const elem* __restrict__ feature, const int* __restrict__ indices,
                                       elem* __restrict__ out, const Sizes& s)
{
    const int tile = TILE ? TILE : s.tile;
    const int row = tile / N;
    const int plane = tile * row;
    const int positions = GROUP * plane;
    const int lanes = min(positions, THREADS);
    const int slots = THREADS / lanes, slot = threadIdx.x / lanes;
    if (slot >= slots) return;

    const unsigned groups = (s.tiles + GROUP - 1) / GROUP;
    const unsigned spans = (s.channels + slots * ITEMS - 1) / (slots * ITEMS);
    const unsigned works = s.batch * groups * spans;
    const int pitch = s.width / N, grid_width = s.width / tile;
    const long long map = (long long)s.height * pitch;
    for (unsigned work = blockIdx.x; work < works; work += gridDim.x) {
        const unsigned rest = work / spans;
        const int c = (work - rest * spans) * slots * ITEMS + slot;
        const int b = rest / groups, k_first = (rest - b * groups) * GROUP;
        for (int p = threadIdx.x - slot * lanes; p < positions; p += THREADS) {
            const int k = k_first + p / plane, u = p % plane;
            if (k >= s.tiles) break;
            const long long bk = (long long)b * s.tiles + k;
            const int id = __ldg(indices + bk);
            const int ty = id / grid_width, tx = id - ty * grid_width;
            const int dy = u / row, dx = u - dy * row;
            const Word<N>* from = words<N>(feature) + ((long long)b * s.channels + c) * map +
                                  (long long)(ty * tile + dy) * pitch + tx * row + dx;
            Word<N>* to = words<N>(out) + (bk * s.channels + c) * plane + u;
            Word<N> value[ITEMS];
#pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (c + i * slots < s.channels) value[i] = __ldg(from + i * slots * map);
#pragma unroll
            for (int i = 0; i < ITEMS; ++i)
                if (c + i * slots < s.channels) to[(long long)i * slots * plane] = value[i];
        }
    }
}

// Takes the widest unit that fits.
template <int N>
__device__ __forceinline__ void gather_widest(const elem* __restrict__ feature, const int* __restrict__ indices,
                                              elem* __restrict__ out, const Sizes& s, size_t bits)
{
    if constexpr (N == 1) {
        gather<1>(feature, indices, out, s);
    } else if (bits % (N * sizeof(elem)) == 0) {
        gather<N>(feature, indices, out, s);
    } else {
        gather_widest<N / 2>(feature, indices, out, s, bits);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
tile_pack_fast(const elem* __restrict__ feature, const int* __restrict__ indices, elem* __restrict__ out, int batch,
               int channels, int height, int width, int tiles, int tile)
{
    const size_t bits = (TILE ? TILE : tile) * sizeof(elem) | address_bits(feature) | address_bits(out);
    gather_widest<widest_unit(TILE)>(feature, indices, out, Sizes{batch, channels, height, width, tiles, tile}, bits);
}
