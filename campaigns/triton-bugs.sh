#!/bin/sh
# Fuzzes a right Triton kernel and six wrong ones, each with at most 200 cases, and prints for each whether a wrong answer was
# found and after how many cases. Without a GPU, set TRITON_INTERPRET=1: there a race cannot be seen.
#
#   PYTHONPATH=python campaigns/triton-bugs.sh target/release/holdpoint
set -u
holdpoint=$(realpath "$1")
suite=$(realpath "$(dirname "$0")")/triton-bugs/suite.toml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 70
unexpected=0
for bug in none mask tail scale accumulator stride race; do
    code=0
    BUG=$bug "$holdpoint" fuzz --suite "$suite" --cases 200 --seed 1 >"$bug.txt" 2>&1 || code=$?
    found=$(sed -n 's/.*found after \([0-9]*\) case.*/\1/p' "$bug.txt" | head -n 1)
    case $bug:$code in
    none:0) echo "none: passed, $(grep '^ok' "$bug.txt")" ;;
    none:* | *:[!01]) unexpected=1 && echo "$bug: exit $code" && cat "$bug.txt" ;;
    *:0) unexpected=1 && echo "$bug: not found in 200 cases" ;;
    *:1) echo "$bug: found after $found cases: $(sed -n 's/^wrong  *//p' "$bug.txt" | head -n 1)" ;;
    esac
done
exit $unexpected
