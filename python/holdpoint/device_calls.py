"""Timing calls on a CUDA device.

Everything that is timed by events is queued while the device is kept busy, so that the pace of the host is not in the
interval. docs/gpu.md describes the same timers for holdpoint's own kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from .answers import arrays_in, arrays_with_memory, fill, share_memory, spoil, spoil_free_memory
from .clocks import NO_ANSWER, HostCalls, Samples, peak_rss_bytes
from .devices import Device, open_device
from .plain import array_module
from .workloads import Function

# Most calls in one graph: capturing takes the host some microseconds for each.
GRAPH_CALLS_MAX = 1000
# Most intervals in the queue at a time: the driver's has about a thousand entries, and a call may take several.
QUEUED_MAX = 32
# How long the device is kept busy while calls are queued: at first, at least, and at most.
BLOCK_NS_FIRST = 200_000
BLOCK_NS_MIN = 30_000
BLOCK_NS_MAX = 400_000_000


class BadTimeError(Exception):
    """A time that cannot be trusted."""


class Arguments:
    """Arguments in buffers that stay where they are: graphs read from there."""

    def __init__(self) -> None:
        self.values: tuple[object, ...] | None = None

    def load(self, device: Device, fresh: tuple[object, ...]) -> bool:
        """Copies new values into the buffers; where they do not fit, they become the buffers, and this is False."""
        old = self.values
        if old is None or not fits(old, fresh):
            self.values = fresh
            return False
        for target, source in zip(arrays_in(old), arrays_in(fresh), strict=True):
            device.copy(target, source)
        return True


def fits(old: object, new: object) -> bool:
    """Whether arrays are of the same kind and everything else is equal: only then may a graph be replayed on it."""
    module = array_module(old)
    if module is not None:
        return array_module(new) is module and layout(old) == layout(new)
    if isinstance(old, (list, tuple)):
        return type(new) is type(old) and len(new) == len(old) and all(map(fits, old, new))
    if isinstance(old, Mapping):
        return type(new) is type(old) and old.keys() == new.keys() and all(fits(old[key], new[key]) for key in old)
    try:
        return bool(old == new)
    except Exception:
        return False


def layout(array: Any) -> tuple[object, ...]:
    strides = array.stride() if hasattr(array, "stride") else array.strides
    return tuple(array.shape), tuple(strides), array.dtype, str(getattr(array, "device", ""))


class Interval(NamedTuple):
    """A call that is timed, and work that is queued before it."""

    call: Callable[[], None]
    before: Callable[[], None]


class DeviceCalls:
    """Calls timed by CUDA's events, each call by itself or in a graph."""

    def __init__(self, function: Function, *, as_graph: bool, is_cold: bool) -> None:
        self.function, self.as_graph, self.is_cold = function, as_graph, is_cold
        self.device = open_device()
        self.arguments = Arguments()
        self.last: object = NO_ANSWER
        # By the number of calls: how to replay the graph, and the answer that its last call leaves.
        self.graphs: dict[int, tuple[Callable[[], None], object]] = {}
        self.events: list[tuple[Any, Any]] = []
        self.block_ns = BLOCK_NS_FIRST
        self.is_warm = False
        self.is_spoiling = True

    def load(self, arguments: tuple[object, ...]) -> None:
        if self.arguments.values is None:
            self.device = open_device(arguments)
            self.device.reset_peak()
        self.forget()
        if not self.arguments.load(self.device, arguments):
            self.graphs.clear()
            self.is_warm = False
        self.device.synchronize()

    def is_loaded(self) -> bool:
        return not share_memory(self.last, self.arguments.values)

    def call(self) -> object:
        return self.function(*(self.arguments.values or ()))

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        samples = Samples()
        with self.device.stream():
            self.forget()
            self.warm_up()
            if self.as_graph and not self.is_cold:
                samples.elapsed_ns = self.take_graphs(samples_count, calls_per_sample)
            else:
                samples.elapsed_ns = self.take_each(samples_count, calls_per_sample)
        samples.peak_rss_bytes, samples.peak_device_bytes = peak_rss_bytes(), self.device.peak_bytes()
        return samples

    def warm_up(self) -> None:
        """Lets libraries compile, tune and allocate, which cannot be captured; twice, since the first call may tune."""
        for _ in range(1 if self.is_warm else 3):
            self.last = self.call()
        self.device.synchronize()
        self.is_warm = True
        # An answer in an argument is drawn anew with it for each run, and must stay until then.
        self.is_spoiling = self.is_loaded()
        if self.is_spoiling:
            spoil_free_memory(self.last)
            self.forget()

    def take_graphs(self, samples_count: int, calls: int) -> list[int]:
        """The times of samples that are one replay each, or several where a graph would become too large."""
        full, rest = divmod(calls, GRAPH_CALLS_MAX)
        sizes = [GRAPH_CALLS_MAX] * full + [rest] * (rest > 0)
        replays = {size: self.replay_of(*self.graph(size)) for size in dict.fromkeys(sizes)}
        # The first replay after other work was seen to take a tenth longer than the next ones.
        intervals = [replays[size] for size in [sizes[0], *sizes * samples_count]]
        return sums(self.measure_all(intervals)[1:], len(sizes))

    def replay_of(self, replay: Callable[[], None], answer: object) -> Interval:
        # Looked up once: the host does this for every sample.
        arrays = arrays_with_memory(answer)

        def spoil_arrays() -> None:
            if self.is_spoiling:
                for array in arrays:
                    fill(array)

        return Interval(lambda: self.replay(replay, answer), spoil_arrays)

    def take_each(self, samples_count: int, calls: int) -> list[int]:
        """The times of samples whose calls are timed one by one."""
        call, flush = self.call_kept, self.device.flush if self.is_cold else do_nothing
        if self.as_graph:
            # A flush between the calls keeps them from being in one graph.
            call = self.replay_of(*self.graph(1)).call

        def spoil_and_flush() -> None:
            self.spoil(self.last)
            flush()

        first, other = Interval(call, spoil_and_flush), Interval(call, flush)
        return sums(self.measure_all([first, *[other] * (calls - 1)] * samples_count), calls)

    def spoil(self, answer: object) -> None:
        if self.is_spoiling:
            spoil(answer)

    def call_kept(self) -> None:
        self.last = self.call()

    def replay(self, replay: Callable[[], None], answer: object) -> None:
        replay()
        self.last = answer

    def graph(self, calls: int) -> tuple[Callable[[], None], object]:
        if calls not in self.graphs:
            if len(self.graphs) > 1:
                # Two sizes are in use at a time; others were tried while the size of a sample was looked for.
                self.graphs.pop(next(iter(self.graphs)))
            self.last = NO_ANSWER
            self.graphs[calls] = self.device.capture(lambda: repeat_call(self.call, calls))
            self.graphs[calls][0]()
            self.device.synchronize()
        return self.graphs[calls]

    def measure_all(self, intervals: Sequence[Interval]) -> list[int]:
        """The time of each interval."""
        parts = (intervals[first : first + QUEUED_MAX] for first in range(0, len(intervals), QUEUED_MAX))
        return [ns for part in parts for ns in self.measure(part)]

    def measure(self, intervals: Sequence[Interval]) -> list[int]:
        """The times of intervals, each queued before the device comes to it; all again, if one was not."""
        while len(self.events) < len(intervals):
            self.events.append((self.device.event(), self.device.event()))
        pairs = self.events[: len(intervals)]
        while True:
            queued_ns = self.queue(intervals, pairs)
            pairs[-1][1].synchronize()
            if queued_ns is not None:
                times_ns = [positive_ns(self.device.elapsed_ms(start, stop)) for start, stop in pairs]
                self.block_ns = choose_block_ns(queued_ns, times_ns)
                return times_ns
            if self.block_ns >= BLOCK_NS_MAX:
                raise BadTimeError(
                    f"{len(intervals)} calls could not be queued within {BLOCK_NS_MAX // 1_000_000} ms: does a call "
                    'wait for the device, by .item(), .cpu() or print? Avoid that, or declare timer="host_monotonic"'
                )
            self.block_ns = min(4 * self.block_ns, BLOCK_NS_MAX)

    def queue(self, intervals: Sequence[Interval], pairs: Sequence[tuple[Any, Any]]) -> list[int] | None:
        """Queues intervals: the host's time after each, or None if the device came to one that was not there whole."""
        queued_ns, was_in_time, device = [], True, self.device
        # Before the device is blocked, because it need not wait for this.
        intervals[0].before()
        begin_ns = time.perf_counter_ns()
        device.block(self.block_ns)
        for at, (interval, (start, stop)) in enumerate(zip(intervals, pairs, strict=True)):
            if at > 0:
                interval.before()
            device.record(start)
            interval.call()
            device.record(stop)
            was_in_time = was_in_time and not device.is_past(start)
            queued_ns.append(time.perf_counter_ns() - begin_ns)
        return queued_ns if was_in_time else None

    def answer(self) -> object:
        if self.last is NO_ANSWER:
            with self.device.stream():
                self.warm_up()
                if self.last is NO_ANSWER:
                    self.last = self.call()
        return self.last

    def forget(self) -> None:
        spoil(self.last)
        self.last = NO_ANSWER

    def close(self) -> None:
        self.forget()
        self.graphs.clear()
        self.arguments = Arguments()


class WaitedCalls(HostCalls):
    """Calls by the host's clock, each with the wait for its results: the latency that a caller sees."""

    def __init__(self, function: Function, *, count_waits: bool) -> None:
        self.device = open_device()
        self.buffers = Arguments()
        super().__init__(self.wait_for(function), count_waits=count_waits)

    def wait_for(self, function: Function) -> Function:
        def call(*arguments: object) -> object:
            answer = function(*arguments)
            synchronize()
            return answer

        synchronize = self.device.synchronize
        return call

    def load(self, arguments: tuple[object, ...]) -> None:
        if self.buffers.values is None:
            self.device = open_device(arguments)
            self.device.reset_peak()
        self.forget()
        self.buffers.load(self.device, arguments)
        super().load(self.buffers.values or ())
        self.device.synchronize()

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        samples = super().take(samples_count, calls_per_sample)
        samples.peak_device_bytes = self.device.peak_bytes()
        return samples


def repeat_call(call: Callable[[], object], calls: int) -> object:
    answer = None
    for _ in range(calls):
        answer = call()
    return answer


def do_nothing() -> None: ...


def sums(times_ns: Sequence[int], count: int) -> list[int]:
    """The sum of each so many times in a row."""
    return [sum(times_ns[at : at + count]) for at in range(0, len(times_ns), count)]


def choose_block_ns(queued_ns: Sequence[int], times_ns: Sequence[int]) -> int:
    """Twice the host's lead that the intervals needed, so that a slower host is no reason to begin again.

    The device works meanwhile: the lead of an interval is less by the time of those before it.
    """
    busy_ns = accumulate(times_ns, initial=0)
    needed_ns = max(queued - busy for queued, busy in zip(queued_ns, busy_ns, strict=False))
    return max(BLOCK_NS_MIN, min(2 * needed_ns, BLOCK_NS_MAX))


def positive_ns(ms: float) -> int:
    """Events can be wrong: on virtual machines they have been seen to give negative times."""
    if math.isfinite(ms) and ms > 0:
        return round(ms * 1e6)
    raise BadTimeError(f"the events are {ms} ms apart; their clock cannot be trusted here")
