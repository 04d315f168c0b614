"""Timing calls on a CUDA device.

Everything that is timed by events is queued while the device is kept busy, so that the pace of the host is not in the
interval. docs/gpu.md describes the same timers for holdpoint's own kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from .answers import arrays_in, arrays_with_memory, fill, share_memory, spoil, spoil_free_memory
from .clocks import NO_ANSWER, HostCalls, Samples, peak_rss_bytes
from .device_audits import BadTimeError, allocated_bytes, check_answers_are_new, check_streams_are_joined, copy_small
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
# Where several calls are not queued within this, fewer are queued at a time.
BLOCK_NS_SPLIT = 50_000_000
# For a first call that is only audited, at most.
FIRST_BLOCK_NS_MAX = 20_000_000


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


def do_nothing() -> None: ...


class Interval(NamedTuple):
    """A call that is timed, and work that is queued before it and right after it."""

    call: Callable[[], None]
    before: Callable[[], None]
    after: Callable[[], None] = do_nothing


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
        self.block_ns = self.first_block_ns = BLOCK_NS_FIRST
        self.queued_max = QUEUED_MAX
        self.is_warm = False
        self.is_spoiling = True
        # The answer of the first call with the loaded arguments, as the timed stream had it after that call.
        self.first: object = NO_ANSWER
        # The peak before an audit, which needs more memory than the calls do.
        self.peak_bytes = 0

    def load(self, arguments: tuple[object, ...]) -> None:
        if self.arguments.values is None:
            self.device = open_device(arguments)
            self.device.reset_peak()
        self.forget()
        self.forget_first()
        if not self.arguments.load(self.device, arguments):
            self.graphs.clear()
            self.is_warm = False
        self.device.synchronize()

    def load_timed(self, arguments: tuple[object, ...]) -> int | None:
        """Loads new arguments and times the first call with them; None where that was not possible this time.

        It is not in a graph: capturing one more takes memory, which would show in the peak. The arguments are copied on
        the timed stream, behind the block, and the answer is copied there right after the call: work on a stream that
        is not joined to it would read the old arguments, or be missing in the copy.
        """
        if not self.is_warm or not fits(self.arguments.values, arguments):
            self.load(arguments)
            return None
        self.forget_first()
        self.peak_bytes = self.peak()
        with self.device.stream():
            flush = self.device.flush if self.is_cold else do_nothing

            def spoil_and_flush() -> None:
                self.spoil(self.last)
                flush()

            def load_and_spoil() -> None:
                self.arguments.load(self.device, arguments)
                spoil_and_flush()

            def keep_first() -> None:
                self.first = copy_small(self.last)

            call = self.call_kept
            intervals = [Interval(call, spoil_and_flush), Interval(call, load_and_spoil, keep_first)]
            times_ns, _ = self.try_measure(intervals, self.first_block_ns)
        self.device.synchronize()
        if not self.is_spoiling:
            # It is in the arguments, where it must stay.
            self.last = NO_ANSWER
        self.device.reset_peak()
        if times_ns is None:
            self.first_block_ns = min(4 * self.first_block_ns, FIRST_BLOCK_NS_MAX)
            return None
        return times_ns[1]

    def audit(self, call_ns: float, random: Random) -> None:
        """Looks for work that is left out: calls that return an old answer, and work on other streams."""
        if not self.is_warm:
            return
        self.peak_bytes = self.peak()
        with self.device.stream():
            if self.is_spoiling:
                check_answers_are_new(self.device, self.call, random, as_graph=self.as_graph)
            if not self.as_graph:
                # In a graph, a stream that is not joined is an error of the capture, or its work is not in the answer.
                check_streams_are_joined(self.device, self.call, call_ns)
        self.device.reset_peak()

    def forget_first(self) -> None:
        if self.first is not NO_ANSWER:
            self.peak_bytes = self.peak()
            self.first = NO_ANSWER
            self.device.reset_peak()

    def peak(self) -> int:
        """The most memory in use by now, without audits and the copy that they keep."""
        return max(self.peak_bytes, (self.device.peak_bytes() or 0) - allocated_bytes(self.first))

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
        samples.peak_rss_bytes, samples.peak_device_bytes = peak_rss_bytes(), self.peak()
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

        return sums(self.measure_all([Interval(call, spoil_and_flush)] * (calls * samples_count)), calls)

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
        times_ns: list[int] = []
        while len(times_ns) < len(intervals):
            times_ns += self.measure(intervals[len(times_ns) : len(times_ns) + self.queued_max])
        return times_ns

    def measure(self, intervals: Sequence[Interval]) -> list[int]:
        """The times of intervals, each queued before the device comes to it; all again, if one was not."""
        while True:
            times_ns, queued_ns = self.try_measure(intervals, self.block_ns)
            if times_ns is not None:
                self.block_ns = choose_block_ns(queued_ns, times_ns)
                return times_ns
            if self.block_ns >= BLOCK_NS_SPLIT and len(intervals) > 1:
                # Calls of many kernels fill the driver's queue, which waits for the device, which waits for the host.
                self.queued_max, self.block_ns = len(intervals) // 2, BLOCK_NS_FIRST
                return self.measure_all(intervals)
            if self.block_ns >= BLOCK_NS_MAX:
                raise BadTimeError(
                    f"{len(intervals)} calls could not be queued within {BLOCK_NS_MAX // 1_000_000} ms: does a call "
                    'wait for the device, by .item(), .cpu() or print? Avoid that, or declare timer="host_monotonic"'
                )
            self.block_ns = min(4 * self.block_ns, BLOCK_NS_MAX)

    def try_measure(self, intervals: Sequence[Interval], block_ns: int) -> tuple[list[int] | None, list[int]]:
        """The times of intervals, or None where the device came to one that was not there whole; the host's times."""
        while len(self.events) < len(intervals):
            self.events.append((self.device.event(), self.device.event()))
        pairs = self.events[: len(intervals)]
        queued_ns, was_in_time = self.queue(intervals, pairs, block_ns)
        pairs[-1][1].synchronize()
        if not was_in_time:
            return None, queued_ns
        return [positive_ns(self.device.elapsed_ms(start, stop)) for start, stop in pairs], queued_ns

    def queue(
        self, intervals: Sequence[Interval], pairs: Sequence[tuple[Any, Any]], block_ns: int
    ) -> tuple[list[int], bool]:
        """Queues intervals: the host's time after each, and whether each was there whole when the device came to it."""
        queued_ns, was_in_time, device = [], True, self.device
        # Before the device is blocked, because it need not wait for this.
        intervals[0].before()
        begin_ns = time.perf_counter_ns()
        device.block(block_ns)
        for at, (interval, (start, stop)) in enumerate(zip(intervals, pairs, strict=True)):
            if at > 0:
                interval.before()
            device.record(start)
            interval.call()
            device.record(stop)
            was_in_time = was_in_time and not device.is_past(start)
            queued_ns.append(time.perf_counter_ns() - begin_ns)
            interval.after()
        return queued_ns, was_in_time

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
        self.first = NO_ANSWER
        self.graphs.clear()
        self.arguments = Arguments()


class WaitedCalls(HostCalls):
    """Calls by the host's clock, each with the wait for its results: the latency that a caller sees."""

    def __init__(self, function: Function, *, count_waits: bool = True) -> None:
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
