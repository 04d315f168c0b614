#!/bin/sh
# A search among 200 real commits of lz4 for a slowdown of about 10 % that was planted in one of them:
#   sh campaigns/bisect-lz4.sh [HOLDPOINT [LZ4]]
# HOLDPOINT is the program (default: holdpoint), LZ4 a clone of github.com/lz4/lz4 (default: cloned here).
#
# The commits after v1.9.4 are made again one by one, each with its own files and subject. Commit 137 compresses a ninth of its
# input twice, which takes about 10 % longer; all later ones have that line as well. Everything happens in a temporary folder.
set -eu

holdpoint=$(command -v "${1:-holdpoint}")
case $holdpoint in /*) ;; *) holdpoint=$PWD/$holdpoint ;; esac
examples=$(cd "$(dirname "$0")/../examples" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOLDPOINT_CACHE="$dir/cache"
export GIT_AUTHOR_NAME=lz4 GIT_AUTHOR_EMAIL=lz4@example.org GIT_COMMITTER_NAME=lz4 GIT_COMMITTER_EMAIL=lz4@example.org
git clone --quiet --no-checkout "${2:-https://github.com/lz4/lz4}" "$dir/lz4"
cd "$dir/lz4"

# The project's benchmark, which each commit builds with its own library.
cat > perf.toml <<'END'
schema_version = 1
name = "lz4"
[build]
command = ["sh", "-c", "make --silent -C lib lz4.o && cc -O2 -Ilib -o worker perf/worker.c lib/lz4.o"]
[workers.lz4]
command = ["./worker"]
single_threaded = true
[[workload]]
name = "compress"
worker = "lz4"
op = "compress"
shape = [262144]
dtype = "u8"
END
worker=$(git hash-object -w "$examples/worker.c")

# The one call in lib/lz4.c, after another of a ninth of its work.
slow='s|^    return LZ4_compress_fast(src, dst, srcSize, \([a-zA-Z]*\), 1);|    LZ4_compress_fast(src, dst, srcSize / 9, \1, 1);\n&|'
number=0
parent=
for commit in $(git rev-list --first-parent --reverse v1.9.4..origin/HEAD | head -n 201); do
    git read-tree "$commit"
    git update-index --add --cacheinfo "100644,$worker,perf/worker.c"
    if [ "$number" -ge 137 ]; then
        slowed=$(git show "$commit:lib/lz4.c" | sed "$slow" | git hash-object -w --stdin)
        git update-index --cacheinfo "100644,$slowed,lib/lz4.c"
    fi
    parent=$(git show --no-patch --format=%s "$commit" | git commit-tree "$(git write-tree)" ${parent:+-p "$parent"})
    [ "$number" != 0 ] || git tag --no-sign v-good "$parent"
    [ "$number" != 137 ] || culprit=$parent
    number=$((number + 1))
done
git update-ref refs/heads/slow "$parent"
git symbolic-ref HEAD refs/heads/slow

echo "$((number - 1)) commits, planted: $culprit"
start=$(date +%s)
"$holdpoint" bisect --suite perf.toml --good v-good || echo "exit code $?"
echo "$(($(date +%s) - start)) s"
"$holdpoint" report artifacts/bisect.json | grep -q "^found: $(echo "$culprit" | cut -c 1-12)"
