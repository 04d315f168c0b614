"""The same calls timed by holdpoint's Python worker, by torch's events and by nvbench: nvbench_times.py OUT

Needs the package cuda-bench, NVIDIA's binding of nvbench. Each tool times a graph of calls and single calls, with the
L2 cache emptied by the same means before each: nvbench has no other way. Then the host's time per sample beyond the
device's, in the worker.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from cuda.bench.cu13 import _nvbench as nvbench

from holdpoint import workloads
from holdpoint.device_calls import DeviceCalls, repeat_call
from holdpoint.devices import open_device
from holdpoint.ops import suite  # noqa: F401 (it declares the workloads)

NAMES = ("attention.sdpa_flash", "attention.sdpa_cudnn", "attention.triton", "rms_norm.torch", "rms_norm.triton")
SAMPLES = 60
# How long a sample of holdpoint's is, about.
SAMPLE_US = 500.0

Call = Callable[[], object]


def scale_call() -> Call:
    source = torch.randn(1 << 27, device="cuda")
    target = torch.empty_like(source)
    return lambda: torch.mul(source, 2.0, out=target)


def matmul_call() -> Call:
    a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
    return lambda: a @ b


def workload_call(name: str) -> Call:
    workload = workloads.REGISTRY.workloads[name]
    arguments = workload.draw(1)
    return lambda: workload.function(*arguments)


CALLS: dict[str, Call] = {"scale.512MiB": scale_call(), "matmul.2048": matmul_call()}
CALLS.update({name: workload_call(name) for name in NAMES})


def holdpoint_us(call: Call, *, as_graph: bool) -> float:
    """The median time of a call after a flush."""
    timed = DeviceCalls(call, as_graph=as_graph, is_cold=True)
    timed.load(())
    timed.take(5, 1)
    # One at a time, as the others: in a queue of flushes and calls a device is up to 2 % slower than after a pause.
    elapsed_ns = [timed.take(1, 1).elapsed_ns[0] for _ in range(SAMPLES)]
    timed.close()
    return statistics.median(elapsed_ns) / 1000


def host_us(call: Call, calls: int, samples_count: int) -> tuple[float, float]:
    """Per sample of a run: the host's time beyond the device's work, and the device's time between the samples."""
    timed = DeviceCalls(call, as_graph=True, is_cold=False)
    timed.load(())
    timed.take(samples_count, calls)
    beyond, between = [], []
    with timed.device.stream():
        intervals = [timed.replay_of(*timed.graph(calls))] * samples_count
        timed.measure(intervals)
        for _ in range(20):
            begin_ns = time.perf_counter_ns()
            times_ns = timed.measure(intervals)
            wall_ns = time.perf_counter_ns() - begin_ns
            busy_ns = timed.device.elapsed_ms(timed.events[0][0], timed.events[samples_count - 1][1]) * 1e6
            beyond.append((wall_ns - busy_ns) / samples_count / 1000)
            between.append((busy_ns - sum(times_ns)) / samples_count / 1000)
    timed.close()
    return statistics.median(beyond), statistics.median(between)


def events_us(call: Call) -> float:
    """Torch's events around a call in a queue, without holdpoint."""
    times = []
    for _ in range(SAMPLES):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400_000)
        flush()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000)
    return statistics.median(times)


def capture(call: Call, calls: int) -> Call:
    """A graph of so many calls, by torch's own function."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    return graph.replay


@functools.cache
def flushed() -> Any:
    return torch.empty(torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda")


def flush() -> None:
    """As nvbench does it, which leaves the cache full of what is still to be written."""
    flushed().zero_()


@functools.cache
def stream_at(address: int) -> Any:
    return torch.cuda.ExternalStream(address)


def register(name: str, call: Call) -> None:
    def benchmark(state: Any) -> None:
        def launch(launch: Any) -> None:
            with torch.cuda.stream(stream_at(launch.get_stream().addressof())):
                call()

        state.exec(launch, batched=False)

    benchmark.__name__ = name
    nvbench.register(benchmark)


def nvbench_us(out: Path) -> dict[str, float]:
    """By benchmark: the median of nvbench's samples."""
    path = out / "nvbench.json"
    words = ["bench", "--min-samples", str(SAMPLES), "--min-time", "0.03", "--jsonbin", str(path), "--quiet"]
    nvbench.run_all_benchmarks(words)
    found = {}
    for benchmark in json.loads(path.read_text())["benchmarks"]:
        values = {summary["tag"]: value_of(summary) for summary in benchmark["states"][0]["summaries"]}
        found[benchmark["name"]] = 1e6 * (values["nv/cold/time/gpu/median"] or 0.0)
    return found


def value_of(summary: Any) -> float | None:
    return next((float(each["value"]) for each in summary["data"] if each["type"] == "float64"), None)


def measure(name: str, call: Call) -> dict[str, Any]:
    """The times of a call by holdpoint and by torch; nvbench is told to take them as well."""
    calls = max(1, round(SAMPLE_US / events_us(call)))
    replay = capture(call, calls)
    register(f"{name}.graph", replay)
    register(f"{name}.single", call)
    # A run of the scheduler has eight samples, about.
    beyond_us, between_us = host_us(call, calls, 8)
    return {
        "name": name,
        "calls_per_graph": calls,
        "graph_us": holdpoint_us(lambda: repeat_call(call, calls), as_graph=True),
        "events_graph_us": events_us(replay),
        "single_us": holdpoint_us(call, as_graph=False),
        "events_single_us": events_us(call),
        "host_us": beyond_us,
        "between_us": between_us,
    }


def beside(value: float, own: float) -> str:
    return f"{value:9.2f} ({100 * (value / own - 1):+.1f} %)"


out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
for call in CALLS.values():
    for _ in range(3):
        call()
open_device().flush = flush  # type: ignore[method-assign]
rows = [measure(name, call) for name, call in CALLS.items()]
by_nvbench = nvbench_us(out)
print(f"torch {torch.__version__}; µs, and how far from holdpoint's")
print("a graph of calls: holdpoint, torch's events, nvbench | one call: the same | host per sample, between samples")
for row in rows:
    words = [f"{row['name']:22}"]
    for kind in ("graph", "single"):
        row[f"nvbench_{kind}_us"] = by_nvbench[f"{row['name']}.{kind}"]
        own = row[f"{kind}_us"]
        words += [f"{own:9.2f}", *(beside(row[f"{by}_{kind}_us"], own) for by in ("events", "nvbench")), "|"]
    print(*words, f"{row['host_us']:6.1f} {row['between_us']:6.1f}")
(out / "times.json").write_text(json.dumps(rows, indent=1))
