// A unit: N neighbouring elements moved by one access of N*sizeof(elem) bytes, a power of two of at most 16.
#pragma once

#include "common.cuh"

template <int BYTES>
struct WordOf;
template <>
struct WordOf<16> {
    using type = uint4;
};
template <>
struct WordOf<8> {
    using type = uint2;
};
template <>
struct WordOf<4> {
    using type = unsigned;
};
template <>
struct WordOf<2> {
    using type = unsigned short;
};
template <>
struct WordOf<1> {
    using type = unsigned char;
};

// The bits of N elements. Copies move them as one word: whole words keep registers and accesses few.
template <int N>
using Word = typename WordOf<N * sizeof(elem)>::type;

// The most elements of a unit that divides a row of this length; 0 stands for a length that is not known yet.
__device__ constexpr int widest_unit(int length)
{
    int n = PACK;
    while (length % n) n /= 2;
    return n;
}

template <int N>
__device__ __forceinline__ const Word<N>* words(const elem* pointer)
{
    return reinterpret_cast<const Word<N>*>(pointer);
}

template <int N>
__device__ __forceinline__ Word<N>* words(elem* pointer)
{
    return reinterpret_cast<Word<N>*>(pointer);
}

template <int N>
__device__ __forceinline__ void to_floats(const Word<N>& word, float (&values)[N])
{
    alignas(16) elem at[N];
    memcpy(at, &word, sizeof(word));
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = to_float(at[i]);
}

template <int N>
__device__ __forceinline__ Word<N> from_floats(const float (&values)[N])
{
    alignas(16) elem at[N];
#pragma unroll
    for (int i = 0; i < N; ++i) at[i] = from_float(values[i]);
    Word<N> word;
    memcpy(&word, at, sizeof(word));
    return word;
}

// Bits that are set in an address; or-ed over all addresses and row lengths they say which units fit.
__device__ __forceinline__ size_t address_bits(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
