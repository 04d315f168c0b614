#!/bin/sh
# Shows on this machine what metrics beside the median find: campaigns/metrics.sh [TRIALS]
# Give it a copy of a release build as HOLDPOINT; put load beside it yourself.
set -u
holdpoint=$(command -v "${HOLDPOINT:-holdpoint}") || { echo "put holdpoint on the PATH, or name it in HOLDPOINT" >&2; exit 64; }
trials=${1:-20}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) && cd "$work" || exit 70
trap 'rm -rf "$work"' EXIT

# Trials in which a check of a metric had a verdict.
count() { # metric verdict base-flag base head-flag head…
    metric=$1 verdict=$2 found=0 i=0
    shift 2
    while [ $i -lt "$trials" ]; do
        "$holdpoint" -q ab "$@" --budget 60 --artifacts out
        python3 - "$metric" "$verdict" <<'PY' && found=$((found + 1))
import json, sys
checks = json.load(open("out/comparison.json"))["checks"]
sys.exit(0 if any(c["metric"] == sys.argv[1] and c["verdict"] == sys.argv[2] for c in checks) else 1)
PY
        i=$((i + 1))
    done
    echo "$metric $verdict: $found of $trials"
}

# One sample in 32 takes five times as long on base, six times as long on head: the p99 is 20 % worse, the median the same.
worker="$holdpoint worker --suite $here/../examples/metrics.toml --tail"
count infer_p99_ms regressed --suite "$here/../examples/metrics.toml" --base-worker "$worker 400%" --head-worker "$worker 500%"

# One percent more memory, in a program that uses 60 MB.
for side in "base 50000000" "head 50700000"; do
    set -- $side
    cat > "$1.toml" <<TOML
schema_version = 1
name = "memory"
[gate]
tolerance = "50%"
[[workload]]
name = "memory"
command = ["python3", "-c", "x = bytearray(b'x') * $2"]
metrics = { peak_memory_mb = "0.5%" }
TOML
done
count memory_peak_memory_mb regressed --base-suite base.toml --head-suite head.toml

# Unchanged code: false alarms over time, p99 and memory together.
"$holdpoint" calibrate --suite "$here/../examples/metrics.toml" --trials "$trials" --calibration-dir calibration
