#!/usr/bin/env python3
"""A slower function of Python, C, Go and Node beside busy loops: does any gate pass?

    campaigns/slowed-functions.py target/release/holdpoint [--gates 5] [--loads 0,2,4] [--shares 300,10,0] [--languages python,c,go,node]

Each language gets a repository of two commits; in the second the function does so many per cent more work, and 0 is unchanged code.
`gate --against HEAD~1` must not pass what is slower, nor fail what is not; what stays undecided is counted. A line of JSON for each gate
goes to --out, a table to stdout. Needs cc, go and node; the Python package is the one beside this script.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET_S = 20
ROOT = Path(__file__).resolve().parent.parent

PYTHON = """
def work(numbers: list[int], rounds: int) -> int:
    total = 0
    for _ in range(rounds):
        for number in numbers:
            total = (total * 31 + number) % 1_000_003
    return total
"""
PYTHON_BENCH = """
import random
import holdpoint
from code_under_test import work

ROUNDS = int(open("rounds").read())

@holdpoint.workload(inputs=lambda seed: ([random.Random(seed).randrange(1000) for _ in range(500)], ROUNDS))
def hash_numbers(numbers: list[int], rounds: int) -> int:
    return work(numbers, rounds)
"""
C = """
#include <stdio.h>
int main(void) {
    volatile unsigned x = 1;
    for (long i = 0; i < ROUNDS * 20000L; i++) x = x * 31 + i;
    puts("done");
    return 0;
}
"""
GO = """package words

func Work(rounds int) uint32 {
	x := uint32(1)
	for i := 0; i < rounds*100; i++ {
		x = x*31 + uint32(i)
	}
	return x
}
"""
GO_TEST = """package words

import "testing"

var sink uint32

func BenchmarkWork(b *testing.B) {
	for n := 0; n < b.N; n++ {
		sink = Work(%d)
	}
}
"""
NODE = """
const rounds = Number(require("fs").readFileSync("rounds", "utf8"));
let x = 1;
for (let i = 0; i < rounds * 400000; i++) x = (x * 31 + i) % 1000003;
console.log("done");
"""
GATE = f'[gate]\ntolerance = "2%"\nbudget = {BUDGET_S}\n'


def files(language: str, rounds: int) -> dict[str, str]:
    if language == "python":
        suite = '[workers.py]\ncommand = ["python3", "-m", "holdpoint", "serve", "bench.py"]\nsingle_threaded = true\n'
        suite += '[[workload]]\nname = "hash_numbers"\nworker = "py"\nop = "hash_numbers"\nshape = []\ndtype = ""\n'
        return {"perf.toml": suite + GATE, "bench.py": PYTHON_BENCH, "code_under_test.py": PYTHON, "rounds": str(rounds)}
    if language == "c":
        suite = '[build]\ncommand = ["cc", "-O1", "-o", "work", "work.c"]\n'
        suite += '[[workload]]\nname = "work"\ncommand = ["./work"]\n'
        return {"perf.toml": suite + GATE, "work.c": f"#define ROUNDS {rounds}\n{C}"}
    if language == "go":
        suite = '[harness]\nkind = "go"\n'
        go_mod = "module words\n\ngo 1.19\n"
        return {"perf.toml": suite + GATE, "go.mod": go_mod, "words.go": GO, "words_test.go": GO_TEST % rounds}
    suite = '[[workload]]\nname = "work"\ncommand = ["node", "work.js"]\n'
    return {"perf.toml": suite + GATE, "work.js": NODE, "rounds": str(rounds)}


def git(repository: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *words], cwd=repository, check=True, capture_output=True)


def repository(folder: Path, language: str, share: int) -> Path:
    path = folder / f"{language}-{share}"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for rounds in (100, 100 + share):
        for name, text in files(language, rounds).items():
            (path / name).write_text('schema_version = 1\nname = "slowed"\n' + text if name == "perf.toml" else text)
        git(path, "add", "-A")
        git(path, "commit", "-q", "--allow-empty", "-m", str(rounds))
    return path


def gate(holdpoint: str, path: Path) -> dict[str, object]:
    start = time.monotonic()
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "HOLDPOINT_CACHE": str(path.parent / "cache")}
    command = [holdpoint, "gate", "--against", "HEAD~1", "--format", "json", "--quiet"]
    done = subprocess.run(command, cwd=path, env=env, capture_output=True, text=True)
    row: dict[str, object] = {"exit": done.returncode, "seconds": round(time.monotonic() - start, 1)}
    try:
        judged = json.loads((path / "artifacts/comparison.json").read_text())
        row |= {"verdict": judged["verdict"], "reasons": [check["reason"] for check in judged["checks"]]}
    except (OSError, ValueError, KeyError) as error:
        row |= {"verdict": "none", "reasons": [repr(error), done.stderr[-500:]]}
    shutil.rmtree(path / "artifacts", ignore_errors=True)
    return row


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("holdpoint")
    words.add_argument("--gates", type=int, default=5)
    words.add_argument("--loads", default="0,2,4")
    words.add_argument("--shares", default="300,10,0")
    words.add_argument("--languages", default="python,c,go,node")
    words.add_argument("--out", default="slowed-functions.jsonl")
    args = words.parse_args()
    holdpoint = str(Path(args.holdpoint).resolve())
    counts: dict[tuple[str, int, int], collections.Counter[str]] = {}
    seconds: dict[tuple[str, int, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, open(args.out, "a") as out:
        for share in map(int, args.shares.split(",")):
            for language in args.languages.split(","):
                path = repository(Path(folder), language, share)
                for load in map(int, args.loads.split(",")):
                    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(load)]
                    try:
                        for _ in range(args.gates):
                            row = {"language": language, "share": share, "load": load} | gate(holdpoint, path)
                            print(json.dumps(row), file=out, flush=True)
                            key = (language, share, load)
                            counts.setdefault(key, collections.Counter())[str(row["verdict"])] += 1
                            seconds.setdefault(key, []).append(float(str(row["seconds"])))
                    finally:
                        for loop in loops:
                            loop.kill()
                            loop.wait()
    print("| function | more work | busy loops | verdicts | seconds, median |\n|---|--:|--:|---|--:|")
    wrong = 0
    for (language, share, load), found in counts.items():
        listed = ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items()))
        middle = sorted(seconds[language, share, load])[len(seconds[language, share, load]) // 2]
        print(f"| {language} | {share} % | {load} | {listed} | {middle} |")
        right = {"regressed", "inconclusive"} if share else {"pass", "improved", "inconclusive"}
        wrong += sum(count for verdict, count in found.items() if verdict not in right)
    print(f"\n{wrong} wrong verdicts")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
