#!/bin/sh
# Figures of the Python worker on a GPU, in OUT; Python needs torch and Triton. Two parts, of about nine and two minutes:
#
#   measure  the suite gpu-torch three times; unchanged and slowed workloads compared; times beside those of torch's events, of
#            Triton's own benchmark function and, where the package cuda-bench is installed, of nvbench
#   check    six wrong Triton kernels, fuzzing of the right ones, attention against PyTorch's
#
#   campaigns/torch-h200.sh target/release/holdpoint OUT [measure|check]
set -u
holdpoint=$(realpath "$1")
root=$(realpath "$(dirname "$0")/..")
mkdir -p "$2" && cd "$2" || exit 70
out=$PWD
export PYTHONPATH="$root/python"
suite="$root/suites/gpu-torch.toml"
parts="$root/campaigns/torch-h200"
part=${3:-both}
began=$(date +%s)

step() { # seconds name command…: the output in a file of that name, and its end here
    seconds=$1 name=$2 code=0
    shift 2
    echo "== $(($(date +%s) - began)) s: $name"
    timeout -s INT -k 10 "$seconds" "$@" >"$name.txt" 2>&1 || code=$?
    tail -n 12 "$name.txt"
    echo "exit $code"
}

measure() {
    step 20 versions python3 -c 'import sys, torch, triton; print(sys.version, torch.__version__, triton.__version__, torch.cuda.get_device_name())'
    # Compiles and tunes; its times are not used.
    step 120 tuning "$holdpoint" run --suite "$suite" --output tuning.json
    for i in 1 2 3; do step 60 "run-$i" "$holdpoint" run --suite "$suite" --output "run-$i.json"; done
    step 10 medians python3 "$parts/medians.py" run-1.json run-2.json run-3.json
    step 10 apex "$holdpoint" report run-1.json --as apex-gpu --output perf_gpu.json --markdown perf_gpu.md
    step 30 clocks python3 "$parts/clocks.py" run-1.json

    python3 "$parts/subset.py" "$suite" attention.triton rms_norm.torch rms_norm.triton >unchanged.toml
    # Workers are forks of a process that has imported torch already.
    step 240 calibrate python3 "$parts/preload.py" "$holdpoint" calibrate --suite unchanged.toml --trials 30 --tolerance 1% \
        --calibration-dir calibration --output unchanged.json
    python3 "$parts/subset.py" "$suite" rms_norm.torch rms_norm.triton >slowed.toml
    for i in 1 2 3 4 5 6 7 8 9 10; do
        step 30 "slowed-$i" python3 "$parts/preload.py" "$holdpoint" ab --suite slowed.toml --tolerance 1% --artifacts "slowed-$i" \
            --base-worker "{base}" --head-worker "{slowed}"
    done
    if python3 -c 'import cuda.bench'; then step 30 nvbench python3 "$parts/nvbench_times.py" nvbench; fi
}

check() {
    step 120 bugs "$root/campaigns/triton-bugs.sh" "$holdpoint"
    step 100 fuzz "$holdpoint" fuzz --suite "$parts/fuzz.toml" --cases 100
    step 40 sdpa "$holdpoint" fuzz --suite "$root/examples/sdpa-oracle.toml" --cases 50
}

if [ "$part" != check ]; then measure; fi
if [ "$part" != measure ]; then check; fi
echo "== $(($(date +%s) - began)) s in all; results in $out"
