#!/bin/sh
# Records a baseline of a built-in suite, then gates it GATES times as it is and GATES times with every op PERCENT slower,
# and counts the verdicts: how often a stored baseline cries wolf, and how often it sees that slowdown.
#
#   campaigns/slowed-gates.sh target/release/holdpoint gpu 5% 20
set -eu
holdpoint=$(realpath "$1") suite=$2 percent=$3 gates=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
name=builtin
if grep -q 'worker = "cuda"' "suites/$suite.toml"; then name=cuda; fi
# The worker reads how much slower it is, so that both kinds of gates have the same suite and command line.
cat "suites/$suite.toml" - >"$folder/$suite.toml" <<EOF

[workers.$name]
command = ["sh", "worker.sh"]
EOF
echo "exec '$holdpoint' worker --suite $suite --worker $name --slowdown \$(cat slowdown)" >"$folder/worker.sh"
cd "$folder"
gate() { "$holdpoint" gate --suite "$suite.toml" --baseline-dir baselines --artifacts artifacts >log 2>&1; }
echo 0% >slowdown
gate || { cat log; exit 70; }
for slowdown in 0% "$percent"; do
    echo "$slowdown" >slowdown
    : >codes
    for i in $(seq "$gates"); do
        code=0
        gate || code=$?
        echo "exit $code" >>codes
        echo "$(date -u +%T) gate $i, $slowdown slower: exit $code"
        if [ "$i" -eq 1 ]; then cat log; fi
    done
    echo "$slowdown slower: pass $(grep -c 'exit 0$' codes), regressed $(grep -c 'exit 1$' codes), inconclusive" \
        "$(grep -c 'exit 3$' codes), of $gates gates"
done
