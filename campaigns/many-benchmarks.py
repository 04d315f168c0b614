#!/usr/bin/env python3
"""How long does a gate take on a crate of many Criterion benchmarks whose code has not changed?

    campaigns/many-benchmarks.py target/release/holdpoint [--benchmarks 200] [--flags=--pin]

Makes a crate with that many benchmarks of 50 ns to 1 ms in a temporary repository, commits a comment, and gates that commit against
the one before. Prints the seconds, the verdicts, and the benchmarks that took longest.
"""

import argparse
import collections
import json
import subprocess
import tempfile
import time
from pathlib import Path

CARGO = """[package]
name = "many"
version = "0.1.0"
edition = "2021"

[dev-dependencies]
criterion = { version = "0.8", default-features = false }

[[bench]]
name = "many"
harness = false

[workspace]
"""
LIBRARY = """//! Work of a chosen length.

pub fn mix(count: u64) -> u64 {
    (0..count).fold(count, |sum, i| (sum ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

pub fn sort(count: u64) -> u64 {
    let mut values: Vec<u64> = (0..count).map(mix_one).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

fn mix_one(value: u64) -> u64 {
    (value ^ 0x5555).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}
"""
BENCHES = """use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    for i in 0..COUNT_u64 / 2 {
        let length = 50 << (i % 11);
        c.bench_function(&format!("mix/{length}/{i}"), |b| b.iter(|| many::mix(black_box(length))));
        c.bench_function(&format!("sort/{length}/{i}"), |b| b.iter(|| many::sort(black_box(length))));
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
"""


def git(folder: Path, *words: str) -> None:
    line = ["git", "-c", "user.name=campaign", "-c", "user.email=campaign@example.org", *words]
    subprocess.run(line, cwd=folder, check=True, capture_output=True)


def repository(folder: Path, count: int) -> None:
    for name, text in [("Cargo.toml", CARGO), ("src/lib.rs", LIBRARY), ("benches/many.rs", BENCHES.replace("COUNT", str(count))),
                       (".gitignore", "target\nartifacts\nperf.toml\n"), ("perf.toml", '[harness]\nkind = "criterion"\n')]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    subprocess.run(["cargo", "generate-lockfile"], cwd=folder, check=True, capture_output=True)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    (folder / "src/lib.rs").write_text(LIBRARY + "\n// Unchanged.\n")
    git(folder, "commit", "--quiet", "--all", "--message", "unchanged")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdpoint", type=lambda name: str(Path(name).resolve()))
    parser.add_argument("--benchmarks", type=int, default=200)
    parser.add_argument("--flags", default="", help="more flags for the gate")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository(folder, args.benchmarks)
        line = [args.holdpoint, "gate", "--suite", "perf.toml", "--against", "HEAD~1", "--measure-same-code", *args.flags.split()]
        start = time.monotonic()
        # On a terminal this shows the progress.
        subprocess.run(line, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        checks = json.loads((folder / "artifacts/comparison.json").read_text())["checks"]
        report = json.loads((folder / "artifacts/ab.json").read_text())
    verdicts = collections.Counter(check["verdict"] for check in checks)
    print(f"{len(checks)} benchmarks: {seconds:.0f} s, of which {report['elapsed_s']:.0f} s measuring; {dict(verdicts)}")
    spent = sorted(((one["spent_s"], len(one["units"]), name) for name, one in report["workloads"].items()), reverse=True)
    units = sorted(count for _, count, _ in spent)
    print(f"units of a benchmark: median {units[len(units) // 2]}, most {units[-1]}")
    for spent_s, count, name in spent[:5]:
        print(f"  {name}: {spent_s:.1f} s in {count} units")


main()
