#!/bin/sh
# Fuzzes a right Triton kernel and six wrong ones, each with at most 200 cases, and prints for each whether a wrong answer was
# found and after how many cases. Without a GPU, set TRITON_INTERPRET=1: there a race cannot be seen.
#
#   PYTHONPATH=python campaigns/triton-bugs.sh target/release/holdpoint
set -u
holdpoint=$(realpath "$1")
here=$(realpath "$(dirname "$0")")/triton-bugs
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 70
cp "$here/suite.toml" suite.toml
# The interpreter takes a millisecond for what a GPU does in one step of a program.
if [ -n "${TRITON_INTERPRET:-}" ]; then
    printf '\n[fuzz.rms_norm]\nsizes_max = [2, 1100]\nelements_max = 1200\n' >>suite.toml
fi
unexpected=0
for bug in none mask tail scale accumulator stride race; do
    code=0
    BUG=$bug "$holdpoint" fuzz --suite suite.toml --workdir "$here" --cases 200 --seed 1 >"$bug.txt" 2>&1 || code=$?
    found=$(sed -n 's/.*found after \([0-9]*\) case.*/\1/p' "$bug.txt" | head -n 1)
    case $bug:$code in
    none:0) echo "none: passed, $(grep '^ok' "$bug.txt")" ;;
    none:* | *:[!01]) unexpected=1 && echo "$bug: exit $code" && cat "$bug.txt" ;;
    race:0) [ -n "${TRITON_INTERPRET:-}" ] || unexpected=1
        echo "race: not found in 200 cases${TRITON_INTERPRET:+; the interpreter runs programs one after the other}" ;;
    *:0) unexpected=1 && echo "$bug: not found in 200 cases" ;;
    *:1) echo "$bug: found after $found cases: $(sed -n 's/^wrong  *//p' "$bug.txt" | head -n 1)" ;;
    esac
done
exit $unexpected
