"""Timing a function in rounds, for the pytest plug-in: calibration, warm-up and pytest-benchmark's statistics."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

Function = Callable[..., Any]
# A round of this many steps of the clock is fine enough to be compared; the other limit is `min_time`.
STEPS_PER_ROUND = 1000
LONG_S = 0.01


@dataclass
class Options:
    """How a benchmark is timed; from the command line, then from its marker."""

    min_rounds: int = 5
    min_time: float = 0.000005
    max_time: float = 1.0
    warmup: bool = False
    warmup_iterations: int = 100_000
    disable_gc: bool = False
    timer: Callable[[], float] = time.perf_counter


@dataclass
class Stats:
    """The rounds of a benchmark in seconds per call, in the order they were taken."""

    data: list[float] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        return len(self.data)

    @property
    def total(self) -> float:
        return sum(self.data)

    @property
    def min(self) -> float:
        return min(self.data)

    @property
    def max(self) -> float:
        return max(self.data)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.data)

    @property
    def median(self) -> float:
        return statistics.median(self.data)

    @property
    def stddev(self) -> float:
        return statistics.stdev(self.data) if len(self.data) > 1 else 0.0

    @property
    def q1(self) -> float:
        return self.quartiles()[0]

    @property
    def q3(self) -> float:
        return self.quartiles()[2]

    @property
    def iqr(self) -> float:
        return self.q3 - self.q1

    @property
    def ops(self) -> float:
        return 1 / self.mean if self.mean else 0.0

    @property
    def ld15iqr(self) -> float:
        """The lowest value within one and a half interquartile ranges."""
        low, _ = self.fences()
        return min(value for value in self.data if value >= low)

    @property
    def hd15iqr(self) -> float:
        """The highest value within one and a half interquartile ranges."""
        _, high = self.fences()
        return max(value for value in self.data if value <= high)

    @property
    def iqr_outliers(self) -> int:
        low, high = self.fences()
        return sum(not low <= value <= high for value in self.data)

    @property
    def stddev_outliers(self) -> int:
        mean, stddev = self.mean, self.stddev
        return sum(abs(value - mean) > stddev for value in self.data)

    @property
    def outliers(self) -> str:
        return f"{self.stddev_outliers};{self.iqr_outliers}"

    def fences(self) -> tuple[float, float]:
        q1, _, q3 = self.quartiles()
        return q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)

    def quartiles(self) -> list[float]:
        return statistics.quantiles(self.data, n=4, method="inclusive") if len(self.data) > 1 else self.data * 3

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in FIELDS}


FIELDS = (
    *("min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers", "stddev_outliers"),
    *("outliers", "ld15iqr", "hd15iqr", "ops", "total", "data"),
)


@dataclass
class Timed:
    """The rounds of a function, and what it returned last."""

    stats: Stats
    iterations: int
    answer: Any


def time_rounds(function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Options) -> Timed:
    """As many rounds as fit into `max_time`, at least `min_rounds`; each of as many calls as the clock needs."""
    with garbage_collection(is_off=options.disable_gc):
        iterations, round_s = calibrate(function, args, kwargs, options)
        if options.warmup:
            deadline = options.timer() + options.max_time
            for _ in range(options.warmup_iterations):
                function(*args, **kwargs)
                if options.timer() >= deadline:
                    break
        rounds = max(options.min_rounds, 1, int(options.max_time / round_s) if round_s > 0 else 1)
        return repeat_rounds(function, args, kwargs, rounds=rounds, iterations=iterations, timer=options.timer)


def calibrate(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Options
) -> tuple[int, float]:
    """Calls per round, and how long a round takes."""
    needed_s = max(options.min_time, STEPS_PER_ROUND * clock_step(options.timer))
    iterations = 1
    while True:
        elapsed_s = quickest(function, args, kwargs, iterations, options.timer)
        if elapsed_s >= needed_s:
            return iterations, elapsed_s
        # A fifth more than needed: the first guesses are rough, and a clock may not have moved at all.
        wanted = iterations * needed_s / elapsed_s * 1.2 if elapsed_s > 0 else iterations * 10
        iterations = int(max(2 * iterations, min(wanted, 100 * iterations)))


def quickest(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], calls: int, timer: Callable[[], float]
) -> float:
    """Of three tries, since a first call may do work that later ones need not; a long one is not tried again."""
    found = []
    for _ in range(3):
        elapsed_s, _ = time_calls(function, args, kwargs, calls, timer)
        found.append(elapsed_s)
        if elapsed_s > LONG_S:
            break
    return min(found)


def repeat_rounds(
    function: Function,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    rounds: int,
    iterations: int,
    timer: Callable[[], float],
) -> Timed:
    stats, answer = Stats(), None
    for _ in range(rounds):
        elapsed_s, answer = time_calls(function, args, kwargs, iterations, timer)
        stats.data.append(elapsed_s / iterations)
    return Timed(stats, iterations, answer)


def time_calls(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], calls: int, timer: Callable[[], float]
) -> tuple[float, Any]:
    """The seconds that the calls take, and the last answer."""
    answer = None
    start = timer()
    if kwargs:
        for _ in repeat(None, calls):
            answer = function(*args, **kwargs)
    else:
        for _ in repeat(None, calls):
            answer = function(*args)
    return timer() - start, answer


def clock_step(timer: Callable[[], float]) -> float:
    """The smallest step seen in a clock."""
    steps = []
    for _ in range(20):
        first = now = timer()
        while now == first:
            now = timer()
        steps.append(now - first)
    return min(steps)


@contextmanager
def garbage_collection(*, is_off: bool) -> Iterator[None]:
    was_on = gc.isenabled()
    if is_off:
        gc.disable()
    try:
        yield
    finally:
        if is_off and was_on:
            gc.enable()
