// tile_unpack: lays tiles packed[b,k] ([B,K,C,t,t]) over a copy of base [B,C,H,W], in ascending order of a key.
// Override: the covering tile with the largest key wins. Blend: v = keep*v + take*tile in that order, in fp32, rounded
// once. Two forms: indices int32 [B,K] with keys int32 [B,K] (cells of the grid; a cell may repeat; keys of a row are
// distinct), and origins int32 [B,K,2] as (y,x) with order int32 [B,K], the tile numbers by ascending key, which the
// host sorts once per input set. Origins may lie anywhere inside the map and overlap.
// Bytes, override: base where no tile lies, packed where one wins, and out, each once. Checked bit for bit.
//
// Fast, grid cells: a block takes one row of cells (CELLS of them at a time) and a span of channels. It scans its batch
// row's K ids and leaves in shared memory, per cell, the entry (key, tile) that is largest; then each thread keeps one
// unit of the row, picks its source once, and walks over ITEMS channels. A unit is the widest power of two of bytes,
// at most 16, that divides a tile row and all addresses.
// Launch: no dynamic shared memory; block (x, y, z) with x = min(units of min(W/t, CELLS)*t elements, THREADS),
// y = min(t, THREADS/x), z = THREADS/(x*y); grid (H/t*ceil(W/t/CELLS), ceil(C/(z*ITEMS)), B). Any other grid, and any other block of
// THREADS threads or fewer, is right, too.
//
// Fast, origins: a block takes 32 columns by THREADS/32 rows and SPAN channels; it lists, in order, the tiles that
// touch this rectangle. One thread per pixel. More than LISTED of them: it walks the whole order instead.
// Launch: block THREADS, grid B*ceil(H/(THREADS/32))*ceil(W/32)*ceil(C/SPAN) or any other.
//
// The references take 256 threads per block and any grid. Limits: W*t and the fast grids below 2^31.
#include "units.cuh"

// 1 blends, 0 overrides.
#ifndef BLEND
#define BLEND 0
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 4
#endif
// Tile edge; 0 takes it from the argument.
#ifndef TILE
#define TILE 0
#endif
// Blocks of the grid-cell form that must fit a multiprocessor: bounds its registers.
#ifndef BLOCKS
#define BLOCKS ((BLEND ? 512 : 1024) / THREADS)
#endif
// Channels per block of the origins form.
#ifndef SPAN
#define SPAN 32
#endif

constexpr int CELLS = 256;
constexpr int LISTED = 1024;

struct Sizes {
    int batch, channels, height, width, tiles, tile;
};

// A pixel's coordinates from its offset in the map.
struct Pixel {
    long long b;
    int c, y, x;
    __device__ Pixel(long long at, const Sizes& s)
    {
        x = at % s.width;
        at /= s.width;
        y = at % s.height;
        at /= s.height;
        c = at % s.channels;
        b = at / s.channels;
    }
};

__device__ __forceinline__ elem tile_pixel(const elem* packed, const Sizes& s, const Pixel& p, int k, int dy, int dx)
{
    return packed[(((p.b * s.tiles + k) * s.channels + p.c) * s.tile + dy) * s.tile + dx];
}

extern "C" __global__ void __launch_bounds__(256)
tile_unpack_reference(const elem* __restrict__ base, const elem* __restrict__ packed, const int* __restrict__ indices,
                      const int* __restrict__ keys, elem* __restrict__ out, int batch, int channels, int height,
                      int width, int tiles, int tile, float keep, float take)
{
    const Sizes s{batch, channels, height, width, tiles, tile};
    const long long count = (long long)batch * channels * height * width;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        const Pixel p(at, s);
        const int cell = p.y / tile * (width / tile) + p.x / tile;
        elem value = base[at];
        float blended = to_float(value);
        // Each turn finds the tile of this cell with the next larger key.
        for (long long last = -(1LL << 40);;) {
            long long next = 1LL << 40;
            int tile_next = -1;
            for (int k = 0; k < tiles; ++k) {
                const long long key = keys[p.b * tiles + k];
                if (indices[p.b * tiles + k] == cell && key > last && key < next) {
                    next = key;
                    tile_next = k;
                }
            }
            if (tile_next < 0) break;
            last = next;
            value = tile_pixel(packed, s, p, tile_next, p.y % tile, p.x % tile);
            blended = keep * blended + take * to_float(value);
        }
        out[at] = BLEND ? from_float(blended) : value;
    }
}

extern "C" __global__ void __launch_bounds__(256)
tile_unpack_origins_reference(const elem* __restrict__ base, const elem* __restrict__ packed,
                              const int* __restrict__ origins, const int* __restrict__ order, elem* __restrict__ out,
                              int batch, int channels, int height, int width, int tiles, int tile, float keep,
                              float take)
{
    const Sizes s{batch, channels, height, width, tiles, tile};
    const long long count = (long long)batch * channels * height * width;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        const Pixel p(at, s);
        elem value = base[at];
        float blended = to_float(value);
        for (int i = 0; i < tiles; ++i) {
            const int k = order[p.b * tiles + i];
            const int dy = p.y - origins[(p.b * tiles + k) * 2], dx = p.x - origins[(p.b * tiles + k) * 2 + 1];
            if (dy < 0 || dy >= tile || dx < 0 || dx >= tile) continue;
            value = tile_pixel(packed, s, p, k, dy, dx);
            blended = keep * blended + take * to_float(value);
        }
        out[at] = BLEND ? from_float(blended) : value;
    }
}

// Orders by key, then names the tile. Never 0 and never all ones, which stand for no tile.
typedef unsigned long long Entry;
__device__ __forceinline__ Entry entry(int key, int k)
{
    return (Entry)((unsigned)key ^ 0x80000000u) << 32 | (unsigned)(k + 1);
}
__device__ __forceinline__ int entry_tile(Entry e) { return (int)(unsigned)e - 1; }

// The entry of a cell that follows `last`. Only cells that several tiles share come here.
__device__ __forceinline__ Entry entry_after(Entry last, int id, const int* __restrict__ indices,
                                          const int* __restrict__ keys, int tiles)
{
    Entry next = ~0ull;
    for (int k = 0; k < tiles; ++k) {
        const Entry e = entry(__ldg(keys + k), k);
        if (__ldg(indices + k) == id && e > last && e < next) next = e;
    }
    return next;
}

// Per cell of a part of a row of cells, the largest entry, and where blending asks for it the smallest.
__device__ __forceinline__ void find_entries(Entry* largest, Entry* smallest, const int* __restrict__ indices,
                                             const int* __restrict__ keys, int tiles, int id_first, int cells)
{
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    __syncthreads();
    for (int i = thread; i < cells; i += threads) {
        largest[i] = 0;
        if (BLEND) smallest[i] = ~0ull;
    }
    __syncthreads();
    for (int k = thread; k < tiles; k += threads) {
        const int cell = __ldg(indices + k) - id_first;
        const Entry e = entry(__ldg(keys + k), k);
        if ((unsigned)cell < (unsigned)cells) {
            atomicMax(largest + cell, e);
            if (BLEND) atomicMin(smallest + cell, e);
        }
    }
    __syncthreads();
}

// One unit of a cell, in ITEMS channels from c on.
template <int N>
__device__ __forceinline__ void lay_unit(const Word<N>* under, const Word<N>* over, Word<N>* to, long long map_step,
                                         int plane_step, long long tile_step, int c, int channels, Entry top,
                                         Entry bottom, int id, const int* __restrict__ indices,
                                         const int* __restrict__ keys, int tiles, float keep, float take)
{
    const int slots = blockDim.z;
    Word<N> value[ITEMS];
    if (!BLEND || top == 0) {
        const Word<N>* from = top ? over + entry_tile(top) * tile_step : under;
        const long long step = top ? plane_step : map_step;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
            if (c + i * slots < channels) value[i] = __ldg(from + i * step);
    } else if (bottom == top) {
        over += entry_tile(top) * tile_step;
        Word<N> incoming[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (c + i * slots >= channels) continue;
            value[i] = __ldg(under + i * map_step);
            incoming[i] = __ldg(over + i * plane_step);
        }
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            float below[N], above[N];
            to_floats<N>(value[i], below);
            to_floats<N>(incoming[i], above);
#pragma unroll
            for (int j = 0; j < N; ++j) below[j] = keep * below[j] + take * above[j];
            value[i] = from_floats<N>(below);
        }
    } else {
        // Several tiles on one cell: one channel at a time, held in fp32 until the last tile.
#pragma unroll 1
        for (int i = 0; i < ITEMS && c + i * slots < channels; ++i) {
            float blended[N], above[N];
            to_floats<N>(__ldg(under + i * map_step), blended);
            for (Entry e = bottom;; e = entry_after(e, id, indices, keys, tiles)) {
                to_floats<N>(__ldg(over + entry_tile(e) * tile_step + i * plane_step), above);
#pragma unroll
                for (int j = 0; j < N; ++j) blended[j] = keep * blended[j] + take * above[j];
                if (e == top) break;
            }
            to[i * map_step] = from_floats<N>(blended);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
        if (c + i * slots < channels) to[i * map_step] = value[i];
}

template <int N>
__device__ __forceinline__ void lay_cells(const elem* __restrict__ base, const elem* __restrict__ packed,
                                          const int* __restrict__ indices, const int* __restrict__ keys,
                                          elem* __restrict__ out, const Sizes& s, float keep, float take,
                                          Entry* largest, Entry* smallest)
{
    const int tile = TILE ? TILE : s.tile;
    const int row = tile / N, plane = tile * row, pitch = s.width / N;
    const int grid_width = s.width / tile, cells = min(grid_width, CELLS), parts = (grid_width + cells - 1) / cells;
    const int bands = s.height / tile * parts, slots = blockDim.z;
    const long long map = (long long)s.height * pitch, tile_step = (long long)s.channels * plane;
    for (int b = blockIdx.z; b < s.batch; b += gridDim.z) {
        const int* row_indices = indices + (long long)b * s.tiles;
        const int* row_keys = keys + (long long)b * s.tiles;
        for (int band = blockIdx.x; band < bands; band += gridDim.x) {
            const int ty = parts == 1 ? band : band / parts, tx_first = (band - ty * parts) * cells;
            const int id_first = ty * grid_width + tx_first, cells_here = min(cells, grid_width - tx_first);
            find_entries(largest, smallest, row_indices, row_keys, s.tiles, id_first, cells_here);
#pragma unroll 1
            for (int c = blockIdx.y * slots * ITEMS + threadIdx.z; c < s.channels; c += gridDim.y * slots * ITEMS) {
#pragma unroll 1
                for (int dy = threadIdx.y; dy < tile; dy += blockDim.y) {
#pragma unroll 1
                    for (int ux = threadIdx.x; ux < cells_here * row; ux += blockDim.x) {
                        const int cell = ux / row, dx = ux - cell * row;
                        const long long at = ((long long)b * s.channels + c) * map +
                                             (long long)(ty * tile + dy) * pitch + (long long)tx_first * row + ux;
                        // The unit in the sample's first tile.
                        const Word<N>* over = words<N>(packed) + (long long)b * s.tiles * tile_step +
                                              (long long)c * plane + dy * row + dx;
                        lay_unit<N>(words<N>(base) + at, over, words<N>(out) + at, slots * map, slots * plane, tile_step,
                                    c, s.channels, largest[cell], BLEND ? smallest[cell] : 0, id_first + cell,
                                    row_indices, row_keys, s.tiles, keep, take);
                    }
                }
            }
        }
    }
}

// Takes the widest unit that fits.
template <int N>
__device__ __forceinline__ void lay_widest(const elem* __restrict__ base, const elem* __restrict__ packed,
                                           const int* __restrict__ indices, const int* __restrict__ keys,
                                           elem* __restrict__ out, const Sizes& s, float keep, float take,
                                           Entry* largest, Entry* smallest, size_t bits)
{
    if constexpr (N == 1) {
        lay_cells<1>(base, packed, indices, keys, out, s, keep, take, largest, smallest);
    } else if (bits % (N * sizeof(elem)) == 0) {
        lay_cells<N>(base, packed, indices, keys, out, s, keep, take, largest, smallest);
    } else {
        lay_widest<N / 2>(base, packed, indices, keys, out, s, keep, take, largest, smallest, bits);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
tile_unpack_fast(const elem* __restrict__ base, const elem* __restrict__ packed, const int* __restrict__ indices,
                 const int* __restrict__ keys, elem* __restrict__ out, int batch, int channels, int height, int width,
                 int tiles, int tile, float keep, float take)
{
    __shared__ Entry largest[CELLS];
    __shared__ Entry smallest[BLEND ? CELLS : 1];
    const size_t bits = (TILE ? TILE : tile) * sizeof(elem) | address_bits(base) | address_bits(packed) |
                        address_bits(out);
    lay_widest<widest_unit(TILE)>(base, packed, indices, keys, out,
                                  Sizes{batch, channels, height, width, tiles, tile}, keep, take, largest, smallest,
                                  bits);
}

// Fills `list` with the tiles that touch the rectangle, in order, and returns their count. Ends with a barrier.
__device__ __forceinline__ int list_tiles(int* list, const int* origins, const int* order, const Sizes& s, int y, int x)
{
    __shared__ int warp_counts[THREADS / 32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int count = 0;
    for (int first = 0; first < s.tiles; first += THREADS) {
        const int i = first + threadIdx.x;
        const int k = i < s.tiles ? __ldg(order + i) : 0;
        bool touches = false;
        if (i < s.tiles) {
            const int tile_y = __ldg(origins + 2LL * k), tile_x = __ldg(origins + 2LL * k + 1);
            touches = tile_y < y + THREADS / 32 && tile_y + s.tile > y && tile_x < x + 32 && tile_x + s.tile > x;
        }
        const unsigned ballot = __ballot_sync(~0u, touches);
        if (lane == 0) warp_counts[warp] = __popc(ballot);
        __syncthreads();
        int slot = count + __popc(ballot & ((1u << lane) - 1));
        for (int w = 0; w < THREADS / 32; ++w) {
            if (w < warp) slot += warp_counts[w];
            count += warp_counts[w];
        }
        if (touches && slot < LISTED) list[slot] = k;
        __syncthreads();
    }
    return count;
}

extern "C" __global__ void __launch_bounds__(THREADS)
tile_unpack_origins_fast(const elem* __restrict__ base, const elem* __restrict__ packed,
                         const int* __restrict__ origins, const int* __restrict__ order, elem* __restrict__ out,
                         int batch, int channels, int height, int width, int tiles, int tile, float keep, float take)
{
    constexpr int ROWS = THREADS / 32, DEEP = 8, COVERS = 2;
    __shared__ int list[LISTED];
    const Sizes s{batch, channels, height, width, tiles, tile};
    const unsigned bands = (height + ROWS - 1) / ROWS, strips = (width + 31) / 32, spans = (channels + SPAN - 1) / SPAN;
    const unsigned works = batch * bands * strips * spans;
    const long long map = (long long)height * width;
    const int plane = tile * tile;
    for (unsigned work = blockIdx.x; work < works; work += gridDim.x) {
        unsigned rest = work / strips;
        const int x_first = (work - rest * strips) * 32;
        const int y_first = rest % bands * ROWS;
        rest /= bands;
        const long long b = rest / spans;
        const int c_first = (rest - b * spans) * SPAN, c_end = min(c_first + SPAN, channels);
        const int* row_origins = origins + 2 * b * tiles;
        const int listed = list_tiles(list, row_origins, order + b * tiles, s, y_first, x_first);
        const int* chosen = listed <= LISTED ? list : order + b * tiles;
        const int count = listed <= LISTED ? listed : tiles;

        const int y = y_first + threadIdx.x / 32, x = x_first + threadIdx.x % 32;
        const elem* tile_first = packed + b * tiles * channels * plane;
        // Offset of the pixel in a tile's first channel, or -1 where the tile does not cover it.
        auto cover = [&](int k) {
            const unsigned dy = y - __ldg(row_origins + 2LL * k), dx = x - __ldg(row_origins + 2LL * k + 1);
            return dy < (unsigned)tile && dx < (unsigned)tile ? (long long)k * channels * plane + dy * tile + dx : -1LL;
        };
        if (y < height && x < width) {
            const long long at = (b * channels) * map + (long long)y * width + x;
            const elem* from = base + at;
            long long step = map;
            // The first tiles over this pixel, lowest first; the rest, if any, is looked up for every channel.
            long long covers[COVERS];
            int covered = 0, listed_from = count;
            if (BLEND) {
#pragma unroll
                for (int n = 0; n < COVERS; ++n) covers[n] = -1;
                for (int i = 0; i < count; ++i) {
                    const long long offset = cover(chosen[i]);
                    if (offset < 0) continue;
                    if (covered == COVERS) {
                        listed_from = i;
                        break;
                    }
#pragma unroll
                    for (int n = 0; n < COVERS; ++n)
                        if (n == covered) covers[n] = offset;
                    ++covered;
                }
            } else {
                for (int i = count - 1; i >= 0; --i) {
                    const long long offset = cover(chosen[i]);
                    if (offset < 0) continue;
                    from = tile_first + offset;
                    step = plane;
                    break;
                }
            }
            for (int c = c_first; c < c_end; c += DEEP) {
                elem value[DEEP];
#pragma unroll
                for (int i = 0; i < DEEP; ++i)
                    if (c + i < c_end) value[i] = from[(c + i) * step];
                if (BLEND) {
                    float blended[DEEP];
#pragma unroll
                    for (int i = 0; i < DEEP; ++i) blended[i] = to_float(value[i]);
                    const auto blend = [&](long long offset) {
#pragma unroll
                        for (int i = 0; i < DEEP; ++i)
                            if (c + i < c_end)
                                blended[i] = keep * blended[i] + take * to_float(tile_first[offset + (long long)(c + i) * plane]);
                    };
#pragma unroll
                    for (int n = 0; n < COVERS; ++n)
                        if (covers[n] >= 0) blend(covers[n]);
                    for (int i = listed_from; i < count; ++i) {
                        const long long offset = cover(chosen[i]);
                        if (offset >= 0) blend(offset);
                    }
#pragma unroll
                    for (int i = 0; i < DEEP; ++i) value[i] = from_float(blended[i]);
                }
#pragma unroll
                for (int i = 0; i < DEEP; ++i)
                    if (c + i < c_end) out[at + (c + i) * map] = value[i];
            }
        }
        __syncthreads();
    }
}
