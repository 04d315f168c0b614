#!/usr/bin/env python3
"""Seconds to read a file of a million samples in each format of another tool (docs/imports.md).

    campaigns/large-files.py target/release/holdpoint [SAMPLES [FORMAT …]]

Writes the files to a temporary folder and compares each with a small one of the same format, so that the time is that of reading
the large one. Prints its size, the best of three times, CPU time among them, which other processes disturb less, and the exit code.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = 100
RUNS = 3


def times(count: int, scale: float) -> list[float]:
    return [scale * (1 + random.random() / 10) for _ in range(count)]


def names(count: int) -> list[tuple[str, int]]:
    """Benchmarks and the number of samples of each."""
    many = min(NAMES, count)
    return [(f"bench/{i}", count // many) for i in range(many)]


def interleaved(count: int) -> list[str]:
    """A name for each sample; the benchmarks take turns."""
    return [f"bench/{i % NAMES}" for i in range(count)]


def criterion(folder: Path, count: int) -> Path:
    for name, each in names(count):
        place = folder / name / "new"
        place.mkdir(parents=True)
        (place / "benchmark.json").write_text(json.dumps({"full_id": name}))
        sample = {"sampling_mode": "Flat", "iters": [10.0] * each, "times": times(each, 1e5)}
        (place / "sample.json").write_text(json.dumps(sample))
    return folder


def google_benchmark(count: int) -> str:
    context = {"date": "2026-11-16T00:00:00+00:00", "host_name": "h", "library_build_type": "release"}
    rows = [
        {
            "name": name, "family_index": 0, "per_family_instance_index": 0, "run_name": name, "run_type": "iteration",
            "repetitions": count // NAMES, "repetition_index": i // NAMES, "threads": 1, "iterations": 1000,
            "real_time": ns, "cpu_time": ns, "time_unit": "ns",
        }
        for i, (name, ns) in enumerate(zip(interleaved(count), times(count, 1e4)))
    ]
    return json.dumps({"context": context, "benchmarks": rows}, indent=2)


def pytest_benchmark(count: int) -> str:
    rows = []
    for name, each in names(count):
        data = times(each, 1e-4)
        rows.append({"name": name, "fullname": name, "stats": {"median": data[0], "data": data}})
    return json.dumps({"machine_info": {}, "commit_info": {}, "benchmarks": rows}, indent=4)


def vitest(count: int) -> str:
    rows = [{"name": name, "median": each[0], "samples": []} for name, each in ((n, times(k, 1.0)) for n, k in names(count))]
    return json.dumps({"files": [{"filepath": "/a.bench.ts", "groups": [{"fullName": "a", "benchmarks": rows}]}]}, indent=2)


def hyperfine(count: int) -> str:
    rows = [{"command": name, "mean": 0.1, "times": times(each, 0.1)} for name, each in names(count)]
    return json.dumps({"results": rows}, indent=2)


def go_test(count: int) -> str:
    lines = zip(interleaved(count), times(count, 1e4))
    return "".join(f"Benchmark{name}-8   \t   12345\t     {ns:.1f} ns/op\n" for name, ns in lines)


def asv(count: int) -> str:
    results = {}
    for name, each in names(count):
        data = times(each, 1e-4)
        results[f"{name}.time_it"] = [[data[0]], [], "v", 0, 0.1, [0], [1], [0], [1], [1], [each], [data]]
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]
    return json.dumps({"commit_hash": "0" * 40, "result_columns": columns, "results": results, "version": 2})


def benchmark_tools(count: int) -> str:
    trial = lambda each: ["Trial", {"params": ["Parameters", {}], "times": times(each, 1e4), "gctimes": [0.0] * each}]
    data = {name: trial(each) for name, each in names(count)}
    return json.dumps([{"Julia": "1.11", "BenchmarkTools": "1.6"}, [["BenchmarkGroup", {"data": data, "tags": []}]]])


def trtexec(count: int) -> str:
    """Five times of each inference."""
    rows = []
    for i in range(count // 5):
        at, [h2d, compute, d2h] = 2.0 * i, times(3, 1.0)
        row = {"startEnqMs": at, "endEnqMs": at + 0.125, "startH2dMs": at, "endH2dMs": at + h2d, "startComputeMs": at}
        row |= {"endComputeMs": at + compute, "startD2hMs": at, "endD2hMs": at + d2h, "h2dMs": h2d}
        row |= {"computeMs": compute, "d2hMs": d2h, "latencyMs": h2d + compute + d2h}
        rows.append(json.dumps(row))
    return "[\n  " + "\n, ".join(rows) + "\n]\n"


def torch_benchmark(count: int) -> str:
    task = lambda name: {"stmt": "x", "setup": "pass", "global_setup": "", "label": name, "num_threads": 1}
    rows = [{"number_per_run": 10, "raw_times": times(each, 1e-3), "task_spec": task(name)} for name, each in names(count)]
    return json.dumps(rows)


def vllm(count: int) -> str:
    """Half of the samples are times to the first token, half gaps between tokens."""
    half = max(count // 2, 2)
    run = {"request_throughput": 9.0, "total_token_throughput": 99.0, "completed": half, "num_prompts": half}
    run |= {"median_ttft_ms": 50.0, "median_itl_ms": 10.0, "ttfts": times(half, 0.05)}
    run |= {"itls": [[gap] for gap in times(half, 0.01)], "errors": [""] * half}
    return json.dumps(run)


def sglang(count: int) -> str:
    """Ten numbers that are compared in each run."""
    keys = [f"{statistic}_{name}_ms" for statistic in ("median", "mean", "p99") for name in ("ttft", "tpot", "itl")]
    head = {"backend": "sglang", "dataset_name": "random", "request_rate": 4.0, "request_throughput": 9.8}
    run = lambda: head | dict(zip(keys, times(9, 10.0))) | {"output_throughput": times(1, 100.0)[0]}
    return "".join(json.dumps(run()) + "\n" for _ in range(max(count // 10, 1)))


def github_action_benchmark(count: int) -> str:
    rows = zip(interleaved(count), times(count, 10.0))
    return json.dumps([{"name": name, "unit": "us/iter", "value": us, "range": "± 0.1"} for name, us in rows], indent=2)


def data_js(count: int) -> str:
    run = lambda: {"commit": {"id": "0"}, "date": 1, "tool": "go", "benches": json.loads(github_action_benchmark(NAMES))}
    data = {"lastUpdate": 1, "repoUrl": "", "entries": {"Benchmark": [run() for _ in range(max(count // NAMES, 1))]}}
    return "window.BENCHMARK_DATA = " + json.dumps(data, indent=2)


def bmf(count: int) -> str:
    return json.dumps({f"bench/{i}": {"latency": {"value": ns}} for i, ns in enumerate(times(count, 1e4))}, indent=2)


def csv(count: int) -> str:
    rows = zip(interleaved(count), times(count, 10.0))
    return "name,value,unit\n" + "".join(f"{name},{us},us\n" for name, us in rows)


def wide_csv(count: int) -> str:
    rows = zip(*(iter(times(count // 2 * 2, 10.0)),) * 2)
    return "iteration,latency_ms,compute_ms\n" + "".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(rows))


def triton_testing(count: int) -> str:
    rows = zip(*(iter(times(count // 2 * 2, 10.0)),) * 2)
    return "N,Triton (ms),Torch (ms)\n" + "".join(f"{i}.000000,{a:.6f},{b:.6f}\n" for i, (a, b) in enumerate(rows))


def tritonbench(count: int) -> str:
    rows = zip(*(iter(times(count // 2 * 2, 10.0)),) * 2)
    return "x;aten-latency;triton-latency\r\n" + "".join(f"({i}, 1);{a};{b}\r\n" for i, (a, b) in enumerate(rows))


FORMATS = [
    google_benchmark, pytest_benchmark, vitest, hyperfine, go_test, asv, benchmark_tools, trtexec, torch_benchmark, vllm, sglang,
    github_action_benchmark, data_js, bmf, csv, wide_csv, triton_testing, tritonbench,
]


def write(path: Path, make, count: int) -> Path:
    random.seed(1)
    if make is criterion:
        return criterion(path, count)
    path.write_text(make(count))
    return path


def cpu_s() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    print(f"{'format':<25} {'MB':>6} {'seconds':>8} {'CPU s':>8}  exit code")
    wanted = sys.argv[3:]
    for make in [make for make in [criterion, *FORMATS] if not wanted or make.__name__ in wanted]:
        with tempfile.TemporaryDirectory() as folder:
            large = write(Path(folder) / "large", make, count)
            small = write(Path(folder) / "small", make, NAMES * 2)
            files = [large] if large.is_file() else [path for path in large.rglob("*") if path.is_file()]
            size_mb = sum(path.stat().st_size for path in files) / 1e6
            taken, used = [], []
            for _ in range(RUNS):
                begun, before = time.perf_counter(), cpu_s()
                done = subprocess.run([program, "compare", large, "--baseline", small, "--quiet"], capture_output=True)
                taken.append(time.perf_counter() - begun)
                used.append(cpu_s() - before)
            error = done.stderr.decode()[:200]
            line = f"{make.__name__:<25} {size_mb:>6.0f} {min(taken):>8.2f} {min(used):>8.2f}  {done.returncode} {error}"
            print(line.rstrip(), flush=True)


if __name__ == "__main__":
    main()
