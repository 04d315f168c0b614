"""Audits of a function's times: a call on inputs that it has not seen must cost what its timed calls cost.

The calls of a request are made on the same few inputs, so a function that remembers its answers is quick there, and
nowhere else. Each request brings new inputs; the first calls with them are timed by themselves, once in every process
and then as far as that costs little. Only where they look too slow, several times in a row and each time on other
inputs, the times are refused.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .clocks import NO_ANSWER, Calls, HostCalls, Samples
from .device_audits import BadTimeError
from .device_calls import DeviceCalls

Arguments = tuple[object, ...]

# The share of a request's time that audits may take; what costs more is done in so many requests fewer.
TIME_SHARE = 0.05
# The first audit in a process is made in any case if it takes no longer than this.
FIRST_AUDIT_NS_MAX = 100_000_000
# So many first calls in a row must be too slow. A disturbed call is repeated; a function that remembers stays one.
LOOKS = 5
SAMPLES_PER_LOOK = 3
# Calls on the old inputs right before, so that code is in the caches; for no longer than this.
WARM_CALLS = 3
WARM_NS_MAX = 300_000
# No function or seed of theirs can foresee it.
RANDOM = random.SystemRandom()


@dataclass(frozen=True)
class Rule:
    """A timed call must take at least this share of a first one, apart from what a single call may lose.

    On the host, a repeated call finds its data in the caches and its branches predicted: sorting, summing and looking
    up was seen to take 1.1 to 4 times as long at first, where that is beyond the allowance. On a device, an L2 cache
    makes calls up to twice as fast, and events and a launch by itself take a few microseconds.
    """

    share: float
    allowance_ns: int

    def is_too_quick(self, call_ns: float, first_ns: float, calls_count: int = 1) -> bool:
        """Of the mean over so many first calls in a row, which share what they lose."""
        return call_ns < self.share * (first_ns - self.allowance_ns / calls_count)


HOST = Rule(share=0.1, allowance_ns=5_000)
DEVICE = Rule(share=0.4, allowance_ns=5_000)


@dataclass
class Auditor:
    """Decides when the calls of one workload are audited, and judges its times."""

    calls: Calls
    # Loads new inputs of any seed, and times the first call with them.
    load_other: Callable[[], float | None]
    request_ns: int = 0
    call_ns: float = 0.0
    costs_ns: dict[str, int] = field(default_factory=dict)

    def is_due(self, audit: str, least_ns: float) -> bool:
        """At random, so that a function cannot know, and so that all of it takes no more than its share."""
        cost_ns = max(self.costs_ns.get(audit, 0), least_ns, 1)
        if audit not in self.costs_ns and self.request_ns > 0 and cost_ns <= FIRST_AUDIT_NS_MAX:
            return True
        return chance() * cost_ns < TIME_SHARE * self.request_ns

    def load(self, arguments: Arguments, others: Sequence[Arguments] = ()) -> float | None:
        """Loads arguments; the time of the first calls with them, where it is worth its cost."""
        if not self.is_due("first", 2 * self.call_ns):
            load(self.calls, arguments, others)
            return None
        start_ns = time.perf_counter_ns()
        first_ns = self.load_timed(arguments, others)
        self.costs_ns["first"] = time.perf_counter_ns() - start_ns
        return first_ns

    def load_timed(self, arguments: Arguments, others: Sequence[Arguments] = ()) -> float | None:
        if isinstance(self.calls, DeviceCalls):
            return self.calls.load_timed(arguments)
        if isinstance(self.calls, HostCalls):
            return load_timed(self.calls, arguments, others, self.call_ns)
        self.calls.load(arguments)
        return None

    def audit_device(self) -> None:
        """What the timed calls of a device leave out, on the inputs that are loaded."""
        if not isinstance(self.calls, DeviceCalls) or not self.is_due("device", 1e6 + 10 * self.call_ns):
            return
        start_ns = time.perf_counter_ns()
        self.calls.audit(self.call_ns, RANDOM)
        self.costs_ns["device"] = time.perf_counter_ns() - start_ns

    def note(self, samples: Samples, calls_per_sample: int, request_ns: int) -> None:
        self.call_ns, self.request_ns = per_call_ns(samples, calls_per_sample), request_ns

    def judge(self, first_ns: float | None, samples: Samples, calls_per_sample: int) -> None:
        """Refuses times of calls that a first call does not bear out."""
        rule = DEVICE if isinstance(self.calls, DeviceCalls) else HOST
        count = self.calls.first_calls if isinstance(self.calls, HostCalls) else 1
        looks = 0
        while first_ns is not None and rule.is_too_quick(per_call_ns(samples, calls_per_sample), first_ns, count):
            looks += 1
            if looks == LOOKS:
                call_ns = per_call_ns(samples, calls_per_sample)
                raise BadTimeError(
                    f"a call takes {call_ns:.0f} ns, but {first_ns:.0f} ns on inputs that it has not seen: it "
                    "remembers its answers, or changes its arguments. Clear its cache in the call; if the cache is "
                    "what is measured, declare remembers=True"
                )
            first_ns = self.load_other()
            samples = self.calls.take(min(SAMPLES_PER_LOOK, len(samples.elapsed_ns)), calls_per_sample)


def chance() -> float:
    return RANDOM.random()


def per_call_ns(samples: Samples, calls_per_sample: int) -> float:
    return statistics.median(samples.elapsed_ns) / calls_per_sample


def load(calls: Calls, arguments: Arguments, others: Sequence[Arguments]) -> None:
    calls.load(arguments)
    if isinstance(calls, HostCalls):
        calls.add_inputs(others)


def load_timed(calls: HostCalls, arguments: Arguments, others: Sequence[Arguments], call_ns: float) -> float | None:
    """Loads arguments and times the first calls with them; None before any other call, which may tune."""
    if calls.last is NO_ANSWER:
        load(calls, arguments, others)
        return None
    for _ in range(min(WARM_CALLS, int(WARM_NS_MAX / max(call_ns, 1)))):
        calls.call()
    load(calls, arguments, others)
    # Of a long call, one.
    calls.first_calls = len(calls.inputs) if call_ns < WARM_NS_MAX else 1
    turns, function, answer = calls.take_turns(calls.first_calls), calls.function, None
    start_ns, start_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    for each in turns:
        answer = function(*each)
    # CPU time leaves out what others did meanwhile, and wall time what other threads of this process did.
    first_ns = min(time.perf_counter_ns() - start_ns, time.process_time_ns() - start_cpu_ns)
    calls.last = answer
    if not calls.is_loaded():
        # It is in the arguments, where it must stay.
        calls.last = NO_ANSWER
    return first_ns / calls.first_calls
