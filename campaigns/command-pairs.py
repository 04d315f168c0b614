#!/usr/bin/env python3
"""Real commands against themselves and against slower ones, beside hyperfine: how often is the verdict right, wrong, or open?

    campaigns/command-pairs.py target/release/holdpoint [REPETITIONS] [BUSY_LOOPS]

Prints a line for each pair: what is true, the verdicts, the median seconds, and, for every fourth repetition, what hyperfine's
means and deviations say: slower if the means differ by more than the tolerance and by more than both deviations together.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOLERANCE = 0.02
BUDGET_S = 20
SPIN = """#include <stdlib.h>
int main(int count, char **words) {
    volatile unsigned x = 0;
    for (long n = atol(words[count - 1]), i = 0; i < n; i++) x += i;
    return 0;
}
"""
PYTHON = "python3 -c 'import sys; x = 0\nfor i in range(int(sys.argv[1])): x += i * i'"
SQL = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {}) SELECT sum(x * x % 7) FROM c"


def pairs(folder: Path) -> list[tuple[str, str, str, str]]:
    """Name, what is true, base and head."""
    words = [f"{i * 7919 % 1000003} line {i * i % 9973}\n" for i in range(220_000)]
    for name, share in [("text", 1.0), ("text3", 1.03), ("text10", 1.1)]:
        (folder / name).write_text("".join(words[: int(200_000 * share)]))
        # Long enough for the program's start not to matter.
        (folder / f"{name}x20").write_text("".join(words[: int(200_000 * share)]) * 20)
    functions = [f"int f{i}(int x) {{ for (int i = 0; i < x; i++) x ^= i * {i}; return x; }}\n" for i in range(440)]
    (folder / "some.c").write_text("".join(functions[:400]))
    (folder / "more.c").write_text("".join(functions))
    (folder / "spin.c").write_text(SPIN)
    spin = folder / "spin"
    subprocess.check_call(["cc", "-O2", "-o", str(spin), str(folder / "spin.c")])
    start = time.monotonic()
    subprocess.check_call([str(spin), "100000000"])
    per_s = 100_000_000 / (time.monotonic() - start)

    def loops(seconds: float) -> str:
        return f"{spin} {int(per_s * seconds)}"

    text, text3, text10 = (folder / name for name in ("text", "text3", "text10"))
    compiler = f"cc -O1 -c -o {folder / 'out.o'}"
    return [
        ("gzip", "same", f"gzip -c {text}", f"gzip -c {text}"),
        ("gzip, 3 % more text", "slower", f"gzip -c {text}", f"gzip -c {text3}"),
        ("python3", "same", f"{PYTHON} 1500000", f"{PYTHON} 1500000"),
        ("python3, 10 % more", "slower", f"{PYTHON} 1500000", f"{PYTHON} 1700000"),
        ("sha256sum", "same", f"sha256sum {text}x20", f"sha256sum {text}x20"),
        ("sha256sum, 10 % more text", "slower", f"sha256sum {text}x20", f"sha256sum {text10}x20"),
        ("sqlite3", "same", f"sqlite3 :memory: '{SQL.format(300000)}'", f"sqlite3 :memory: '{SQL.format(300000)}'"),
        ("sqlite3, 10 % more", "slower", f"sqlite3 :memory: '{SQL.format(300000)}'", f"sqlite3 :memory: '{SQL.format(330000)}'"),
        ("cc", "same", f"{compiler} {folder / 'some.c'}", f"{compiler} {folder / 'some.c'}"),
        ("cc, 10 % more code", "slower", f"{compiler} {folder / 'some.c'}", f"{compiler} {folder / 'more.c'}"),
        ("a program of 0.5 ms", "same", loops(0.0001), loops(0.0001)),
        ("a program of 3 s, 3 % slower", "slower", loops(3), loops(3.09)),
    ]


def ours(holdpoint: str, folder: Path, base: str, head: str) -> tuple[str, float]:
    line = [holdpoint, "ab", "--base", base, "--head", head, "--tolerance", f"{TOLERANCE:.0%}", "--budget", str(BUDGET_S),
            "--artifacts", str(folder / "artifacts")]
    start = time.monotonic()
    subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - start
    return json.loads((folder / "artifacts/comparison.json").read_text())["verdict"], seconds


def hyperfine(folder: Path, base: str, head: str) -> str:
    export = folder / "hyperfine.json"
    line = ["hyperfine", "-N", "--warmup", "1", "--min-runs", "3", "--export-json", str(export), base, head]
    subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    was, now = json.loads(export.read_text())["results"]
    both = was["stddev"] + now["stddev"]
    change = now["mean"] - was["mean"]
    return "slower" if change > max(both, TOLERANCE * was["mean"]) else "not called"


def main() -> None:
    holdpoint = str(Path(sys.argv[1]).resolve())
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    busy = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(busy)]
    right = {"same": ("pass",), "slower": ("regressed",)}
    counts = {"right": 0, "wrong": 0, "open": 0}
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for title, truth, base, head in pairs(folder):
                found = [ours(holdpoint, folder, base, head) for _ in range(repetitions)]
                verdicts = [verdict for verdict, _ in found]
                kinds = ["right" if v in right[truth] else "open" if v == "inconclusive" else "wrong" for v in verdicts]
                for kind in kinds:
                    counts[kind] += 1
                line = f"{title}: {truth}; right {kinds.count('right')}, wrong {kinds.count('wrong')}, open {kinds.count('open')}"
                line += f"; {statistics.median(seconds for _, seconds in found):.1f} s"
                if shutil.which("hyperfine"):
                    called = [hyperfine(folder, base, head) for _ in range((repetitions + 3) // 4)]
                    line += f"; hyperfine: slower {called.count('slower')} of {len(called)}"
                print(line, flush=True)
    finally:
        for loop in loops:
            loop.kill()
    print(f"right {counts['right']}, wrong {counts['wrong']}, open {counts['open']}")


main()
