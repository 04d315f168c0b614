// The element type of a program, chosen by one of ELEM_F32, ELEM_F16, ELEM_BF16, ELEM_E4M3, and 16-byte packs of it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#if defined(ELEM_F16)
typedef __half elem;
__device__ __forceinline__ float to_float(elem x) { return __half2float(x); }
__device__ __forceinline__ elem from_float(float x) { return __float2half_rn(x); }
#elif defined(ELEM_BF16)
typedef __nv_bfloat16 elem;
__device__ __forceinline__ float to_float(elem x) { return __bfloat162float(x); }
__device__ __forceinline__ elem from_float(float x) { return __float2bfloat16_rn(x); }
#elif defined(ELEM_E4M3)
typedef __nv_fp8_e4m3 elem;
__device__ __forceinline__ float to_float(elem x) { return static_cast<float>(x); }
// Saturates at 448: the format has no infinity. NaN stays NaN.
__device__ __forceinline__ elem from_float(float x) { return elem(x); }
#else
typedef float elem;
__device__ __forceinline__ float to_float(elem x) { return x; }
__device__ __forceinline__ elem from_float(float x) { return x; }
#endif

// Elements in 16 bytes.
constexpr int PACK = 16 / sizeof(elem);

struct alignas(16) Pack {
    elem at[PACK];
};
