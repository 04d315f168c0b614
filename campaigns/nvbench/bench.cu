// A copy on the device, with an axis of sizes and one of types, and a sum on the host: benchmarks of nvbench for its driver
// (docs/harness/nvbench.md). EXTRA percent more elements make the copy slower by about as much.
#include <nvbench/nvbench.cuh>

#include <cuda_runtime.h>

#include <cstdint>
#include <numeric>
#include <vector>

#ifndef EXTRA
#define EXTRA 0
#endif

template <typename T> __global__ void copy_kernel(const T *from, T *to, std::size_t count) {
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = from[i];
    }
}

template <typename T> struct Buffer {
    explicit Buffer(std::size_t count) { NVBENCH_CUDA_CALL(cudaMalloc(&data, count * sizeof(T))); }
    ~Buffer() { cudaFree(data); }
    Buffer(const Buffer &) = delete;
    T *data = nullptr;
};

template <typename T> void copy(nvbench::state &state, nvbench::type_list<T>) {
    const auto count = static_cast<std::size_t>(state.get_int64("Elements")) * (100 + EXTRA) / 100;
    if (count > (std::size_t{1} << 32)) {
        state.skip("more than this benchmark allocates");
        return;
    }
    Buffer<T> from(count), to(count);
    NVBENCH_CUDA_CALL(cudaMemset(from.data, 1, count * sizeof(T)));
    state.add_global_memory_reads<T>(count);
    state.add_global_memory_writes<T>(count);
    state.exec([&](nvbench::launch &launch) {
        copy_kernel<<<1056, 256, 0, launch.get_stream()>>>(from.data, to.data, count);
    });
}
NVBENCH_BENCH_TYPES(copy, NVBENCH_TYPE_AXES(nvbench::type_list<float, double>))
    .set_type_axes_names({"T"})
    .add_int64_power_of_two_axis("Elements", {24, 26, 40});

void sum_on_host(nvbench::state &state) {
    const std::vector<std::int64_t> values(static_cast<std::size_t>(state.get_int64("Values")), 3);
    std::int64_t sum = 0;
    state.exec(nvbench::exec_tag::no_gpu,
               [&](nvbench::launch &) { sum += std::accumulate(values.begin(), values.end(), sum); });
    if (sum == 1) {
        state.skip("the compiler must not drop the sum");
    }
}
NVBENCH_BENCH(sum_on_host).add_int64_axis("Values", {200000}).set_is_cpu_only(true);
