#!/usr/bin/env python3
"""Baselines recorded on a quiet, a loaded or a changing machine, then gates of slower code: does any pass?

    campaigns/blind-baselines.py target/release/holdpoint [PAIRS] [SEED]

For each pair: a baseline of the suite `cpu` is recorded beside 0, 2, or now 0 and now 2 busy loops, and then code that is slower by
5 to 600 per cent is gated against it beside 0 or 2. A row that passes at the tolerance of 2 % is a slowdown that went through.
"""

import collections
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
NAMES = ["infer", "tile_ssm", "tile_pack"]


def busy(count: int) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]


def stop(loops: list[subprocess.Popen[bytes]]) -> None:
    for loop in loops:
        loop.kill()
        loop.wait()


def main() -> None:
    holdpoint = str(Path(sys.argv[1]).resolve())
    pairs, seed = (int(word) for word in [*sys.argv[2:4], *["20", "1"][len(sys.argv) - 2 :]])
    drawn, verdicts = random.Random(seed), collections.Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head, *workloads = (ROOT / "suites/cpu.toml").read_text().split("[[workload]]")
        kept = [text for text in workloads if any(f'name = "{name}"' in text for name in NAMES)]
        suite = "[[workload]]".join([head, *kept]) + '\n[workers.builtin]\ncommand = ["sh", "worker.sh"]\n'
        (folder / "cpu.toml").write_text(suite)
        worker = f"exec '{holdpoint}' worker --suite cpu --worker builtin --slowdown $(cat slowdown)"
        (folder / "worker.sh").write_text(worker)

        def run(*words: str) -> None:
            command = [holdpoint, *words, "--suite", "cpu.toml", "--quiet"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode >= 64:
                sys.exit(f"{words}: {done.stderr}")

        for pair in range(pairs):
            recorded, gated = drawn.choice(["quiet", "loaded", "mixed"]), drawn.choice([0, 2])
            share = round(5 * 120 ** drawn.random())
            (folder / "slowdown").write_text("0%")
            reports = []
            for at in range(RUNS):
                loops = busy(0 if recorded == "quiet" or recorded == "mixed" and at % 2 == 0 else 2)
                time.sleep(0.2)
                reports.append(f"run-{at}.json")
                run("run", "-o", reports[-1])
                stop(loops)
            command = [holdpoint, "baseline", "record", *reports, "--baseline", "baseline.json"]
            subprocess.run(command, cwd=folder, capture_output=True)
            (folder / "slowdown").write_text(f"{share}%")
            loops = busy(gated)
            run("gate", "--baseline", "baseline.json", "--tolerance", "2%", "--artifacts", "artifacts")
            stop(loops)
            checks = json.loads((folder / "artifacts/comparison.json").read_text())["checks"]
            found = {check["metric"]: check["verdict"] for check in checks}
            verdicts.update(found.values())
            print(json.dumps({"recorded": recorded, "loops": gated, "slower_pct": share, "verdicts": found}), flush=True)
    print(dict(verdicts))


if __name__ == "__main__":
    main()
