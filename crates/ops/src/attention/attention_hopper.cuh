// What both kernels for Hopper's tensor cores have: fetching by the copy engine, lists of registers, places of operands, waiting for products.
#pragma once

struct alignas(64) TensorMap {
    u8 at[128];
};

// The same value, in a way that keeps what is computed from it out of registers between uses.
__device__ __forceinline__ u32 fresh(u32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

__device__ __forceinline__ void barrier_wait(u32 barrier, int parity) {
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ void expect(u32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void tma(u32 to, const TensorMap* map, int column, int row, int head, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(map), "r"(column),
                 "r"(row), "r"(head), "r"(barrier)
                 : "memory");
}

#define LIST_0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define LIST_1 LIST_0 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST_2 LIST_1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define LIST_3 LIST_2 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define LIST_4 LIST_3 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define USE_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define USE_16(i) USE_4(i), USE_4(i + 4), USE_4(i + 8), USE_4(i + 12)
#define SET_4(i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3])
#define SET_16(i) SET_4(i), SET_4(i + 4), SET_4(i + 8), SET_4(i + 12)
// Where an operand is: address, distance of its columns (used where they run along the product's columns), distance of its groups of 8 rows. Steps are added to
// the address in the low word.
__device__ __forceinline__ u32 place(u32 address, int column_bytes) { return (address & 0x3ffff) >> 4 | static_cast<u32>(column_bytes >> 4) << 16; }

// Keeps the compiler from moving the use of sums across a wait.
template <int N>
__device__ __forceinline__ void pin(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
