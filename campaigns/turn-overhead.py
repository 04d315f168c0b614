#!/usr/bin/env python3
"""What a turn of one benchmark costs beyond its harness: turns of a comparison beside the same harness process alone.

    campaigns/turn-overhead.py target/release/holdpoint [--kinds criterion,go] [--repeats 5]

For each harness, one benchmark of its folder in examples/ is compared with itself in a few units, and the time of the comparison is
divided by its turns: whatever holdpoint does in between counts. Then the harness runs as often by itself, with the same options.
Prints the median of both over the repeats, and the difference.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# Folder in examples/, the benchmark, and the options of a turn (docs/harness.md).
KINDS = {
    "criterion": ("words/count", ["--bench", "--noplot", "--warm-up-time", "0.02", "--measurement-time", "0.04", "--nresamples", "2",
                                  "--sample-size", "20", "^words/count$"]),
    "google-benchmark": ("BM_count/2000", ["--benchmark_filter=^BM_count/2000$", "--benchmark_min_time=0.002", "--benchmark_repetitions=20",
                                   "--benchmark_report_aggregates_only=false", "--benchmark_out={out}", "--benchmark_out_format=json"]),
    "pytest-benchmark": ("test_count[2000]", ["-q", "-p", "no:cacheprovider", "--benchmark-only", "--benchmark-warmup=off",
                                        "--benchmark-json={out}", "--benchmark-min-rounds=20", "--benchmark-max-time=0.05",
                                        "test_words.py::test_count[2000]"]),
    "go": ("BenchmarkCount/words=2000", ["-test.run=^$", "-test.bench=^BenchmarkCount$/^words=2000$", "-test.benchtime=2ms", "-test.count=20"]),
}
UNITS = 8


def program(kind: str, folder: Path) -> list[str]:
    """Builds the harness, and returns what starts it."""
    if kind == "criterion":
        line = ["cargo", "bench", "--no-run", "--message-format=json"]
        printed = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout
        messages = [json.loads(text) for text in printed.splitlines() if text.startswith("{")]
        return [next(m["executable"] for m in messages if m.get("executable") and "bench" in m["target"]["kind"])]
    if kind == "google-benchmark":
        subprocess.run(["make"], cwd=folder, capture_output=True, check=True)
        return ["./bench"]
    if kind == "go":
        subprocess.run(["go", "test", "-c", "-o", "bare.test"], cwd=folder, capture_output=True, check=True)
        return ["./bare.test"]
    return ["python3", "-m", "pytest"]


def in_comparison(holdpoint: str, folder: Path) -> float:
    """Milliseconds of a turn, whatever is done in it."""
    artifacts = folder / "artifacts"
    line = [holdpoint, "ab", "--base-suite", "perf.toml", "--head-suite", "perf.toml", "--units-max", str(UNITS), "--tolerance", "0.1%",
            "--quiet", "--artifacts", str(artifacts)]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    try:
        report = json.loads((artifacts / "ab.json").read_text())
    except OSError:
        sys.exit(f"{' '.join(line)}:\n{done.stdout}{done.stderr}")
    units = [unit for workload in report["workloads"].values() for unit in workload["units"]]
    if not units:
        sys.exit(f"nothing was measured:\n{done.stdout}{done.stderr}")
    # And the turn that shows how long a call is.
    turns = 1 + 2 * sum(len(unit["rounds"]) for unit in units)
    return 1e3 * report["elapsed_s"] / turns


def alone(line: list[str], folder: Path, variables: dict[str, str]) -> float:
    """Milliseconds of the harness's process."""
    start = time.monotonic()
    subprocess.run(["env", *(f"{name}={value}" for name, value in variables.items()), *line], cwd=folder, stdin=subprocess.DEVNULL,
                   capture_output=True, check=True)
    return 1e3 * (time.monotonic() - start)


def measure(kind: str, holdpoint: str, repeats: int) -> tuple[float, float]:
    benchmark, options = KINDS[kind]
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = Path(scratch) / "project", Path(scratch) / "out"
        shutil.copytree(EXAMPLES / kind, folder, ignore=shutil.ignore_patterns("target"))
        suite = (folder / "perf.toml").read_text()
        (folder / "perf.toml").write_text(suite.replace("[harness]", f'[harness]\nonly = ["{benchmark}"]'))
        line = [*program(kind, folder), *(option.format(out=out) for option in options)]
        ours, bare = [], []
        for _ in range(repeats):
            ours.append(in_comparison(holdpoint, folder))
            bare += [alone(line, folder, {"CRITERION_HOME": str(out)} if kind == "criterion" else {}) for _ in range(2 * UNITS)]
            if out.is_dir():
                shutil.rmtree(out)
        return statistics.median(ours), statistics.median(bare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdpoint", type=lambda name: str(Path(name).resolve()))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print("harness | a turn, ms | the harness alone, ms | beyond it, ms")
    print("---|--:|--:|--:")
    for kind in args.kinds.split(","):
        ours, bare = measure(kind, args.holdpoint, args.repeats)
        print(f"{kind} | {ours:.0f} | {bare:.0f} | {ours - bare:+.0f}", flush=True)


main()
