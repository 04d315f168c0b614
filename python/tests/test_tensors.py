from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import holdpoint
from holdpoint import tensors
from holdpoint.worker import Worker
from holdpoint.workloads import Registry

VALUES = [0.0, -0.0, 1.0, -1.5, 0.0625, 448.0, -448.0]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "e4m3"])
def test_lists_hold_what_every_element_type_can(dtype: str) -> None:
    form = tensors.Lists()
    raw = form.write(VALUES, dtype, [len(VALUES)])
    assert len(raw) == len(VALUES) * tensors.BYTES[dtype]
    assert form.read(raw, dtype, [len(VALUES)]) == VALUES


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "e4m3"])
def test_lists_and_torch_round_alike(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    form = tensors.Lists()
    # Everything between neighbours: halves, so that ties are among them.
    known: Any = form.read(bytes(range(0x7F)), "e4m3", [0x7F])
    middles = [(low + high) / 2 for low, high in pairwise(known)]
    values = [sign * (value + nudge) for sign in (1, -1) for value in middles for nudge in (0.0, 1e-3, -1e-4)]
    other = tensors.TorchTensors("cpu").write(torch.tensor(values, dtype=torch.float64), dtype, [len(values)])
    own = form.write(values, dtype, [len(values)])
    got = form.read(own, dtype, [len(values)])
    assert got == form.read(other, dtype, [len(values)])


def test_what_is_too_large_becomes_infinite_or_stays_at_the_largest() -> None:
    form = tensors.Lists()
    for dtype in ("f32", "f16", "bf16"):
        assert form.read(form.write([1e39, -1e39], dtype, [2]), dtype, [2]) == [math.inf, -math.inf]
    assert form.read(form.write([1e39, -math.inf], "e4m3", [2]), "e4m3", [2]) == [448.0, -448.0]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "e4m3"])
def test_nan_stays_nan(dtype: str) -> None:
    form = tensors.Lists()
    got: Any = form.read(form.write([math.nan], dtype, [1]), dtype, [1])
    assert math.isnan(got[0])


def test_numpy_says_what_it_does_not_have() -> None:
    pytest.importorskip("numpy")
    form = tensors.NumpyArrays()
    assert form.write(form.read(struct.pack("<2f", 1, 2), "f32", [2]), "f16", [2]) == struct.pack("<2e", 1, 2)
    with pytest.raises(holdpoint.Skip, match="NumPy has no bf16"):
        form.read(b"", "bf16", [0])


# A file with a gap of four bytes before, between and after an input of two floats and an output of two.
GAP = b"\xff\xff\xff\xff"
PLACES = {
    "inputs": [{"name": "x", "shape": [2], "byte_offset": 4}],
    "outputs": [{"name": "y", "shape": [2], "byte_offset": 16}],
}


def evaluate(function: Callable[..., object], folder: Path, registry: Registry, **request: Any) -> tuple[Any, bytes]:
    holdpoint.kernel("op", **request.pop("kernel", {}))(function)
    path = folder / "tensors"
    path.write_bytes(GAP + struct.pack("<2f", 3, 4) + GAP + struct.pack("<2f", math.nan, math.nan) + GAP)
    full = {"op": "op", "shape": [2], "dtype": "f32", "params": {}, "repeats": 3, "calls": [PLACES], **request}
    answer = Worker(registry).answer({"type": "evaluate", "file": str(path), "bytes": 28, **full})
    return answer, path.read_bytes()


@pytest.mark.parametrize("form", ["list", "numpy", "torch"])
def test_a_kernel_is_called_as_often_as_asked_for(form: str, tmp_path: Path, registry: Registry) -> None:
    if form != "list":
        pytest.importorskip(form, reason=f"{form} is not installed")
    calls = []

    def double(shape: list[int], params: dict[str, Any], x: Any) -> Any:
        calls.append((shape, params))
        return [2 * each for each in x] if form == "list" else 2 * x

    answer, left = evaluate(double, tmp_path, registry, kernel={"tensors": form})
    assert answer["type"] == "computed", answer
    assert answer["elapsed_ns"] > 0
    assert calls == [([2], {})] * 3
    assert left == GAP + struct.pack("<2f", 3, 4) + GAP + struct.pack("<2f", 6, 8) + GAP


def test_an_input_that_a_kernel_writes_is_changed_in_the_file(tmp_path: Path, registry: Registry) -> None:
    def overwrite(shape: list[int], params: dict[str, Any], x: list[float]) -> list[float]:
        x[0] = 9.0
        return x

    _, left = evaluate(overwrite, tmp_path, registry, repeats=1)
    assert left[4:12] == struct.pack("<2f", 9, 4)


def test_outputs_must_be_as_many_and_as_large_as_asked_for(tmp_path: Path, registry: Registry) -> None:
    answer, _ = evaluate(lambda shape, params, x: (x, x), tmp_path, registry)
    assert "returned 2 outputs, not y" in answer["message"]
    registry.kernels.clear()
    answer, _ = evaluate(lambda shape, params, x: [1.0, 2.0, 3.0], tmp_path, registry)
    assert "an output has 3 values, [2] needs 2" in answer["message"]


def test_a_case_without_a_kernel_is_skipped(tmp_path: Path, registry: Registry) -> None:
    def picky(shape: list[int], params: dict[str, Any], x: list[float]) -> list[float]:
        raise holdpoint.Skip("at most 1 wide")

    answer, _ = evaluate(picky, tmp_path, registry, kernel={"dtypes": ["f32"]})
    assert answer == {"type": "skipped", "workload": "op", "reason": "at most 1 wide"}
    worker = Worker(registry)
    assert worker.answer({"type": "evaluate", "op": "other", "dtype": "f32"})["reason"] == (
        "no kernel for other is declared here"
    )
    assert worker.answer({"type": "evaluate", "op": "op", "dtype": "f16"})["reason"] == "no kernel for op in f16"


def test_outputs_are_those_that_were_there_when_the_clock_stopped(tmp_path: Path, registry: Registry) -> None:
    class Lazy(list[float]):
        def __iter__(self) -> Any:
            return iter([6.0, 8.0])

    answer, left = evaluate(lambda shape, params, x: Lazy([1.0, 2.0]), tmp_path, registry)
    assert answer["type"] == "computed", answer
    assert left[16:24] == struct.pack("<2f", 1, 2), "what the list computes when it is read is not in the time"
    registry.kernels.clear()
    answer, _ = evaluate(lambda shape, params, x: (2 * each for each in x), tmp_path, registry)
    assert "an output is a generator, whose values are not computed yet" in answer["message"]
