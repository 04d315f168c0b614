// c = a b for a of [m, k] and b of [k, n]. The k terms of each element are split into parts, which blocks sum at the same time; a second
// kernel adds the parts. Sums are in 32 bits; holdpoint defines ELEM_F16, ELEM_BF16 or ELEM_F32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if defined(ELEM_F16)
typedef __half elem;
#elif defined(ELEM_BF16)
typedef __nv_bfloat16 elem;
#else
typedef float elem;
#endif

constexpr int TILE = 16;

// Grid: ceil(n / 16), ceil(m / 16), parts; block: 16 x 16. Writes sums[part][m][n].
extern "C" __global__ void partial(const elem* a, const elem* b, float* sums, int m, int n, int k, int parts) {
    __shared__ float left[TILE][TILE], right[TILE][TILE + 1];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    const int length = (k + parts - 1) / parts, begin = blockIdx.z * length, end = min(k, begin + length);
    float sum = 0.0f;
    for (int first = begin; first < end; first += TILE) {
        const int across = first + threadIdx.x, down = first + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && across < end ? static_cast<float>(a[static_cast<size_t>(row) * k + across]) : 0.0f;
        right[threadIdx.y][threadIdx.x] = column < n && down < end ? static_cast<float>(b[static_cast<size_t>(down) * n + column]) : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) sums[(static_cast<size_t>(blockIdx.z) * m + row) * n + column] = sum;
}

// Grid: ceil(m n / 256), block: 256.
extern "C" __global__ void reduce(const float* sums, elem* c, long long count, int parts) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) sum += sums[part * count + i];
    c[i] = static_cast<elem>(sum);
}
