#!/usr/bin/env python3
"""Noise per second of holdpoint's units beside a yardstick, taken in turns.

The figure is the sd of a unit times the root of its seconds: what one second of measuring is worth, whatever the length of a
unit. The yardstick is a C program that runs two processes on one CPU in turns and prints a line of two times for each pair of
turns; a run of it for 0.3 s is one of its units.

    campaigns/noise.py target/release/holdpoint pair.c [TURNS] [BUSY_LOOPS]
"""

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN_S = 0.3
SECONDS = 3
# Values of a tensor of the workload, and what its suite says.
WORKLOADS = {
    "fusion_gate": (64 * 128 * 128, "shape = [1, 64, 128, 128]"),
    "tile_ssm": (256 * 128, 'shape = [1, 256, 128]\nparams = { direction = "bidirectional", merge_mode = "avg" }'),
}


def merit(xs: list[float], seconds: float) -> float:
    middle = statistics.median(xs)
    # Where most runs agree to the nanosecond, the median deviation is 0.
    sd = 1.4826 * statistics.median(abs(x - middle) for x in xs) or max(statistics.stdev(xs), 1e-6)
    return sd * math.sqrt(seconds)


def yardstick(program: Path, values: int) -> float:
    xs: list[float] = []
    start = time.monotonic()
    while time.monotonic() - start < SECONDS:
        line = [str(program), str(values), "20", "4", str(RUN_S), "0"]
        pairs = [tuple(map(int, row.split())) for row in subprocess.check_output(line, text=True).splitlines()]
        xs.append(statistics.median(math.log(head / base) for base, head in pairs))
    return merit(xs, (time.monotonic() - start) / len(xs))


def units(holdpoint: str, folder: Path, name: str) -> float:
    suite = folder / f"{name}.toml"
    worker = f"{holdpoint} worker --suite {suite}"
    # A tolerance that nothing meets, so that the budget is spent.
    line = [holdpoint, "ab", "--suite", str(suite), "--base-worker", worker, "--head-worker", worker,
            "--tolerance", "0.01%", "--budget", str(SECONDS), "--artifacts", str(folder / "artifacts")]
    subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    workload = json.loads((folder / "artifacts/ab.json").read_text())["workloads"][name]
    xs = [unit["x"] for unit in workload["units"]]
    return merit(xs, workload["spent_s"] / len(xs))


def main() -> None:
    holdpoint, source = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(int((sys.argv[4:] or ["0"])[0]))]
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            programs = {flag: folder / f"pair{flag}" for flag in ("-O2", "-O3")}
            for flag, program in programs.items():
                subprocess.check_call(["cc", flag, "-march=native", "-o", str(program), source, "-lm"])
            for workload, (values, keys) in WORKLOADS.items():
                table = f'[[workload]]\nname = "{workload}"\nop = "{workload}"\n{keys}\n'
                (folder / f"{workload}.toml").write_text(f'schema_version = 1\nname = "{workload}"\n{table}')
                ours: list[float] = []
                theirs: dict[str, list[float]] = {flag: [] for flag in programs}
                for _ in range(turns):
                    ours.append(units(holdpoint, folder, workload))
                    for flag, program in programs.items():
                        theirs[flag].append(yardstick(program, values))
                print(f"{workload}: {statistics.median(ours):.4f} ({min(ours):.4f} to {max(ours):.4f})")
                for flag, found in theirs.items():
                    print(f"  yardstick {flag}: {statistics.median(found):.4f} ({min(found):.4f} to {max(found):.4f}),"
                          f" ours is {statistics.median(ours) / statistics.median(found):.1f} times that")
    finally:
        for loop in loops:
            loop.kill()


main()
