"""Fuzzes examples/attention.cu with a bug planted in it, one after the other, on a CUDA device: found after how many cases?

    campaigns/fuzz-bugs.py target/release/holdpoint [--seeds 1,2,3] [--cases 300] [--right 3000]

The bugs are those of crates/cli/tests/fuzz/planted_cuda.py. Then the right kernel and holdpoint's own are fuzzed with --right cases in
every element type; none may fail or be called inaccurate. Reports go to --output. Exit code 1 where a bug was missed or a right
kernel accused.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

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


def fuzz(holdpoint: str, suite: pathlib.Path, output: pathlib.Path, *arguments: str) -> list:
    """The kernels of the report."""
    save = output.parent / "cases"
    command = [holdpoint, "fuzz", "--suite", str(suite), "--output", str(output), "--save", str(save), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return json.loads(output.read_text())["kernels"]


def describe(kernel: dict) -> str:
    """After how many cases something was found, and of which kind."""
    found = kernel["failures"] + [kernel[key] for key in ("less_accurate",) if key in kernel]
    return f"{found[0]['found_after']} {found[0]['finding']['kind']}" if found else "-"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("holdpoint")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--cases", default="300")
    parser.add_argument("--right", default="3000")
    parser.add_argument("--dtypes", default="f16,bf16,f32,e4m3")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("fuzz-bugs"))
    options = parser.parse_args()
    holdpoint = str(pathlib.Path(options.holdpoint).resolve())
    options.output.mkdir(parents=True, exist_ok=True)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        planted = ROOT / "crates/cli/tests/fuzz/planted_cuda.py"
        subprocess.run([sys.executable, planted, ROOT / "examples/attention.cu", folder], check=True)
        suite, found = pathlib.Path(folder) / "planted.toml", {}
        seeds = options.seeds.split(",")
        for seed in seeds:
            output = options.output / f"bugs-{seed}.json"
            for kernel in fuzz(holdpoint, suite, output, "--cases", options.cases, "--seed", seed, "--fail-fast", "--accuracy", "fail"):
                found.setdefault(kernel["workload"], []).append(describe(kernel))
        print(f"{'bug':28} found after, with seeds {options.seeds}")
        for name, after in found.items():
            missed += sum((cases == "-") != (name == "right") for cases in after)
            print(f"{name:28} {', '.join(after)}", flush=True)
        builtin = pathlib.Path(folder) / "builtin.toml"
        builtin.write_text(BUILTIN)
        example = options.dtypes.replace(",e4m3", "")
        for name, file, only, dtypes in (("example", suite, "right", example), ("builtin", builtin, "attention", options.dtypes)):
            output = options.output / f"right-{name}.json"
            for kernel in fuzz(holdpoint, file, output, only, "--cases", options.right, "--dtype", dtypes):
                missed += describe(kernel) != "-" or kernel["cases_count"] == 0
                median_ms = 1e3 * kernel["case_s_p50"]
                accuracy = kernel["errors"].get("accuracy", {})
                print(f"right {name} {kernel['dtype']}: {kernel['passed_count']} of {kernel['cases_count']} passed, "
                      f"{describe(kernel)}, {median_ms:.2f} ms a case in the median, {accuracy}", flush=True)
    sys.exit(missed > 0)


main()
