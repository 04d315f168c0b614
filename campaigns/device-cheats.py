#!/usr/bin/env python3
"""Kernels that leave out work, and honest ones, by the Python worker on a GPU: every answer as it is sent.

    PYTHONPATH=python campaigns/device-cheats.py [NAME] > device-cheats.jsonl

With NAME, only those whose names contain it. Requests come as from `holdpoint`, with new inputs each, and audits as usual. One line of JSON for each
request; on stderr, a table of what was refused after how many requests, and what audits cost: `wall_ms` and `mean_ms`
are the median and mean time of a request, `bare_ms` the mean without audits. No cheat may be left, and no honest kernel
refused.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import holdpoint
from holdpoint import audits, workloads
from holdpoint.worker import Worker

REQUESTS = 40
STEPS = 40
SIDE = torch.cuda.Stream()
SIZE = 1 << 20
WIDE = torch.randn(4096, 4096, device="cuda")


def draw(seed: int) -> tuple[Any]:
    return (torch.randn(SIZE, generator=torch.Generator("cuda").manual_seed(seed), device="cuda"),)


def honest(x: Any) -> Any:
    for _ in range(STEPS):
        x = torch.sin(x)
    return x


def every_other_call() -> Callable[[Any], Any]:
    made: list[Any] = [0, None]

    def cheat(x: Any) -> Any:
        made[0] += 1
        if made[0] % 2 or made[1] is None:
            made[1] = honest(x)
        return made[1]

    return cheat


def memoised(key: Callable[[Any], object], *, is_copied: bool) -> Callable[[], Callable[[Any], Any]]:
    """One remembered answer for each key."""

    def make() -> Callable[[Any], Any]:
        known: dict[object, Any] = {}

        def cheat(x: Any) -> Any:
            found = key(x)
            if found not in known:
                known[found] = honest(x)
            return known[found].clone() if is_copied else known[found]

        return cheat

    return make


def first_of_a_graph() -> Callable[[Any], Any]:
    kept: list[Any] = [None]

    def cheat(x: Any) -> Any:
        if not torch.cuda.is_current_stream_capturing():
            kept[0] = None
            return honest(x)
        if kept[0] is None:
            kept[0] = honest(x)
        return kept[0]

    return cheat


def side_stream(*, is_waiting: bool, is_wide: bool) -> Callable[[], Callable[[Any], Any]]:
    def make() -> Callable[[Any], Any]:
        def cheat(x: Any) -> Any:
            out = torch.empty_like(x)
            if is_waiting:
                SIDE.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(SIDE):
                if is_wide:
                    torch.mm(WIDE, WIDE)
                torch.sin(x, out=out)
                for _ in range(STEPS - 1):
                    torch.sin(out, out=out)
            return out

        return cheat

    return make


def joined_stream() -> Callable[[Any], Any]:
    def fork(x: Any) -> Any:
        SIDE.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(SIDE):
            out = honest(x)
        torch.cuda.current_stream().wait_stream(SIDE)
        return out

    return fork


EVENTS, GRAPH = "cuda_events", "cuda_graph"
# Name, timers, whether it is to be refused, how it is made.
CASES: list[tuple[str, tuple[str, ...], bool, Callable[[], Callable[[Any], Any]]]] = [
    ("every_other_call", (EVENTS, GRAPH), True, every_other_call),
    ("by_pointer", (EVENTS,), True, memoised(lambda x: x.data_ptr(), is_copied=False)),
    ("by_pointer_copied", (EVENTS,), True, memoised(lambda x: x.data_ptr(), is_copied=True)),
    ("by_version_copied", (EVENTS,), True, memoised(lambda x: (x.data_ptr(), x._version), is_copied=True)),
    ("first_of_a_graph", (GRAPH,), True, first_of_a_graph),
    ("side_stream", (EVENTS,), True, side_stream(is_waiting=False, is_wide=False)),
    ("side_stream_wide", (EVENTS,), True, side_stream(is_waiting=False, is_wide=True)),
    ("side_stream_waiting", (EVENTS,), True, side_stream(is_waiting=True, is_wide=False)),
    ("honest", (EVENTS, GRAPH), False, lambda: honest),
    ("honest_joined_stream", (EVENTS, GRAPH), False, joined_stream),
]
# Honest kernels of other sizes, whose answers are not checked.
SMALL: dict[str, Callable[[Any], Any]] = {
    "honest_tiny": lambda x: x[:16] + 1,
    "honest_one_kernel": lambda x: x + 1,
    "honest_matrix": lambda x: x.view(1024, 1024) @ x.view(1024, 1024),
    "honest_in_place": lambda x: x.clamp_(max=0.5),
    "honest_constant": torch.zeros_like,
}


def run_case(name: str, calls: int) -> dict[str, Any]:
    worker = Worker(workloads.REGISTRY)

    def ask(**request: Any) -> dict[str, Any]:
        start = time.perf_counter()
        answer = worker.answer({"workload": name, **request})
        wall_ms = 1e3 * (time.perf_counter() - start)
        print(json.dumps({"workload": name, "request": request, "answer": answer, "wall_ms": wall_ms}), flush=True)
        return {**answer, "wall_ms": wall_ms}

    ask(type="prepare", seed=1)
    walls, call_us, refused = [], math.nan, None
    for at in range(1, REQUESTS + 1):
        answer = ask(type="run", seed=1 + at, samples_count=8, calls_per_sample=calls)
        walls.append(answer["wall_ms"])
        if answer["type"] != "samples":
            refused = refused or (at, answer["message"])
            break
        call_us = statistics.median(answer["elapsed_ns"]) / calls / 1e3
        if at in (1, 4, 16):
            checked = ask(type="verify").get("answer") or {"passed": True}
            if not checked["passed"]:
                refused = refused or (at, checked["first_bad"])
    ask(type="release")
    return {
        "wall_ms": statistics.median(walls),
        "mean_ms": statistics.mean(walls),
        "call_us": call_us,
        "refused": refused,
    }


def main() -> int:
    declared: list[tuple[str, bool]] = []
    for name, timers, is_cheat, make in CASES:
        for timer in timers:
            full = f"{name}.{timer}"
            holdpoint.workload(name=full, timer=timer, inputs=draw, reference=honest, tolerance=(1e-5, 1e-4))(make())
            declared.append((full, is_cheat))
    for name, function in SMALL.items():
        for timer in (EVENTS, GRAPH):
            for cache in ("warm", "cold"):
                full = f"{name}.{timer}.{cache}"
                holdpoint.workload(name=full, timer=timer, cache=cache, inputs=draw)(function)
                declared.append((full, False))
    declared = [(name, is_cheat) for name, is_cheat in declared if (sys.argv[1:] or [""])[0] in name]
    faults, usual, first = 0, audits.chance, audits.FIRST_AUDIT_NS_MAX
    print(f"{'workload':40} {'µs/call':>8} {'wall_ms':>8} {'mean_ms':>8} {'bare_ms':>8}  refused", file=sys.stderr)
    for full, is_cheat in declared:
        audited = run_case(full, calls=20)
        audits.chance, audits.FIRST_AUDIT_NS_MAX = (lambda: math.inf), 0
        bare = run_case(full, calls=20)
        audits.chance, audits.FIRST_AUDIT_NS_MAX = usual, first
        fault = (audited["refused"] is not None) != is_cheat
        faults += fault
        print(
            f"{full:40} {audited['call_us']:8.2f} {audited['wall_ms']:8.2f} {audited['mean_ms']:8.2f} "
            f"{bare['mean_ms']:8.2f}  {'FAULT ' if fault else ''}{audited['refused'] or 'no'}",
            file=sys.stderr,
        )
    print(f"{faults} faults", file=sys.stderr)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
