"""Timing calls by the host's clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, repeat
from typing import Protocol

from .answers import arrays_in, share_memory, spoil, spoil_free_memory

# Where the calling thread's wait for a CPU is counted. It names the thread that opens it.
SCHEDSTAT = "/proc/thread-self/schedstat"
# A process whose calling thread used this share of its CPU time has no others that matter, as with commands.
MAIN_THREAD = 0.95
# Untimed calls before the samples of a run warm the caches, which other workloads have used since: as many as a sample
# has, but for no longer than this. Longer calls lose little to cold caches.
WARM_UP_NS_MAX = 10_000_000


@dataclass
class Samples:
    """Times of one `run`: those of each sample, and what else happened."""

    elapsed_ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)
    wait_ns: list[int] = field(default_factory=list)
    untimed_ns: int | None = None
    first_ns: int | None = None
    peak_rss_bytes: int | None = None
    peak_device_bytes: int | None = None

    def to_json(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if value is not None and value != []}


class Calls(Protocol):
    """A prepared workload: its arguments are loaded, its calls can be timed, and the last answer is at hand."""

    def load(self, arguments: tuple[object, ...]) -> None:
        """Takes new arguments; earlier answers do not count any more."""

    def is_loaded(self) -> bool:
        """Whether the arguments are still as they were drawn, as far as the last answer tells."""

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        """Times samples."""

    def answer(self) -> object:
        """The answer of the last timed call, or of a call made now."""

    def close(self) -> None:
        """Frees what it holds."""


class ThreadWaits:
    """How long this thread was ready to run but had no CPU; None where the kernel does not count it."""

    def __init__(self) -> None:
        try:
            self.file: int | None = os.open(SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.file = None

    def total_ns(self) -> int | None:
        if self.file is None:
            return None
        fields = os.pread(self.file, 64, 0).split()
        return int(fields[1]) if len(fields) > 1 else None

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None


def wait_within(booked_ns: int, elapsed_ns: int, beside_ns: int) -> int:
    """The wait that a sample surely has of the one booked while it was taken and, for `beside_ns`, counters were read.

    The kernel likes to take the CPU away at the end of a system call, so most waits lie beside a short sample. What
    does not fit into the sample is not a wait of its calls.
    """
    wait_ns = max(0, booked_ns - beside_ns)
    return wait_ns if wait_ns < elapsed_ns else 0


class NoAnswer:
    """No call has been made since the arguments were loaded."""


NO_ANSWER = NoAnswer()


class HostCalls:
    """Calls timed by the host's monotonic clock, with CPU time and waits."""

    def __init__(self, function: Callable[..., object], *, count_waits: bool = True) -> None:
        self.function = function
        # Calls take them in turn, and which one is next.
        self.inputs: list[tuple[object, ...]] = [()]
        self.turn = 0
        # How many calls an audit timed together.
        self.first_calls = 1
        self.last: object = NO_ANSWER
        self.waits = ThreadWaits() if count_waits else None
        self.call_ns = 0

    def load(self, arguments: tuple[object, ...]) -> None:
        self.forget()
        self.inputs, self.turn = [arguments], 0

    def add_inputs(self, others: Sequence[tuple[object, ...]]) -> None:
        """Lets the calls take these in turn with what was loaded, so that none sees what the call before it saw."""
        self.inputs += others

    @property
    def answered(self) -> int:
        """Which of the inputs the last answer is for."""
        return (self.turn - 1) % len(self.inputs)

    def take_turns(self, calls: int) -> Iterator[tuple[object, ...]]:
        """The arguments of the next calls."""
        inputs, turn = self.inputs, self.turn
        if len(inputs) == 1:
            return repeat(inputs[0], calls)
        self.turn = (turn + calls) % len(inputs)
        return islice(cycle(inputs[turn:] + inputs[:turn]), calls)

    def call(self) -> None:
        """One untimed call."""
        (arguments,) = self.take_turns(1)
        self.last = self.function(*arguments)

    def is_loaded(self) -> bool:
        return not share_memory(self.last, self.inputs)

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        self.forget()
        self.warm_up(calls_per_sample)
        samples = Samples()
        # The thread's clock goes around the other, so that a process of one thread never seems to have more.
        thread_ns, process_ns = time.thread_time_ns(), time.process_time_ns()
        for _ in range(samples_count):
            self.take_one(samples, calls_per_sample)
        process_ns = time.process_time_ns() - process_ns
        thread_ns = time.thread_time_ns() - thread_ns
        if thread_ns < MAIN_THREAD * process_ns:
            # It may have waited for other threads of this process, which are part of the code.
            samples.wait_ns.clear()
        self.call_ns = samples.elapsed_ns[-1] // calls_per_sample if samples.elapsed_ns else 0
        if threads_count() != 1:
            # Idle threads of a pool may spin between the samples, so the process's CPU time is not that of the calls.
            samples.cpu_ns.clear()
        samples.peak_rss_bytes = peak_rss_bytes()
        return samples

    def warm_up(self, calls: int) -> None:
        """At first one call, which tells how long they take."""
        affordable = WARM_UP_NS_MAX // self.call_ns if self.call_ns else 1
        for _ in range(min(max(calls, len(self.inputs)), affordable)):
            self.call()
        self.forget_warm_up()

    def take_one(self, samples: Samples, calls: int) -> None:
        function, turns, answer = self.function, self.take_turns(calls), None
        outer_ns = time.perf_counter_ns()
        waited_ns = self.waits.total_ns() if self.waits is not None else None
        cpu_ns = time.process_time_ns()
        start_ns = time.perf_counter_ns()
        for arguments in turns:
            answer = function(*arguments)
        elapsed_ns = time.perf_counter_ns() - start_ns
        samples.cpu_ns.append(time.process_time_ns() - cpu_ns)
        samples.elapsed_ns.append(elapsed_ns)
        if self.waits is not None and waited_ns is not None:
            booked_ns = (self.waits.total_ns() or waited_ns) - waited_ns
            beside_ns = time.perf_counter_ns() - outer_ns - elapsed_ns
            samples.wait_ns.append(wait_within(booked_ns, elapsed_ns, beside_ns))
        self.last = answer

    def answer(self) -> object:
        if self.last is NO_ANSWER:
            self.call()
            if self.forget_warm_up():
                self.turn = self.answered
                self.call()
        return self.last

    def forget_warm_up(self) -> bool:
        """Spoils the answer of an untimed call and memory that may hold others; False where there is none."""
        if not any(True for _ in arrays_in(self.last)) or not self.is_loaded():
            return False
        spoil_free_memory(self.last)
        self.forget()
        return True

    def forget(self) -> None:
        """An answer from before must not pass for a new one, even if its memory is used again."""
        spoil(self.last)
        self.last = NO_ANSWER

    def close(self) -> None:
        self.forget()
        self.inputs, self.turn = [()], 0
        if self.waits is not None:
            self.waits.close()


def clock_resolution_ns() -> int:
    """The smallest step seen in the host clock: what it claims is often finer than what it does."""
    steps = []
    for _ in range(100):
        first = now = time.perf_counter_ns()
        while now == first:
            now = time.perf_counter_ns()
        steps.append(now - first)
    return min(steps)


def threads_count() -> int:
    """Threads of this process, those of C libraries included; 0 where that is not known."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def peak_rss_bytes() -> int | None:
    """The process's largest resident memory."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
