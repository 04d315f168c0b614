"""The workloads of holdpoint.ops.suite, 2 % slower by real time on the device: a wait after every call, whose length is found by trying.

For calls of 50 µs and more: the launch of the wait alone takes about a microsecond.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch

from holdpoint import workloads
from holdpoint.ops import suite  # noqa: F401 (it declares the workloads)

SHARE = 0.02
CALLS = 20
REPLAYS = 9
STEPS = 6
# Less than any clock, so that each step ends short of the aim instead of beyond it.
CYCLES_PER_US = 1000


def device_us(call: Callable[[], object]) -> float:
    """Time of one call on the device, in a graph, as the suite times it."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for _ in range(REPLAYS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(float(start.elapsed_time(stop)) * 1000.0 / CALLS)
    return statistics.median(times)


def slow_down(workload: workloads.Workload) -> Callable[..., object]:
    function = workload.function

    @functools.cache
    def wait_cycles() -> int:
        arguments = workload.draw(0)
        call_us = device_us(lambda: function(*arguments))
        cycles, more_us = 0, 0.0
        for _ in range(STEPS):

            def call_and_wait(cycles: int = cycles) -> None:
                function(*arguments)
                torch.cuda._sleep(cycles)

            more_us = device_us(call_and_wait) - call_us
            cycles = max(0, cycles + round((SHARE * call_us - more_us) * CYCLES_PER_US))
        print(f"{workload.name}: {call_us:.2f} µs, {100 * more_us / call_us:.2f} % more", file=sys.stderr)
        return cycles

    def call(*arguments: Any) -> object:
        cycles = wait_cycles()
        answer = function(*arguments)
        torch.cuda._sleep(cycles)
        return answer

    return call


for name, workload in list(workloads.REGISTRY.workloads.items()):
    workloads.REGISTRY.workloads[name] = dataclasses.replace(workload, function=slow_down(workload))
