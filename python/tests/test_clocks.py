from __future__ import annotations

import math
import threading

import pytest

from holdpoint.clocks import (
    HostCalls,
    Samples,
    ThreadWaits,
    clock_resolution_ns,
    peak_rss_bytes,
    threads_count,
    wait_within,
)


class Counted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def __call__(self, *arguments: object) -> int:
        self.calls.append(arguments)
        return len(self.calls)


def test_a_sample_is_the_time_of_as_many_calls_as_asked_for() -> None:
    function = Counted()
    calls = HostCalls(function)
    calls.load((7,))
    samples = calls.take(samples_count=4, calls_per_sample=5)
    assert len(samples.elapsed_ns) == 4
    assert len(function.calls) == 1 + 4 * 5, "one untimed call comes first"
    assert set(function.calls) == {(7,)}
    assert all(ns > 0 for ns in samples.elapsed_ns)


def test_the_answer_is_that_of_the_last_timed_call() -> None:
    calls = HostCalls(Counted())
    calls.load(())
    calls.take(2, 3)
    assert calls.answer() == 7
    assert calls.answer() == 7, "asking calls nothing"


def test_without_a_run_one_call_is_made_for_the_answer() -> None:
    function = Counted()
    calls = HostCalls(function)
    calls.load((1,))
    assert (calls.answer(), len(function.calls)) == (1, 1)
    calls.load((2,))
    assert calls.answer() == 2, "new arguments need a new answer"


def test_an_old_answer_is_spoiled_before_the_next_run() -> None:
    numpy = pytest.importorskip("numpy")
    seen = []
    answers = [numpy.ones(2) for _ in range(8)]
    calls = HostCalls(lambda: seen.append(float(answers[0][0])) or answers.pop(0))  # type: ignore[func-returns-value]
    calls.load(())
    first = calls.answer()
    calls.take(1, 1)
    assert math.isnan(float(first[0]))  # type: ignore[index]


def test_an_answer_in_an_argument_asks_for_new_arguments() -> None:
    numpy = pytest.importorskip("numpy")
    calls = HostCalls(lambda x, out: numpy.add(x, 1, out=out))
    calls.load((numpy.ones(2), numpy.empty(2)))
    assert calls.is_loaded()
    calls.take(1, 1)
    assert not calls.is_loaded()


def test_waits_are_reported_for_each_sample_and_only_if_wanted() -> None:
    calls = HostCalls(lambda: None)
    calls.load(())
    samples = calls.take(3, 10)
    if ThreadWaits().total_ns() is None:
        assert samples.wait_ns == []
    else:
        assert len(samples.wait_ns) == 3
        assert all(0 <= wait < ns for wait, ns in zip(samples.wait_ns, samples.elapsed_ns, strict=True))
    unwanted = HostCalls(lambda: None, count_waits=False)
    unwanted.load(())
    assert unwanted.take(3, 10).wait_ns == []


def test_a_wait_booked_beside_a_sample_is_not_a_wait_of_its_calls() -> None:
    # As seen with two processes on one CPU: 45 µs of calls, and 1.4 ms without a CPU while the counter was read.
    assert wait_within(1_400_000, 45_000, 1_405_000) == 0
    assert wait_within(1_400_000, 1_445_000, 5_000) == 1_395_000, "this one interrupted the calls"
    assert wait_within(100_000, 100_000, 0) == 0, "it leaves nothing"


class LateWaits:
    """A kernel that books a long wait at every look."""

    def __init__(self) -> None:
        self.booked_ns = 0

    def total_ns(self) -> int:
        self.booked_ns += 10**9
        return self.booked_ns

    def close(self) -> None:
        pass


def test_waits_that_do_not_fit_leave_a_sample_as_it_is() -> None:
    calls = HostCalls(lambda: None)
    calls.waits = LateWaits()  # type: ignore[assignment]
    calls.load(())
    samples = calls.take(3, 10)
    assert samples.wait_ns == [0, 0, 0]


def test_cpu_time_is_reported_by_a_process_of_one_thread() -> None:
    calls = HostCalls(lambda: None)
    calls.load(())
    before = threads_count()
    assert len(calls.take(2, 1).cpu_ns) == (2 if before == 1 else 0)
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert calls.take(2, 1).cpu_ns == []
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize(("thread_ns", "waits_count"), [(95, 3), (94, 0)])
def test_waits_beside_busy_threads_of_the_same_process_are_not_reported(
    monkeypatch: pytest.MonkeyPatch, thread_ns: int, waits_count: int
) -> None:
    """For every 100 ns of the process, this thread takes so many."""
    calls_made = [0]
    calls = HostCalls(lambda: calls_made.__setitem__(0, calls_made[0] + 1))
    calls.waits = LateWaits()  # type: ignore[assignment]
    monkeypatch.setattr("time.process_time_ns", lambda: 100 * calls_made[0])
    monkeypatch.setattr("time.thread_time_ns", lambda: thread_ns * calls_made[0])
    calls.load(())
    assert len(calls.take(3, 10).wait_ns) == waits_count


def test_absent_numbers_are_not_written() -> None:
    assert Samples(elapsed_ns=[3], untimed_ns=0).to_json() == {"elapsed_ns": [3], "untimed_ns": 0}


def test_the_clock_has_a_step_and_the_process_has_memory() -> None:
    assert clock_resolution_ns() > 0
    peak = peak_rss_bytes()
    assert peak is None or peak > 1 << 20
