// What timing needs: a kernel that holds the device until the host has queued everything, clocks, a cache flush, and a probe
// that shows whether the flush worked. All are launched with one thread, but flush.

// Waits until the host sets the flag, at most so many nanoseconds; then sets the flag to 2 itself, for the host to see.
extern "C" __global__ void block(volatile unsigned int *flag, unsigned long long timeout_ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    while (*flag == 0) {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        if (now - start > timeout_ns) {
            *flag = 2;
            __threadfence_system();
            return;
        }
    }
}

// Time in nanoseconds, cycles, and the multiprocessor whose cycles they are.
extern "C" __global__ void stamp(unsigned long long *out) {
    unsigned long long now;
    unsigned int sm;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    out[0] = now;
    out[1] = clock64();
    out[2] = sm;
}

// Reads far more than the cache holds. Reading leaves clean lines behind: the next kernel does not pay for writing them back.
extern "C" __global__ void flush(const uint4 *__restrict__ data, long long packs_count, unsigned int *out) {
    unsigned int sum = 0;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs_count; i += step) {
        const uint4 pack = __ldcg(data + i);
        sum += pack.x ^ pack.y ^ pack.z ^ pack.w;
    }
    // Never true for what is in there, but the compiler cannot know.
    if (sum == 0x9e3779b9u) *out = sum;
}

// Cycles of one read each of so many lines, one after the other, past the first-level cache.
extern "C" __global__ void probe(const unsigned int *__restrict__ data, int lines_count, long long *out) {
    unsigned int offset = 0;
    const long long start = clock64();
    for (int line = 0; line < lines_count; line++) {
        unsigned int value;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(data + line * 32 + offset));
        // Zero, but the next address has to wait for it.
        offset = value;
    }
    out[0] = clock64() - start + offset;
}

// Does nothing for so many nanoseconds: a slowdown of a known size.
extern "C" __global__ void spin(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < ns);
}
