// A copy, launched in every way that [workload.kernel] knows: cooperatively, in clusters, with more than 48 KiB of shared memory, with a
// tensor map, plainly. Each takes the arguments of the op `copy`: in, out, long long count; and what stands behind them in forms.toml.
#if defined(ELEM_F32)
typedef unsigned elem;
#elif defined(ELEM_E4M3)
typedef unsigned char elem;
#else
typedef unsigned short elem;
#endif

extern "C" __global__ void copy_plain(const elem* in, elem* out, long long count) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i];
}

// All blocks fill the workspace, wait for each other, and read what others wrote. `arrived` only grows.
extern "C" __global__ void copy_cooperative(const elem* in, elem* out, long long count, elem* held, unsigned* arrived) {
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = first; i < count; i += step) held[i] = in[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned target = (atomicAdd(arrived, 1u) / gridDim.x + 1) * gridDim.x;
        while (*reinterpret_cast<volatile unsigned*>(arrived) < target) {
        }
        __threadfence();
    }
    __syncthreads();
    for (long long i = first; i < count; i += step) out[count - 1 - i] = held[count - 1 - i];
}

// Two blocks of a cluster: each writes what the other has in its shared memory. 256 threads, an element each.
extern "C" __global__ void copy_cluster(const elem* in, elem* out, long long count) {
    __shared__ unsigned held[256];
    const long long pair = static_cast<long long>(blockIdx.x / 2) * 512;
    const unsigned rank = blockIdx.x % 2, other = rank ^ 1;
    const long long mine = pair + rank * 256 + threadIdx.x, theirs = pair + other * 256 + threadIdx.x;
    held[threadIdx.x] = mine < count ? in[mine] : 0;
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&held[threadIdx.x])), remote, value;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(other));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote) : "memory");
    if (theirs < count) out[theirs] = static_cast<elem>(value);
    // Nobody leaves while its memory is read.
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Through 100 000 bytes of shared memory, 25 000 elements a block.
extern "C" __global__ void copy_shared(const elem* in, elem* out, long long count) {
    extern __shared__ unsigned tile[];
    const long long first = static_cast<long long>(blockIdx.x) * 25000;
    for (int i = threadIdx.x; i < 25000 && first + i < count; i += blockDim.x) tile[i] = in[first + i];
    __syncthreads();
    for (int i = blockDim.x - 1 - threadIdx.x; i < 25000; i += blockDim.x)
        if (first + i < count) out[first + i] = static_cast<elem>(tile[i]);
}

struct alignas(64) Map {
    unsigned long long opaque[16];
};

// The copy engine fetches 256 elements for each block.
extern "C" __global__ void copy_tma(const __grid_constant__ Map map, elem* out, long long count) {
    __shared__ alignas(128) elem tile[256];
    __shared__ alignas(8) unsigned long long ready;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile)), bar = static_cast<unsigned>(__cvta_generic_to_shared(&ready));
    const int first = blockIdx.x * 256;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(static_cast<unsigned>(sizeof(tile))) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to), "l"(&map),
                     "r"(first), "r"(bar)
                     : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar) : "memory");
    const long long i = static_cast<long long>(first) + threadIdx.x;
    if (i < count) out[i] = tile[threadIdx.x];
}
