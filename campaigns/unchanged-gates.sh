#!/bin/sh
# Gates unchanged code against a stored baseline again and again, and counts the verdicts: the rate of false alarms on this
# machine. The first gate records the baseline. With LOAD=n, n busy loops run beside every second gate.
#
#   LOAD=2 campaigns/unchanged-gates.sh GATES PAUSE_S holdpoint gate --suite cpu
#
# 100 gates over an hour: GATES=100, PAUSE_S=25. Use a copy of a release build, which nothing rebuilds meanwhile.
set -eu
gates=$1 pause=$2
shift 2
folder=$(mktemp -d)
loops=
trap 'kill $loops 2>/dev/null || true; rm -rf "$folder"' EXIT
gate() { "$@" --quiet --baseline-dir "$folder/baselines" --artifacts "$folder/artifacts" >>"$folder/log" 2>&1; }
gate "$@" || { cat "$folder/log"; exit 70; }
: >"$folder/codes"
for i in $(seq "$gates"); do
    load=0
    if [ $((i % 2)) -eq 0 ]; then load=${LOAD:-0}; fi
    for _ in $(seq "$load"); do
        sh -c 'while :; do :; done' &
        loops="$loops $!"
    done
    code=0
    gate "$@" || code=$?
    kill $loops 2>/dev/null || true
    loops=
    echo "$(date -u +%T) gate $i, $load busy loops: exit $code" | tee -a "$folder/codes"
    if [ "$code" -ne 0 ]; then cp -r "$folder/artifacts" "unchanged-gate-$i"; fi
    if [ "$i" -lt "$gates" ]; then sleep "$pause"; fi
done
echo "pass $(grep -c 'exit 0$' "$folder/codes"), alarms $(grep -c 'exit 1$' "$folder/codes"), inconclusive" \
    "$(grep -c 'exit 3$' "$folder/codes"), of $gates gates of unchanged code"
