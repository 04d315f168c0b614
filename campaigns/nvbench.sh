#!/bin/sh
# nvbench's benchmarks (campaigns/nvbench/bench.cu) through holdpoint: measured, compared with themselves, and with a copy of 5 % more
# elements. PREFIX holds nvbench's include and lib: `pip install cuda-bench==0.3.0` has them in cuda/bench/cu13/nvbench. Needs nvcc and a GPU.
#
#   campaigns/nvbench.sh target/release/holdpoint OUT PREFIX
set -eu
holdpoint=$(realpath "$1") prefix=$(realpath "$3")
source=$(realpath "$(dirname "$0")")/nvbench/bench.cu
mkdir -p "$2" && cd "$2"
export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

for side in base:0 slowed:5; do
    folder=${side%:*} extra=${side#*:}
    mkdir -p "$folder"
    # The driver's library, of which nvbench reads clocks, is there at run time only.
    nvcc -std=c++17 -O3 -arch=native -DEXTRA="$extra" -I"$prefix/include" -o "$folder/bench" "$source" \
        "$prefix/lib/libnvbench_main.a" "$prefix/lib/libnvbench.so" -Xlinker --allow-shlib-undefined
    printf '[harness]\nkind = "nvbench"\ncommand = ["./bench", "--devices", "0"]\n' >"$folder/perf.toml"
done
"$holdpoint" run --suite base/perf.toml --output run.json
"$holdpoint" ab --base-suite base/perf.toml --head-suite base/perf.toml --measure-same-code --artifacts unchanged || echo "exit $?"
"$holdpoint" ab --base-suite base/perf.toml --head-suite slowed/perf.toml --artifacts slowed || echo "exit $?"
