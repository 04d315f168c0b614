#include "words.h"
#include <benchmark/benchmark.h>

static void BM_count(benchmark::State &state) {
    std::string text;
    for (long i = 0; i < state.range(0); i++) text += "word" + std::to_string(i * i % 211) + " ";
    for (auto _ : state) benchmark::DoNotOptimize(count(text));
}
BENCHMARK(BM_count)->Arg(200)->Arg(2000);
BENCHMARK_MAIN();
