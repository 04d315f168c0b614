"""Times of a report beside those of other ways to time the same calls: clocks.py REPORT

For each workload timed by a CUDA graph: holdpoint's median; the median of torch's event pairs around single calls; and
triton.testing.do_bench_cudagraph. Then the host's time per sample beyond the device's, in the worker.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import triton.testing

from holdpoint import workloads
from holdpoint.device_calls import DeviceCalls
from holdpoint.ops import suite  # noqa: F401 (it declares the workloads)

NAMES = (
    "tile_ops.fusion_gate.dispatch",
    "attention.sdpa_flash",
    "attention.triton",
    "rms_norm.torch",
    "rms_norm.triton",
)
SAMPLES = 200


def event_pairs_us(call: Callable[[], object]) -> float:
    """The usual way: an event before and after each call, on an idle device."""
    times = []
    for _ in range(SAMPLES):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000.0)
    return float(statistics.median(times))


benchmarks = json.loads(Path(sys.argv[1]).read_text())["benchmarks"]
print("workload, holdpoint, event pairs and their ratio, do_bench_cudagraph and its ratio, host per sample")
for name in NAMES:
    workload = workloads.REGISTRY.workloads[name]
    arguments = workload.draw(1)
    ours = benchmarks[name]["p50_ms"] * 1000.0

    def call(workload: workloads.Workload = workload, arguments: tuple[object, ...] = arguments) -> object:
        return workload.function(*arguments)

    for _ in range(10):
        call()
    pairs = event_pairs_us(call)
    graph = triton.testing.do_bench_cudagraph(call, rep=50, return_mode="median") * 1000.0
    calls = DeviceCalls(workload.function, as_graph=True, is_cold=False)
    calls.load(arguments)
    calls_per_sample = max(1, round(500.0 / ours))
    calls.take(5, calls_per_sample)
    begin_ns = time.perf_counter_ns()
    samples = calls.take(100, calls_per_sample)
    beyond_us = (time.perf_counter_ns() - begin_ns - sum(samples.elapsed_ns)) / 100 / 1000
    others = f"{pairs:9.3f} µs {pairs / ours:7.3f} {graph:9.3f} µs {graph / ours:7.3f}"
    print(f"{name:32} {ours:9.3f} µs {others} {beyond_us:9.1f} µs")
