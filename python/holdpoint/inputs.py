"""Several inputs that a workload's calls take in turn, so that a call sees others than the one before it.

Whether a workload's calls do is decided once, by its first drawn arguments: where drawing is cheap, and the arguments
are small enough to leave the caches as they are with one. A sort of a thousand numbers was seen to take a third of its
time on inputs that the branch predictor knows.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

from .answers import memory_of
from .plain import IMMUTABLE, array_module

Arguments = tuple[object, ...]

# Inputs of a request. More would take longer to draw, and a function that keeps answers can keep any number.
INPUTS = 4
# One set of arguments may take this long to draw, and this much memory: all of them stay in the L2 cache.
DRAW_NS_MAX = 200_000
BYTES_MAX = 64 << 10
CONTAINERS = (list, tuple, dict, set, frozenset)


def count_inputs(
    draw: Callable[[int], Arguments], seed: int, clock_ns: Callable[[], int] = time.perf_counter_ns
) -> int:
    """How many inputs the calls of a request take in turn: several only of plain data that each draw makes anew."""
    start_ns = clock_ns()
    one = draw(seed)
    if clock_ns() - start_ns > DRAW_NS_MAX or not one:
        return 1
    held = survey(one)
    if held is None:
        return 1
    (other_seed,) = other_seeds(seed, 2)
    other = draw(other_seed)
    others_held = survey(other)
    if others_held is None or held & others_held or may_name_the_same(one, other):
        return 1
    return INPUTS


def other_seeds(seed: int, count: int) -> list[int]:
    """Seeds of the inputs beside the request's own, the same on both sides; small enough for every generator."""
    return [(seed * 6364136223846793005 + at * 1442695040888963407) % 2**64 >> 33 for at in range(1, count)]


def survey(arguments: Arguments) -> set[object] | None:
    """What in these arguments could be changed, by its place in memory; None if they are large, or not plain data."""
    held: set[object] = set()
    size, left = 0, list[Any](arguments)
    while left:
        value = left.pop()
        kind = type(value)
        if array_module(value) is not None:
            size += value.nbytes
            held.add(("memory", memory_of(value)))
        elif kind in (bytearray, array):
            size += sys.getsizeof(value)
            held.add(id(value))
        elif kind in CONTAINERS:
            size += sys.getsizeof(value)
            if kind not in (tuple, frozenset):
                held.add(id(value))
            left += [*value.keys(), *value.values()] if kind is dict else value
        elif kind in IMMUTABLE:
            size += sys.getsizeof(value)
        else:
            return None
        if size > BYTES_MAX:
            return None
    return held


def may_name_the_same(one: Arguments, other: Arguments) -> bool:
    """Whether an argument may name something outside that both draws have made, such as a file."""
    return any(type(value) in (str, bytes) and value in other for value in one)
