"""The timers of a device, on one that is scripted: no GPU is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import holdpoint
from holdpoint import device_calls, devices
from holdpoint.clocks import Calls
from holdpoint.device_audits import BadTimeError
from holdpoint.device_calls import Arguments, DeviceCalls, WaitedCalls, choose_block_ns, fits, positive_ns
from holdpoint.devices import CaptureError, finish_capture
from holdpoint.worker import Worker
from holdpoint.workloads import Registry

numpy = pytest.importorskip("numpy")
CALL_MS = 0.25


class Event:
    def __init__(self, device: ScriptedDevice) -> None:
        self.device, self.at_ms = device, 0.0

    def record(self) -> None:
        self.device.log.append("event")
        self.at_ms = self.device.now_ms

    def synchronize(self) -> None:
        self.device.log.append("wait")


class ScriptedDevice:
    """Calls take a fixed time, and the log tells in which order things were queued."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.now_ms = 0.0
        self.is_capturing = False
        # How often the host is too slow before the device is blocked for long enough.
        self.slow_attempts = 0
        self.blocks_ns: list[int] = []

    @contextmanager
    def stream(self) -> Iterator[None]:
        yield

    def event(self) -> Event:
        return Event(self)

    def record(self, event: Event) -> None:
        event.record()

    def elapsed_ms(self, start: Event, stop: Event) -> float:
        return stop.at_ms - start.at_ms

    def is_past(self, event: Event) -> bool:
        self.slow_attempts -= 1
        return self.slow_attempts >= 0

    def block(self, ns: int) -> None:
        self.log.append("block")
        self.blocks_ns.append(ns)

    def synchronize(self) -> None: ...

    def capture(self, function: Callable[[], object]) -> tuple[Callable[[], None], object]:
        self.log.append("capture")
        before_ms = self.now_ms
        answer = function()
        took_ms, self.now_ms = self.now_ms - before_ms, before_ms

        def replay() -> None:
            self.log.append("replay")
            self.now_ms += took_ms

        return replay, answer

    def flush(self) -> None:
        self.log.append("flush")
        self.now_ms += 7.0

    def copy(self, target: Any, source: Any) -> None:
        target[...] = source

    def peak_bytes(self) -> int:
        return 4096

    def reset_peak(self) -> None: ...

    def describe(self) -> dict[str, object]:
        return {"ordinal": 0, "name": "scripted"}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> ScriptedDevice:
    scripted = ScriptedDevice()
    for module in (devices, device_calls):
        monkeypatch.setattr(module, "open_device", lambda arguments=(): scripted)
    return scripted


class Doubling:
    """A kernel that takes a while on the device."""

    def __init__(self, device: ScriptedDevice) -> None:
        self.device, self.calls_count = device, 0

    def __call__(self, x: Any) -> Any:
        self.calls_count += 1
        self.device.now_ms += CALL_MS
        return x * 2


def start(device: ScriptedDevice, *, as_graph: bool, is_cold: bool = False) -> tuple[DeviceCalls, Doubling]:
    function = Doubling(device)
    calls = DeviceCalls(function, as_graph=as_graph, is_cold=is_cold)
    calls.load((numpy.ones(2),))
    return calls, function


def test_events_time_each_call_and_nothing_else(device: ScriptedDevice) -> None:
    calls, _ = start(device, as_graph=False)
    samples = calls.take(samples_count=2, calls_per_sample=3)
    assert samples.elapsed_ns == [750_000, 750_000]
    assert samples.peak_device_bytes == 4096
    assert device.log == ["block", *["event", "event"] * 6, "wait"], "the calls of both samples in one queue"


def test_more_calls_than_the_queue_holds_are_queued_in_parts(device: ScriptedDevice) -> None:
    calls, function = start(device, as_graph=False)
    assert calls.take(1, 70).elapsed_ns == [70 * 250_000]
    assert device.log.count("block") == 3
    assert function.calls_count == 3 + 70, "three warm-up calls, then those asked for"


def test_a_graph_has_the_calls_of_a_sample_and_is_kept(device: ScriptedDevice) -> None:
    calls, function = start(device, as_graph=True)
    assert calls.take(4, 5).elapsed_ns == [1_250_000] * 4
    assert device.log.count("capture") == 1
    made = function.calls_count
    calls.take(4, 5)
    assert device.log.count("capture") == 1
    assert function.calls_count == made + 1, "one untimed call warms up; the others are replayed"


def test_a_large_sample_is_several_replays(device: ScriptedDevice) -> None:
    calls, _ = start(device, as_graph=True)
    assert calls.take(1, 2500).elapsed_ns == [2500 * 250_000]
    assert device.log.count("capture") == 2, "a thousand calls twice, and the five hundred that are left"


@pytest.mark.parametrize("as_graph", [False, True])
def test_a_cold_call_is_flushed_before_its_interval(device: ScriptedDevice, as_graph: bool) -> None:
    calls, _ = start(device, as_graph=as_graph, is_cold=True)
    assert calls.take(1, 3).elapsed_ns == [750_000], "the flush is not in it"
    assert device.log.count("flush") == 3
    at = device.log.index("flush", device.log.index("block"))
    expected = ["flush", "event", "replay", "event"] if as_graph else ["flush", "event", "event"]
    assert device.log[at : at + len(expected)] == expected


def test_times_are_taken_again_if_the_device_was_not_blocked(device: ScriptedDevice) -> None:
    calls, _ = start(device, as_graph=False)
    device.slow_attempts = 3
    assert calls.take(1, 1).elapsed_ns == [250_000]
    first_ns = device_calls.BLOCK_NS_FIRST
    assert device.blocks_ns == [first_ns, 4 * first_ns, 16 * first_ns, 64 * first_ns]


def test_the_device_is_blocked_for_twice_the_lead_that_the_host_needed() -> None:
    assert choose_block_ns([200_000], [1]) == 400_000
    # Queued 90 and 70 µs after the device could have begun with them, had it not been blocked.
    assert choose_block_ns([90_000, 570_000, 900_000], [500_000, 500_000, 1]) == 180_000
    assert choose_block_ns([1], [1]) == device_calls.BLOCK_NS_MIN
    assert choose_block_ns([10**12], [1]) == device_calls.BLOCK_NS_MAX


def test_calls_that_wait_for_the_device_are_no_measurement(registry: Registry, device: ScriptedDevice) -> None:
    device.slow_attempts = 1000
    holdpoint.workload(name="f", timer="cuda_events", inputs=lambda seed: numpy.ones(2))(Doubling(device))
    worker = Worker(registry)
    assert worker.answer({"type": "prepare", "workload": "f", "seed": 1})["type"] == "prepared"
    request = {"type": "run", "workload": "f", "seed": 1, "samples_count": 1, "calls_per_sample": 1}
    answer = worker.answer(request)
    assert (answer["type"], answer["cause"]) == ("error", "bad_time")
    assert 'timer="host_monotonic"' in answer["message"]


@pytest.mark.parametrize("as_graph", [False, True])
def test_a_kernel_that_stops_writing_leaves_no_right_answer(device: ScriptedDevice, as_graph: bool) -> None:
    # Memory that is used again and again, as an allocator's is.
    memory = numpy.zeros(2)
    is_writing = True

    def kernel(x: Any) -> Any:
        device.now_ms += CALL_MS
        if is_writing:
            memory[...] = 2 * x
        return memory

    calls = DeviceCalls(kernel, as_graph=as_graph, is_cold=False)
    calls.load((numpy.ones(2),))
    first: Any = calls.answer()
    assert first.tolist() == [2.0, 2.0]
    is_writing = False
    calls.take(1, 1)
    assert numpy.isnan(calls.answer()).all()


def test_an_answer_in_an_argument_stays_during_a_run(device: ScriptedDevice) -> None:
    def clip(x: Any) -> Any:
        device.now_ms += CALL_MS
        return numpy.maximum(x, 0, out=x)

    calls = DeviceCalls(clip, as_graph=False, is_cold=False)
    calls.load((numpy.array([-1.0, 2.0]),))
    calls.take(3, 2)
    left: Any = calls.answer()
    assert left.tolist() == [0.0, 2.0]
    assert not calls.is_loaded(), "so the next run draws its arguments again"


def test_new_values_go_into_the_buffers_that_a_graph_reads(device: ScriptedDevice) -> None:
    calls, _ = start(device, as_graph=True)
    calls.take(1, 1)
    buffer: Any = (calls.arguments.values or ())[0]
    calls.load((numpy.full(2, 5.0),))
    assert buffer.tolist() == [5.0, 5.0]
    assert (calls.arguments.values or ())[0] is buffer
    assert len(calls.graphs) == 1
    calls.load((numpy.ones(3),))
    assert calls.graphs == {}, "another shape needs another graph"


def test_arguments_fit_if_only_the_values_of_arrays_differ() -> None:
    assert fits((numpy.ones(2), {"a": [1, "x"]}), (numpy.zeros(2), {"a": [1, "x"]}))
    for other in [(numpy.ones(3), 1), (numpy.ones(2, dtype="float32"), 1), (numpy.ones(2), 2), (numpy.ones(2),), [1]]:
        assert not fits((numpy.ones(2), 1), other)
    held = Arguments()
    assert not held.load(ScriptedDevice(), (1,))
    assert held.load(ScriptedDevice(), (1,))


def test_the_host_clock_includes_the_wait(device: ScriptedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    monkeypatch.setattr(device, "synchronize", lambda: waits.append(1))
    calls: Calls = WaitedCalls(lambda x: x + 1)
    calls.load((numpy.ones(2),))
    waits.clear()
    samples = calls.take(2, 3)
    assert len(waits) == 1 + 2 * 3, "after each call, the untimed one included"
    assert (len(samples.elapsed_ns), samples.peak_device_bytes) == (2, 4096)


def test_a_function_that_cannot_be_captured_is_an_error_that_says_so(registry: Registry) -> None:
    def wait() -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    ended = []
    with pytest.raises(CaptureError, match=r'not permitted .*timer="cuda_events"') as caught:
        finish_capture(wait, lambda: ended.append(1))
    assert ended == [1], "the stream must not be left capturing"
    answer = Worker(registry).describe_error(caught.value)
    assert "fatal" not in answer
    assert finish_capture(lambda: 5, lambda: ended.append(2)) == 5
    assert ended == [1, 2]


def test_a_graph_of_nothing_is_an_error_that_says_so() -> None:
    def end() -> None:
        warnings.warn("The CUDA Graph is empty. This usually means that", stacklevel=1)

    with pytest.raises(CaptureError, match="are their arguments there"):
        finish_capture(lambda: 5, end)


@pytest.mark.parametrize("ms", [0.0, -1.5, float("nan"), float("inf")])
def test_a_time_that_is_not_positive_is_an_error_and_no_number(ms: float) -> None:
    assert positive_ns(0.0125) == 12_500
    with pytest.raises(BadTimeError, match="cannot be trusted"):
        positive_ns(ms)


def test_hello_describes_the_device_and_its_clock(registry: Registry, device: ScriptedDevice) -> None:
    holdpoint.workload(name="f", timer="cuda_graph")(lambda: None)
    answer = Worker(registry).answer({"type": "hello", "protocol": 2})
    assert answer["device"] == {"ordinal": 0, "name": "scripted"}
    assert answer["clock_resolution_ns"] == devices.EVENT_RESOLUTION_NS


@pytest.mark.parametrize("timer", ["cuda_graph", "cuda_events", "host_monotonic"])
def test_without_a_device_workloads_are_skipped_with_a_reason(registry: Registry, timer: str) -> None:
    reason = devices.why_unavailable("torch")
    if reason is None:
        pytest.skip("skipped: there is a device here")
    holdpoint.workload(name="f", timer=timer)(lambda: None)
    answer = Worker(registry).answer({"type": "prepare", "workload": "f", "seed": 1})
    assert answer == {"type": "skipped", "workload": "f", "reason": reason}
    assert reason in ("torch_not_installed", "cuda_unavailable")


def test_arguments_on_a_device_need_a_timer_that_waits(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "is_on_device", lambda array: True)
    holdpoint.workload(name="f", inputs=lambda seed: numpy.ones(1))(lambda x: x)
    answer = Worker(registry).answer({"type": "prepare", "workload": "f", "seed": 1})
    assert "a call returns before its work is done" in answer["message"]


def test_versions_and_modes_of_torch_are_locked() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    lock = devices.environment_lock()
    assert lock["torch"] == torch.__version__
    assert lock["deterministic"] in ("on", "off")
    assert int(lock["torch_threads"]) >= 1


def test_a_compiled_function_answers_as_the_plain_one(registry: Registry) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    place = "cuda" if torch.cuda.is_available() else "cpu"
    options: Any = {"variants": ["eager", "compiled", "graphed"], "dtype": "f32"}
    options["inputs"] = lambda seed: torch.randn(8, device=place)
    if place == "cuda":
        options["timer"] = "cuda_events"
    holdpoint.workload(name="f", **options)(lambda x: torch.sin(x) + 1)
    worker = Worker(registry)
    for variant in ("eager", "compiled", "graphed"):
        name = f"f.{variant}"
        prepared = worker.answer({"type": "prepare", "workload": name, "seed": 1})
        if prepared["type"] == "skipped":
            assert variant == "graphed", prepared
            assert prepared["reason"] == "cuda_unavailable"
            continue
        answer = worker.answer({"type": "verify", "workload": name})
        if answer["type"] == "skipped":
            assert "no_compiler" in answer["reason"]
        else:
            assert (answer["answer"] is None) == (variant == "eager")
            assert variant == "eager" or answer["answer"]["passed"]
