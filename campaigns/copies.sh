#!/bin/sh
# Copies a worker anew again and again, and compares the copies: does the verdict belong to the program, or to the file?
# Half of the comparisons have a head that is 3 % slower.
#
#   campaigns/copies.sh target/release/holdpoint 40
set -eu
holdpoint=$(realpath "$1") copies=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >suite.toml <<EOF
schema_version = 1
name = "copies"

[[workload]]
name = "infer"
op = "infer"
shape = [1, 3, 128, 128]

[[workload]]
name = "tile_ssm"
op = "tile_ssm"
shape = [1, 256, 128]
params = { direction = "bidirectional", merge_mode = "avg" }
EOF
for slowdown in 0.000% 3.000%; do
    for _ in $(seq "$copies"); do
        for side in base head; do
            rm -f "worker-$side"
            cp "$holdpoint" "worker-$side"
        done
        code=0
        "$holdpoint" ab --suite suite.toml --tolerance 1.5% --artifacts artifacts \
            --base-worker "./worker-base worker --suite suite.toml --slowdown 0.000%" \
            --head-worker "./worker-head worker --suite suite.toml --slowdown $slowdown" >log 2>&1 || code=$?
        case $code in 0 | 1 | 3) ;; *) cat log >&2; exit 70 ;; esac
        grep -E '^(pass|regressed|improved|inconclusive|broken) +[a-z_]+ ' log | awk -v s="$slowdown" '{print s, $2, $1}'
    done
done >verdicts
sort verdicts | uniq -c
