"""The workloads of holdpoint.ops.suite, about 2 % slower by real time on the device: a wait after every call.

For calls of 50 µs and more: the launch of the wait alone takes about a microsecond.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from holdpoint import workloads
from holdpoint.ops import suite  # noqa: F401 (it declares the workloads)

SHARE = 0.02
CALLS = 30
PROBE_CYCLES = 200_000


def device_us(call: Callable[[], object]) -> float:
    """Time of one call on the device; calls are queued while it is busy."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        call()
    torch.cuda._sleep(40_000_000)
    start.record()
    for _ in range(CALLS):
        call()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) * 1000.0 / CALLS


def slow_down(workload: workloads.Workload) -> Callable[..., object]:
    function = workload.function

    @functools.cache
    def wait_cycles() -> int:
        arguments = workload.draw(0)

        def call_and_wait() -> None:
            function(*arguments)
            torch.cuda._sleep(0)

        call_us = device_us(lambda: function(*arguments))
        launch_us = device_us(call_and_wait) - call_us
        cycles_per_us = PROBE_CYCLES / device_us(lambda: torch.cuda._sleep(PROBE_CYCLES))
        wait_us = max(0.0, SHARE * call_us - launch_us)
        print(f"{workload.name}: {call_us:.2f} µs, {launch_us + wait_us:.2f} µs more", file=sys.stderr)
        return round(wait_us * cycles_per_us)

    def call(*arguments: Any) -> object:
        cycles = wait_cycles()
        answer = function(*arguments)
        torch.cuda._sleep(cycles)
        return answer

    return call


for name, workload in list(workloads.REGISTRY.workloads.items()):
    workloads.REGISTRY.workloads[name] = dataclasses.replace(workload, function=slow_down(workload))
