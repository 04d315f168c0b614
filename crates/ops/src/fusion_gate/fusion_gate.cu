// fusion_gate: alpha = sigmoid(w_b*boundary + w_u*uncertainty + bias), fused = base + alpha*(heavy - base).
// base, heavy, fused [B,C,H,W]; boundary, uncertainty, alpha [B,1,H,W]. A proxy's NaN counts as 0, +inf as 1, -inf
// as 0; proxies are not clamped otherwise. In fp32; fused takes alpha unrounded. Rounded once.
// fusion_alpha_*: alpha only. fusion_gate_*: both outputs in one launch.
// Bytes: 3 maps and 3 proxies of sizeof(elem). Flops: 3 per element of a map and about 20 per pixel.
//
// Fast: a thread keeps PACK neighbouring pixels (one pixel where the plane or an address does not allow packs), takes
// their alphas into registers, and walks over ITEMS*ROUNDS channels, ITEMS of them under way at a time. Blocks that
// hold other channels of the same pixels work out the same alphas again; the first of them writes them.
// Launch, no dynamic shared memory: with u = H*W/pixels per thread, fusion_gate_fast takes a block (x, y) with
// x = min(u, THREADS), y = THREADS/x, and a grid (ceil(u/x), ceil(C/(y*ITEMS*ROUNDS)), B); any other grid, and any
// other block of THREADS threads or fewer, is right, too. fusion_alpha_fast takes THREADS threads and
// ceil(B*u/THREADS) blocks or any other grid, the references 256 threads and any grid.
// Limits: H*W and the grids below 2^31.
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

struct Gate {
    float boundary_weight, uncertainty_weight, bias;

    static __device__ __forceinline__ float clean(float proxy)
    {
        const float infinity = __int_as_float(0x7f800000);
        if (proxy == infinity) proxy = 1.0f;
        return fabsf(proxy) < infinity ? proxy : 0.0f;
    }

    __device__ __forceinline__ float alpha(float boundary, float uncertainty) const
    {
        const float logit = boundary_weight * clean(boundary) + uncertainty_weight * clean(uncertainty) + bias;
        // A few units in the last place off, and the quicker: every block of channels works it out again.
        return __fdividef(1.0f, 1.0f + __expf(-logit));
    }
};

extern "C" __global__ void __launch_bounds__(256)
fusion_alpha_reference(const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                       elem* __restrict__ alpha, long long pixels, float boundary_weight, float uncertainty_weight,
                       float bias)
{
    const Gate gate{boundary_weight, uncertainty_weight, bias};
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < pixels; at += stride)
        alpha[at] = from_float(gate.alpha(to_float(boundary[at]), to_float(uncertainty[at])));
}

extern "C" __global__ void __launch_bounds__(256)
fusion_gate_reference(const elem* __restrict__ base, const elem* __restrict__ heavy,
                      const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                      elem* __restrict__ fused, elem* __restrict__ alpha, int batch, int channels, int plane,
                      float boundary_weight, float uncertainty_weight, float bias)
{
    const Gate gate{boundary_weight, uncertainty_weight, bias};
    const long long count = (long long)batch * channels * plane;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        const long long b = at / plane / channels, pixel = b * plane + at % plane;
        const float weight = gate.alpha(to_float(boundary[pixel]), to_float(uncertainty[pixel]));
        const float low = to_float(base[at]), high = to_float(heavy[at]);
        fused[at] = from_float(low + weight * (high - low));
        if (at / plane % channels == 0) alpha[pixel] = from_float(weight);
    }
}

template <int N>
__device__ __forceinline__ void weigh(const Gate& gate, const Word<N>& boundary, const Word<N>& uncertainty,
                                      float (&alphas)[N])
{
    float first[N], second[N];
    to_floats<N>(boundary, first);
    to_floats<N>(uncertainty, second);
#pragma unroll
    for (int i = 0; i < N; ++i) alphas[i] = gate.alpha(first[i], second[i]);
}

template <int N>
__device__ __forceinline__ void alpha_units(const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                                            elem* __restrict__ alpha, long long pixels, const Gate& gate)
{
    const long long stride = (long long)gridDim.x * THREADS;
    for (long long at = (long long)blockIdx.x * THREADS + threadIdx.x; at < pixels / N; at += stride) {
        float alphas[N];
        weigh<N>(gate, __ldg(words<N>(boundary) + at), __ldg(words<N>(uncertainty) + at), alphas);
        words<N>(alpha)[at] = from_floats<N>(alphas);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
fusion_alpha_fast(const elem* __restrict__ boundary, const elem* __restrict__ uncertainty, elem* __restrict__ alpha,
                  long long pixels, float boundary_weight, float uncertainty_weight, float bias)
{
    const Gate gate{boundary_weight, uncertainty_weight, bias};
    const size_t bits = pixels * sizeof(elem) | address_bits(boundary) | address_bits(uncertainty) |
                        address_bits(alpha);
    if (bits % 16 == 0) {
        alpha_units<PACK>(boundary, uncertainty, alpha, pixels, gate);
    } else {
        alpha_units<1>(boundary, uncertainty, alpha, pixels, gate);
    }
}

template <int N>
__device__ __forceinline__ void fuse(const elem* __restrict__ base, const elem* __restrict__ heavy,
                                     const elem* __restrict__ boundary, const elem* __restrict__ uncertainty,
                                     elem* __restrict__ fused, elem* __restrict__ alpha, int batch, int channels,
                                     int plane, const Gate& gate)
{
    const int units = plane / N, slots = blockDim.y, span = slots * ITEMS * ROUNDS;
    for (int b = blockIdx.z; b < batch; b += gridDim.z) {
        for (int u = blockIdx.x * blockDim.x + threadIdx.x; u < units; u += gridDim.x * blockDim.x) {
            for (int c_first = blockIdx.y * span + threadIdx.y; c_first < channels; c_first += gridDim.y * span) {
                const long long pixel = (long long)b * units + u, step = (long long)slots * units;
                long long at = ((long long)b * channels + c_first) * units + u;
                float alphas[N];
                for (int round = 0; round < ROUNDS; ++round, at += ITEMS * step) {
                    const int c = c_first + round * slots * ITEMS;
                    Word<N> low[ITEMS], high[ITEMS];
#pragma unroll
                    for (int i = 0; i < ITEMS; ++i) {
                        if (c + i * slots >= channels) continue;
                        low[i] = __ldg(words<N>(base) + at + i * step);
                        high[i] = __ldg(words<N>(heavy) + at + i * step);
                    }
                    if (round == 0)
                        weigh<N>(gate, __ldg(words<N>(boundary) + pixel), __ldg(words<N>(uncertainty) + pixel), alphas);
#pragma unroll
                    for (int i = 0; i < ITEMS; ++i) {
                        if (c + i * slots >= channels) continue;
                        float from[N], to[N];
                        to_floats<N>(low[i], from);
                        to_floats<N>(high[i], to);
#pragma unroll
                        for (int j = 0; j < N; ++j) from[j] += alphas[j] * (to[j] - from[j]);
                        words<N>(fused)[at + i * step] = from_floats<N>(from);
                    }
                }
                if (c_first == 0) words<N>(alpha)[pixel] = from_floats<N>(alphas);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
fusion_gate_fast(const elem* __restrict__ base, const elem* __restrict__ heavy, const elem* __restrict__ boundary,
                 const elem* __restrict__ uncertainty, elem* __restrict__ fused, elem* __restrict__ alpha, int batch,
                 int channels, int plane, float boundary_weight, float uncertainty_weight, float bias)
{
    const Gate gate{boundary_weight, uncertainty_weight, bias};
    const size_t bits = plane * sizeof(elem) | address_bits(base) | address_bits(heavy) | address_bits(boundary) |
                        address_bits(uncertainty) | address_bits(fused) | address_bits(alpha);
    if (bits % 16 == 0) {
        fuse<PACK>(base, heavy, boundary, uncertainty, fused, alpha, batch, channels, plane, gate);
    } else {
        fuse<1>(base, heavy, boundary, uncertainty, fused, alpha, batch, channels, plane, gate);
    }
}
