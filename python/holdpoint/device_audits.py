"""Audits of calls on a device: work that is left out of the timed stream, or not done at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from .answers import arrays_with_memory, fill_with
from .clocks import NO_ANSWER
from .devices import Device
from .plain import AnswerError, array_module, copy_out

# Larger answers are not copied for the check of the stream's order: that would take memory that calls may need.
COPY_BYTES_MAX = 64 << 20
# Calls whose outputs are overwritten before each: a number that no function can foresee, and as many again to be sure.
MARKED_CALLS = (2, 5)
MARKED_CALLS_SURE = 8
# Calls in a row that are waited for, without and with a block: so many, or as many as should take this long.
UNBLOCKED_CALLS = 20
UNBLOCKED_NS_MAX = 2_000_000
# What may be left on the device when the timed stream is done: waiting takes some microseconds by itself.
LEFT_NS = 50_000
LEFT_SHARE = 0.2
LEFT_LOOKS = 3
# A block lasts as long as the host took to queue the calls, but no longer than this.
BLOCK_NS_MAX = 20_000_000


class BadTimeError(Exception):
    """A time that cannot be trusted."""


def check_answers_are_new(device: Device, call: Callable[[], object], random: Random, *, as_graph: bool) -> None:
    """Refuses calls that return what an earlier one has left, which they do not find in the samples.

    A value that was written over an answer may be a right one by chance, but not several times.
    """
    if count_old(device, call, random, random.randint(*MARKED_CALLS), as_graph=as_graph) and count_old(
        device, call, random, MARKED_CALLS_SURE, as_graph=as_graph
    ):
        raise BadTimeError(
            "a call returned without writing its answer: the output was as it had been overwritten before; "
            "every call must compute"
        )


def count_old(device: Device, call: Callable[[], object], random: Random, calls: int, *, as_graph: bool) -> int:
    """How many of so many calls left what had been written over the answer before."""
    # Without a graph at first: libraries may allocate here, which a capture does not allow.
    found = make_marked_calls(call, random, calls)
    if as_graph:
        captured: list[list[Any]] = []
        replay, _ = device.capture(lambda: captured.extend(make_marked_calls(call, random, calls)))
        replay()
        found += captured
    device.synchronize()
    return sum(len(flags) > 0 and all(map(bool, flags)) for flags in found)


def make_marked_calls(call: Callable[[], object], random: Random, calls: int) -> list[list[Any]]:
    """For each call, and each array of its answer, a flag: whether it is what was written over the last answer."""
    answer, found = call(), []
    for _ in range(calls):
        marks = [choose_mark(array, random) for array in raw_arrays(answer)]
        for array, mark in zip(raw_arrays(answer), marks, strict=True):
            fill_with(array, mark)
        answer = call()
        found.append([(array == mark).all() for array, mark in zip(raw_arrays(answer), marks, strict=False)])
    return found


def raw_arrays(answer: object) -> list[Any]:
    """The arrays of an answer that can be marked; of small floats their bytes, which can be compared everywhere."""
    arrays = []
    for array in arrays_with_memory(answer):
        module: Any = array_module(array)
        name = str(array.dtype).removeprefix("torch.")
        if 0 in array.shape or "bool" in name:
            continue
        arrays.append(array.view(module.uint8) if name.startswith("float8") else array)
    return arrays


def choose_mark(array: Any, random: Random) -> float:
    """A finite value: NaN may be a right answer, and a call may look for it."""
    name = str(array.dtype).removeprefix("torch.")
    if "int" not in name:
        return random.choice((-1.0, 1.0)) * random.uniform(100, 60_000)
    limits = array_module(array).iinfo(array.dtype)  # type: ignore[union-attr]
    # Bytes of small floats: those that are no NaN.
    return random.randint(max(int(limits.min), -(2**31)), min(int(limits.max) // 2, 2**31 - 1))


def check_streams_are_joined(
    device: Device,
    call: Callable[[], object],
    call_ns: float,
    clock_ns: Callable[[], int] = time.perf_counter_ns,
) -> None:
    """Refuses calls whose work goes on when the timed stream is done.

    While times are taken, the timed stream is blocked and others are not, so that work there is never seen.
    """
    calls = max(1, min(UNBLOCKED_CALLS, int(UNBLOCKED_NS_MAX / max(call_ns, 1))))
    limit_ns = LEFT_NS + LEFT_SHARE * calls * call_ns
    event, queued_ns, left_ns = device.event(), 0, 0
    # Work elsewhere that waits for the timed stream is nearly done when that is, unless it had to wait for a block.
    for is_blocked in (False, True):
        for _ in range(LEFT_LOOKS):
            device.synchronize()
            begin_ns = clock_ns()
            if is_blocked:
                device.block(min(queued_ns, BLOCK_NS_MAX))
            for _ in range(calls):
                call()
            queued_ns = max(queued_ns, clock_ns() - begin_ns)
            device.record(event)
            event.synchronize()
            start_ns = clock_ns()
            device.synchronize()
            left_ns = clock_ns() - start_ns
            if left_ns <= limit_ns:
                break
        else:
            raise BadTimeError(
                f"work goes on outside of the timed stream, for {left_ns / 1e3:.0f} µs after {calls} calls that take "
                f"{call_ns / 1e3:.1f} µs each by its events; launch it on the current stream, or let that wait for it"
            )


def allocated_bytes(answer: object) -> int:
    """What the arrays of an answer take: torch and CuPy allocate in steps of 512 bytes."""
    return sum(-(-array.nbytes // 512) * 512 for array in arrays_with_memory(answer))


def copy_small(answer: object) -> object:
    """A copy of an answer, if it is small and can be copied."""
    if allocated_bytes(answer) > COPY_BYTES_MAX:
        return NO_ANSWER
    try:
        return copy_out(answer)
    except AnswerError:
        return NO_ANSWER
