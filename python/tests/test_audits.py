"""Functions that are quick where they are timed and nowhere else, on the host and on a scripted device."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from test_cuda import CALL_MS, Doubling, ScriptedDevice

import holdpoint
from holdpoint import audits, device_calls, devices
from holdpoint.answers import arrays_in
from holdpoint.audits import DEVICE, HOST, LOOKS, Auditor
from holdpoint.clocks import NO_ANSWER, HostCalls, Samples
from holdpoint.device_audits import BadTimeError, check_answers_are_new, check_streams_are_joined
from holdpoint.inputs import INPUTS
from holdpoint.worker import Worker
from holdpoint.workloads import Registry

numpy = pytest.importorskip("numpy")


class ReplayingDevice(ScriptedDevice):
    """A device whose graphs write their answers again."""

    def capture(self, function: Callable[[], object]) -> tuple[Callable[[], None], object]:
        _, answer = super().capture(function)

        def replay() -> None:
            for target, source in zip(arrays_in(answer), arrays_in(function()), strict=True):
                target[...] = source

        return replay, answer


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> ScriptedDevice:
    scripted = ReplayingDevice()
    for module in (devices, device_calls):
        monkeypatch.setattr(module, "open_device", lambda arguments=(): scripted)
    return scripted


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "chance", lambda: math.inf)
    monkeypatch.setattr(audits, "FIRST_AUDIT_NS_MAX", 0)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every audit is due that may be."""
    monkeypatch.setattr(audits, "chance", lambda: 0.0)


def draw(seed: int) -> tuple[Any]:
    return (numpy.full(4, seed, dtype=float),)


def run_all(worker: Worker) -> list[dict[str, Any]]:
    """Prepares, and runs with a new seed four times; the answers."""
    assert worker.answer({"type": "prepare", "workload": "f", "seed": 1})["type"] == "prepared"
    request = {"type": "run", "workload": "f", "samples_count": 2, "calls_per_sample": 10}
    return [worker.answer({**request, "seed": seed}) for seed in range(2, 6)]


def verify(worker: Worker) -> dict[str, Any]:
    answer: dict[str, Any] = worker.answer({"type": "verify", "workload": "f"})["answer"]
    return answer


def memoised_by_content(device: ScriptedDevice) -> Callable[[Any], Any]:
    known: dict[bytes, Any] = {}

    def kernel(x: Any) -> Any:
        if x.tobytes() not in known:
            device.now_ms += CALL_MS
            known[x.tobytes()] = x * 2
        device.now_ms += CALL_MS / 100
        return known[x.tobytes()].copy()

    return kernel


def skips_what_is_written(device: ScriptedDevice) -> Callable[[Any], Any]:
    memory = numpy.full(4, numpy.nan)

    def kernel(x: Any) -> Any:
        device.now_ms += CALL_MS / 100
        if numpy.isnan(memory[0]):
            device.now_ms += CALL_MS
            memory[...] = 2 * x
        return memory

    return kernel


def every_other_call(device: ScriptedDevice) -> Callable[[Any], Any]:
    made: list[Any] = [0, None]

    def kernel(x: Any) -> Any:
        made[0] += 1
        device.now_ms += CALL_MS / 100
        if made[0] % 2:
            device.now_ms += CALL_MS
            made[1] = 2 * x
        return made[1]

    return kernel


@pytest.mark.parametrize("timer", ["cuda_events", "cuda_graph"])
@pytest.mark.parametrize("cheat", [memoised_by_content, every_other_call])
def test_a_kernel_that_leaves_out_work_is_a_bad_time(
    registry: Registry, device: ScriptedDevice, always: None, timer: str, cheat: Any
) -> None:
    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=lambda x: 2 * x)(cheat(device))
    causes = {answer.get("cause") for answer in run_all(Worker(registry))}
    assert "bad_time" in causes


def test_each_call_by_itself_starts_from_a_spoiled_output(
    registry: Registry, device: ScriptedDevice, never: None
) -> None:
    holdpoint.workload(name="f", timer="cuda_events", inputs=draw)(skips_what_is_written(device))
    for answer in run_all(Worker(registry)):
        assert answer["elapsed_ns"] == [10 * 252_500] * 2, "no call found its output written"


def test_a_graph_whose_calls_find_their_output_written_is_a_bad_time(
    registry: Registry, device: ScriptedDevice, always: None
) -> None:
    holdpoint.workload(name="f", timer="cuda_graph", inputs=draw)(skips_what_is_written(device))
    answers = run_all(Worker(registry))
    assert "bad_time" in {answer.get("cause") for answer in answers}


@pytest.mark.parametrize("timer", ["cuda_events", "cuda_graph"])
def test_an_honest_kernel_passes_every_audit(
    registry: Registry, device: ScriptedDevice, always: None, timer: str
) -> None:
    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=lambda x: 2 * x)(Doubling(device))
    worker = Worker(registry)
    runs = run_all(worker)
    assert [answer["elapsed_ns"] for answer in runs] == [[2_500_000] * 2] * 4
    assert verify(worker)["passed"]


@pytest.mark.parametrize("timer", ["cuda_events", "cuda_graph"])
def test_a_kernel_whose_constant_answer_is_in_an_argument_passes(
    registry: Registry, device: ScriptedDevice, always: None, timer: str
) -> None:
    def clip(x: Any) -> Any:
        device.now_ms += CALL_MS
        return numpy.minimum(x, 1, out=x)

    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=lambda x: numpy.minimum(x, 1))(clip)
    worker = Worker(registry)
    runs = run_all(worker)
    assert {answer["type"] for answer in runs} == {"samples"}
    assert verify(worker)["passed"]


def test_work_that_ends_after_the_timed_stream_is_a_wrong_answer(
    registry: Registry, device: ScriptedDevice, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere: list[Callable[[], None]] = []

    def finish() -> None:
        while elsewhere:
            elsewhere.pop()()

    def kernel(x: Any) -> Any:
        out, given = numpy.zeros(4), x.copy()
        device.now_ms += CALL_MS
        elsewhere.append(lambda: numpy.multiply(given, 2, out=out))
        return out

    monkeypatch.setattr(device, "synchronize", finish)
    holdpoint.workload(name="f", timer="cuda_events", inputs=draw, reference=lambda x: 2 * x)(kernel)
    worker = Worker(registry)
    runs = run_all(worker)
    finish()
    assert {answer["type"] for answer in runs} == {"samples"}
    assert "is the work launched on another one?" in verify(worker)["first_bad"]


@pytest.mark.parametrize(("left_ns", "is_refused"), [([20_000], False), ([10**6, 30_000], False), ([10**6], True)])
def test_work_on_another_stream_is_a_bad_time(left_ns: list[int], is_refused: bool) -> None:
    """How long waiting for the device takes when the timed stream is done, each time that it is looked at."""
    device, now_ns, looks = ScriptedDevice(), [0], [0]

    def wait() -> None:
        at, looks[0] = looks[0], looks[0] + 1
        # Before the calls, then after them.
        now_ns[0] += left_ns[min(at // 2, len(left_ns) - 1)] if at % 2 else 0

    device.synchronize = wait  # type: ignore[method-assign]
    calls: list[int] = []
    refusal = pytest.raises(BadTimeError, match=r"1000 µs after 20 calls that take 1\.3 µs each")
    with refusal if is_refused else nullcontext():
        check_streams_are_joined(device, lambda: calls.append(1), 1300.0, lambda: now_ns[0])
    assert len(calls) == 20 * (looks[0] // 2)


def test_work_elsewhere_that_waits_for_the_timed_stream_shows_behind_a_block() -> None:
    """While nothing blocks the device, it is nearly done when the timed stream is."""
    device, now_ns, is_blocked = ScriptedDevice(), [0], [False]

    def block(ns: int) -> None:
        is_blocked[0] = ns >= 0

    def wait() -> None:
        now_ns[0] += 10**6 if is_blocked[0] else 20_000
        is_blocked[0] = False

    device.block, device.synchronize = block, wait  # type: ignore[method-assign]
    with pytest.raises(BadTimeError, match=r"1000 µs after 20 calls"):
        check_streams_are_joined(device, lambda: None, 1300.0, lambda: now_ns[0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "uint8", "complex64"])
def test_answers_are_marked_by_values_of_their_type(device: ScriptedDevice, dtype: str) -> None:
    kept = numpy.ones(3, dtype=dtype)
    with pytest.raises(BadTimeError, match="without writing its answer"):
        check_answers_are_new(device, lambda: kept, random.Random(1), as_graph=False)
    check_answers_are_new(device, lambda: numpy.ones(3, dtype=dtype), random.Random(1), as_graph=False)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "uint8"])
def test_answers_of_torch_are_marked_by_values_of_their_type(device: ScriptedDevice, dtype: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    kept = torch.ones(3).to(getattr(torch, dtype))
    with pytest.raises(BadTimeError, match="without writing its answer"):
        check_answers_are_new(device, lambda: kept, random.Random(1), as_graph=False)
    check_answers_are_new(device, lambda: torch.ones(3).to(getattr(torch, dtype)), random.Random(1), as_graph=False)


def test_what_cannot_be_marked_is_not_accused(device: ScriptedDevice) -> None:
    for answer in (None, "text", [1.0], numpy.ones(3, dtype=bool), numpy.ones(0)):
        check_answers_are_new(device, lambda answer=answer: answer, random.Random(1), as_graph=False)  # type: ignore[misc]


def test_a_timed_call_must_take_a_share_of_a_first_one() -> None:
    assert not DEVICE.is_too_quick(2_400, 8_000), "a launch by itself"
    assert not DEVICE.is_too_quick(50_000, 110_000), "in the L2 cache"
    assert DEVICE.is_too_quick(1_300, 57_000)
    assert DEVICE.is_too_quick(38_000, 105_000)
    assert not HOST.is_too_quick(100, 5_500), "a call of 100 ns whose code is not in the caches"
    assert not HOST.is_too_quick(1e6, 9e6)
    assert HOST.is_too_quick(100, 20_000)
    assert not HOST.is_too_quick(300, 5_000)
    assert HOST.is_too_quick(300, 5_000, calls_count=4), "what one call loses, four share"


class Scripted(HostCalls):
    """A function by the times of its first calls and of its samples."""

    def __init__(self, first_ns: Iterator[float], call_ns: int) -> None:
        super().__init__(lambda: None)
        self.first_ns, self.call_ns = first_ns, call_ns

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        return Samples([self.call_ns * calls_per_sample] * samples_count)


@pytest.mark.parametrize(
    ("first_ns", "looks", "is_refused"),
    [([100_000], 0, False), ([10**7, 100_000], 1, False), ([10**7] * LOOKS, LOOKS - 1, True)],
)
def test_only_several_slow_first_calls_in_a_row_are_believed(
    first_ns: list[float], looks: int, is_refused: bool
) -> None:
    calls = Scripted(iter(first_ns), 100_000)
    taken: list[float] = []

    def load_other() -> float:
        taken.append(next(calls.first_ns))
        return taken[-1]

    auditor = Auditor(calls, load_other)
    refusal = pytest.raises(BadTimeError, match="100000 ns, but 10000000 ns on inputs that it has not seen")
    with refusal if is_refused else nullcontext():
        auditor.judge(next(calls.first_ns), calls.take(20, 4), 4)
    assert len(taken) == looks


def test_audits_take_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    auditor = Auditor(Scripted(iter(()), 1), lambda: None)

    def due(chance: float) -> bool:
        monkeypatch.setattr(audits, "chance", lambda: chance)
        return auditor.is_due("first", 1_000_000)

    assert not due(0.0), "nothing is known yet of how long a request takes"
    auditor.request_ns = 10_000_000
    assert due(math.inf), "the first one is not left to chance"
    assert not auditor.is_due("first", 10**9), "unless it takes long"
    auditor.costs_ns["first"] = 1_000_000
    assert due(0.49)
    assert not due(0.51)
    auditor.costs_ns["first"] = 5_000_000
    assert due(0.09)
    assert not due(0.11)


def work(x: Any) -> float:
    """About a hundred microseconds."""
    total = 0.0
    for value in x.tolist() * 1000:
        total += value
    return total


@pytest.mark.parametrize("remembers", [False, True])
def test_a_memoised_function_is_a_bad_time_unless_that_is_measured(
    registry: Registry, always: None, remembers: bool
) -> None:
    known: dict[bytes, float] = {}

    def memoised(x: Any) -> float:
        if x.tobytes() not in known:
            known[x.tobytes()] = work(x)
        return known[x.tobytes()]

    holdpoint.workload(name="f", inputs=draw, reference=work, remembers=remembers)(memoised)
    answers = run_all(Worker(registry))
    bad = [answer for answer in answers if answer.get("cause") == "bad_time"]
    assert bool(bad) != remembers
    assert all("declare remembers=True" in answer["message"] for answer in bad)


def test_answers_kept_by_the_identity_of_arguments_show_in_what_first_calls_take(
    registry: Registry, never: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eighth of the work at each call is no contradiction by itself; `ab` compares both sides' first calls."""
    monkeypatch.setattr(audits, "FIRST_AUDIT_NS_MAX", 10**9)
    known: dict[int, tuple[Any, float]] = {}

    def kept(x: Any) -> float:
        work(x[:1])
        if id(x) not in known:
            known[id(x)] = x, work(numpy.concatenate([x, x]))
        return known[id(x)][1] / 2

    holdpoint.workload(name="f", inputs=draw, reference=work)(kept)
    worker = Worker(registry)
    first, second, *others = run_all(worker)
    assert "first_ns" not in first
    assert second["first_ns"] > 0
    assert all("first_ns" not in answer for answer in others), "one audit in each process, the rest by chance"


def test_calls_take_their_inputs_in_turn(registry: Registry, never: None) -> None:
    seen: list[int] = []

    def total(values: list[int]) -> int:
        seen.append(values[0])
        return sum(values)

    holdpoint.workload(name="f", inputs=lambda seed: ([seed, 1],), reference=sum)(total)
    worker = Worker(registry)
    runs = run_all(worker)
    assert {answer["type"] for answer in runs} == {"samples"}
    assert all(one != other for one, other in itertools.pairwise(seen))
    last = seen[-20:]
    assert len(set(last)) == INPUTS
    assert {5} < set(last), "the request's own is among them"
    assert verify(worker)["passed"], "the answer belongs to the inputs of the last call"


def test_an_honest_function_is_measured(registry: Registry, always: None) -> None:
    holdpoint.workload(name="f", inputs=draw, reference=work)(work)
    worker = Worker(registry)
    runs = run_all(worker)
    assert {answer["type"] for answer in runs} == {"samples"}
    assert verify(worker)["passed"]


@pytest.mark.parametrize("is_audited", [False, True])
def test_the_peak_is_that_of_the_calls_with_and_without_audits(
    registry: Registry, device: ScriptedDevice, monkeypatch: pytest.MonkeyPatch, is_audited: bool
) -> None:
    """What is allocated is what arrays that the worker holds take, and more in an audit."""
    monkeypatch.setattr(audits, "chance", lambda: 0.0 if is_audited else math.inf)
    monkeypatch.setattr(audits, "FIRST_AUDIT_NS_MAX", 0)
    peak = [0]

    def note_peak() -> int:
        held = worker.prepared["f"].calls.first  # type: ignore[attr-defined]
        peak[0] = max(peak[0], 4096 + (0 if held is NO_ANSWER else 512))
        return peak[0]

    def check(*_: Any, **__: Any) -> None:
        peak[0] += 10_000

    monkeypatch.setattr(device_calls, "check_answers_are_new", check)
    monkeypatch.setattr(device, "peak_bytes", note_peak)
    monkeypatch.setattr(device, "reset_peak", lambda: peak.__setitem__(0, 0))
    holdpoint.workload(name="f", timer="cuda_events", inputs=draw)(Doubling(device))
    worker = Worker(registry)
    assert {answer["peak_device_bytes"] for answer in run_all(worker)} == {4096}
