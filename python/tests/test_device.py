"""The timers on a real device; skipped aloud where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdpoint
from holdpoint import audits
from holdpoint.worker import Worker
from holdpoint.workloads import Registry

torch: Any = pytest.importorskip("torch", reason="skipped: torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("skipped: no device", allow_module_level=True)

TIMERS = ["cuda_graph", "cuda_events", "host_monotonic"]


def draw(seed: int) -> tuple[Any]:
    generator = torch.Generator("cuda").manual_seed(seed)
    return (torch.randn(1 << 16, generator=generator, device="cuda"),)


def measure(registry: Registry, name: str, seeds: tuple[int, ...] = (2, 2, 3)) -> list[dict[str, Any]]:
    """Prepares, runs and verifies a workload; the answers to the last request of each kind."""
    worker = Worker(registry)
    prepared = worker.answer({"type": "prepare", "workload": name, "seed": 1})
    assert prepared["type"] == "prepared", prepared
    run: dict[str, Any] = {}
    for seed in seeds:
        request = {"type": "run", "workload": name, "seed": seed, "samples_count": 4, "calls_per_sample": 10}
        run = worker.answer(request)
    return [run, worker.answer({"type": "verify", "workload": name})]


@pytest.mark.parametrize("timer", TIMERS)
def test_calls_are_timed_and_their_last_answer_is_right(registry: Registry, timer: str) -> None:
    reference: Callable[[Any], Any] = lambda x: x.double() * 2 + 1  # noqa: E731
    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=reference, dtype="f32")(lambda x: x * 2 + 1)
    run, verified = measure(registry, "f")
    assert run["type"] == "samples", run
    assert len(run["elapsed_ns"]) == 4
    assert min(run["elapsed_ns"]) > 0
    assert run["peak_device_bytes"] >= 2 * 4 << 16, "an input and an output"
    assert verified["answer"]["passed"], verified
    assert verified["answer"]["values_count"] == 1 << 16


@pytest.mark.parametrize("timer", ["cuda_graph", "cuda_events"])
def test_cold_calls_are_timed(registry: Registry, timer: str) -> None:
    holdpoint.workload(name="f", timer=timer, cache="cold", inputs=draw, reference=lambda x: x + 1)(lambda x: x + 1)
    run, verified = measure(registry, "f")
    assert run["type"] == "samples", run
    assert verified["answer"]["passed"], verified


@pytest.mark.parametrize("timer", TIMERS)
def test_an_output_that_is_never_written_is_wrong(registry: Registry, timer: str) -> None:
    is_writing = True

    def kernel(x: Any) -> Any:
        out = torch.empty_like(x)
        return torch.add(x, 1, out=out) if is_writing else out

    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=lambda x: x + 1)(kernel)
    worker = Worker(registry)
    worker.answer({"type": "prepare", "workload": "f", "seed": 1})
    request = {"type": "run", "workload": "f", "seed": 1, "samples_count": 3, "calls_per_sample": 2}
    worker.answer(request)
    assert worker.answer({"type": "verify", "workload": "f"})["answer"]["passed"]
    is_writing = False
    worker.answer({"type": "prepare", "workload": "f", "seed": 1})
    worker.answer(request)
    assert not worker.answer({"type": "verify", "workload": "f"})["answer"]["passed"]


def test_a_call_that_waits_for_the_device_cannot_be_timed_by_events(registry: Registry) -> None:
    holdpoint.workload(name="f", timer="cuda_events", inputs=draw)(lambda x: float(x.sum().item()))
    run, _ = measure(registry, "f", seeds=(1,))
    assert (run["type"], run["cause"]) == ("error", "bad_time")


@pytest.mark.parametrize("variant", ["eager", "compiled", "graphed"])
def test_every_way_of_calling_answers_alike(registry: Registry, variant: str) -> None:
    options: Any = {"timer": "host_monotonic", "inputs": draw, "variants": [variant], "dtype": "f32"}
    holdpoint.workload(name="f", reference=lambda x: torch.sin(x.double()) + 1, **options)(lambda x: torch.sin(x) + 1)
    run, verified = measure(registry, f"f.{variant}")
    assert run["type"] == "samples", run
    assert verified["answer"]["passed"], verified


def test_out_of_memory_is_a_failure_that_the_worker_survives(registry: Registry) -> None:
    huge: Callable[[int], Any] = lambda seed: torch.empty(1 << 45, dtype=torch.uint8, device="cuda")  # noqa: E731
    holdpoint.workload(name="huge", timer="cuda_events", inputs=huge)(lambda x: x)
    holdpoint.workload(name="f", timer="cuda_events", inputs=draw)(lambda x: x + 1)
    worker = Worker(registry)
    answer = worker.answer({"type": "prepare", "workload": "huge", "seed": 1})
    assert (answer["type"], answer["cause"], "fatal" in answer) == ("error", "out_of_memory", False)
    assert worker.answer({"type": "prepare", "workload": "f", "seed": 1})["type"] == "prepared"


def test_hello_describes_the_device(registry: Registry) -> None:
    holdpoint.workload(name="f", timer="cuda_graph", inputs=draw)(lambda x: x)
    device = Worker(registry).answer({"type": "hello", "protocol": 2})["device"]
    assert device["name"] == torch.cuda.get_device_name()
    assert device["uuid"].startswith("GPU-")
    assert len(device["uuid"]) == 40
    assert device["versions"]["driver"]
    limits = {"multiprocessors", "sm_mhz_max", "memory_mhz_max", "memory_bus_bits", "l2_bytes"}
    assert all(device[key] > 0 for key in limits)
    assert device["multiprocessors"] == torch.cuda.get_device_properties(0).multi_processor_count


@pytest.mark.parametrize("timer", TIMERS)
def test_cupy_arrays_are_timed_as_well(registry: Registry, timer: str) -> None:
    cupy = pytest.importorskip("cupy", reason="skipped: CuPy is not installed")

    def draw_cupy(seed: int) -> Any:
        return cupy.random.default_rng(seed).random(1 << 16, dtype="float32")

    holdpoint.workload(name="f", timer=timer, inputs=draw_cupy, reference=lambda x: x * 2 + 1)(lambda x: x * 2 + 1)
    run, verified = measure(registry, "f")
    assert run["type"] == "samples", run
    assert verified["answer"]["passed"], verified


def test_functions_on_the_device_are_compared_in_this_process(binary: str) -> None:
    x = torch.randn(1 << 20, device="cuda")
    verdict = holdpoint.compare(
        lambda x: x + 1,
        lambda x: sum((x for _ in range(20)), x) * 0 + x + 1,
        inputs=(x,),
        timer="cuda_events",
        budget=120,
    )
    assert verdict.verdict == "regressed", str(verdict)


def repeat_work(x: Any) -> Any:
    """About a hundred microseconds of small kernels."""
    for _ in range(40):
        x = torch.sin(x)
    return x


def twice(x: Any) -> Any:
    return repeat_work(repeat_work(x))


def memoise(side: Any) -> Callable[[Any], Any]:
    known: dict[int, Any] = {}

    def cheat(x: Any) -> Any:
        # In-place changes are counted by torch, so no value need be read.
        if x._version not in known:
            known[x._version] = twice(x)
        return known[x._version].clone()

    return cheat


def skip_every_other(side: Any) -> Callable[[Any], Any]:
    made: list[Any] = [0, None]

    def cheat(x: Any) -> Any:
        made[0] += 1
        if made[0] % 2 or made[1] is None:
            made[1] = twice(x)
        return made[1]

    return cheat


def skip_while_captured(side: Any) -> Callable[[Any], Any]:
    kept: list[Any] = [None]

    def cheat(x: Any) -> Any:
        if not torch.cuda.is_current_stream_capturing():
            kept[0] = None
            return twice(x)
        if kept[0] is None:
            kept[0] = twice(x)
        return kept[0]

    return cheat


def launch_elsewhere(side: Any) -> Callable[[Any], Any]:
    wide = torch.randn(4096, 4096, device="cuda")

    def cheat(x: Any) -> Any:
        out = torch.empty_like(x)
        with torch.cuda.stream(side):
            torch.mm(wide, wide)
            torch.mul(x, 2, out=out)
        return out

    return cheat


CHEATS = [
    ("cuda_events", memoise, twice),
    ("cuda_events", skip_every_other, twice),
    ("cuda_events", launch_elsewhere, lambda x: x * 2),
    ("cuda_graph", skip_every_other, twice),
    ("cuda_graph", skip_while_captured, twice),
]


@pytest.mark.parametrize(("timer", "cheat", "reference"), CHEATS)
def test_a_kernel_that_leaves_out_work_is_refused(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, timer: str, cheat: Any, reference: Any
) -> None:
    monkeypatch.setattr(audits, "chance", lambda: 0.0)
    function = cheat(torch.cuda.Stream())
    holdpoint.workload(name="f", timer=timer, inputs=draw, reference=reference, dtype="f32")(function)
    worker = Worker(registry)
    worker.answer({"type": "prepare", "workload": "f", "seed": 1})
    request = {"type": "run", "workload": "f", "samples_count": 4, "calls_per_sample": 10}
    answers = [worker.answer({**request, "seed": seed}) for seed in range(2, 6)]
    verified = worker.answer({"type": "verify", "workload": "f"}).get("answer") or {"passed": False}
    is_bad_time = "bad_time" in {answer.get("cause") for answer in answers}
    assert is_bad_time or not verified["passed"], answers


HONEST: dict[str, Callable[[Any], Any]] = {
    "tiny": lambda x: x[:16] + 1,
    "small": lambda x: x * 2 + 1,
    "many kernels": twice,
    "in place": lambda x: x.clamp_(max=0.5),
    "constant": torch.zeros_like,
    "matrix": lambda x: x.view(256, 256) @ x.view(256, 256),
    "reduction": lambda x: (x.sum(), x > 0),
    "float8": lambda x: x.to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize("cache", ["warm", "cold"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_passes_every_audit(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, timer: str, cache: str, name: str
) -> None:
    if timer == "host_monotonic" and cache == "cold":
        pytest.skip("the host's timer has no cold cache")
    monkeypatch.setattr(audits, "chance", lambda: 0.0)
    holdpoint.workload(name="f", timer=timer, cache=cache, inputs=draw)(HONEST[name])
    worker = Worker(registry)
    worker.answer({"type": "prepare", "workload": "f", "seed": 1})
    request = {"type": "run", "workload": "f", "samples_count": 4, "calls_per_sample": 50}
    for seed in range(2, 12):
        answer = worker.answer({**request, "seed": seed})
        assert answer["type"] == "samples", answer
