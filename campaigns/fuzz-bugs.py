"""Fuzzes examples/attention.cu with a bug planted in it, one bug at a time, on a CUDA device: found after how many cases?

    campaigns/fuzz-bugs.py target/release/holdpoint [--seeds 1,2,3] [--cases 300] [--right 3000] [--jobs 8] [--bug-dtype e4m3]

The bugs are those of crates/cli/tests/fuzz/planted_cuda.py. The right kernel and holdpoint's own are fuzzed with --right cases in every
element type; none may fail or be called inaccurate. Several processes run at once, so times of cases are those of a busy device. Reports
go to --output. Exit code 1 where a bug was missed or a right kernel accused.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILTIN = """schema_version = 1
name = "builtin"
[[workload]]
name = "attention"
op = "attention"
worker = "cuda"
shape = [2, 4, 100, 64]
dtype = "f16"
"""


def fuzz(options: argparse.Namespace, suite: pathlib.Path, only: str, name: str, *arguments: str) -> dict:
    """The kernel of the report."""
    output = options.output / f"{name}.json"
    command = [options.holdpoint, "fuzz", "--suite", str(suite), only, "--output", str(output), "--save", str(options.output / name)]
    ran = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        return {"problem": f"exit {ran.returncode}: {ran.stdout}{ran.stderr}"}
    return json.loads(output.read_text())["kernels"][0]


def describe(kernel: dict) -> str:
    """After how many cases something was found, and of which kind."""
    if "problem" in kernel:
        return kernel["problem"]
    found = kernel["failures"] + [kernel[key] for key in ("less_accurate",) if key in kernel]
    return f"{found[0]['found_after']} {found[0]['finding']['kind']}" if found else "-"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("holdpoint", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--cases", default="300")
    parser.add_argument("--right", default="3000")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--bug-dtype", default="f16")
    parser.add_argument("--dtypes", default="f16,bf16,f32,e4m3")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("fuzz-bugs"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    seeds, missed = options.seeds.split(",") if options.seeds else [], 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        planted = ROOT / "crates/cli/tests/fuzz/planted_cuda.py"
        subprocess.run([sys.executable, planted, ROOT / "examples/attention.cu", folder], check=True)
        suite, builtin = pathlib.Path(folder) / "planted.toml", pathlib.Path(folder) / "builtin.toml"
        builtin.write_text(BUILTIN)
        right, bugs = {}, {}
        for name, file, only in (("example", suite, "right"), ("builtin", builtin, "attention")):
            for dtype in options.dtypes.split(","):
                if options.right != "0":
                    arguments = ("--cases", options.right, "--dtype", dtype)
                    right[f"{name} {dtype}"] = pool.submit(fuzz, options, file, only, f"right-{name}-{dtype}", *arguments)
        for bug in (path.stem for path in sorted(pathlib.Path(folder).glob("*.cu"))):
            arguments = ("--cases", options.cases, "--fail-fast", "--accuracy", "fail", "--dtype", options.bug_dtype, "--seed")
            bugs[bug] = [pool.submit(fuzz, options, suite, bug, f"bug-{bug}-{seed}", *arguments, seed) for seed in seeds]
        print(f"{'bug':28} found after how many cases, with seeds {options.seeds}")
        for bug, running in bugs.items():
            after = [describe(kernel.result()) for kernel in running]
            missed += sum((cases == "-") != (bug == "right") for cases in after)
            print(f"{bug:28} {', '.join(after)}", flush=True)
        for name, running in right.items():
            kernel = running.result()
            missed += describe(kernel) != "-" or kernel["cases_count"] == 0
            if "problem" not in kernel:
                counts = f"{kernel['passed_count']} of {kernel['cases_count']} passed, {kernel['refused_count']} refused"
                print(f"right {name}: {counts}, {1e3 * kernel['case_s_p50']:.2f} ms a case in the median", end=", ")
            print(describe(kernel), flush=True)
    sys.exit(missed > 0)


main()
