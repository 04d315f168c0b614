"""Models of ONNX Runtime: shapes, inputs, answers and times."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from holdpoint.engine import worker as engine
from holdpoint.engine.model import TOLERANCES, compare, device_lock
from holdpoint.engine.onnx import OnnxCalls, uses_tf32
from holdpoint.engine.shapes import EngineError, Tensor, parse, resolve

ROOT = Path(__file__).parents[2]
ATTENTION = Path(__file__).parent / "data" / "attention.onnx"
IMAGE = Tensor("image", (None, 3, None, None), "float32")


def start(*arguments: str) -> engine.EngineWorker:
    parser = argparse.ArgumentParser()
    engine.add_arguments(parser)
    return engine.EngineWorker(parser.parse_args(arguments))


def ask(worker: engine.EngineWorker, kind: str, **fields: object) -> dict[str, Any]:
    return worker.answer({"type": kind, **fields})


@pytest.fixture(scope="session")
def example() -> Any:
    """The example's script as a module."""
    pytest.importorskip("onnx", reason="skipped: onnx is not installed")
    pytest.importorskip("onnxruntime", reason="skipped: onnxruntime is not installed")
    spec = importlib.util.spec_from_file_location("make_model", ROOT / "examples/onnx-model/make_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model(example: Any, tmp_path: Path) -> str:
    path = tmp_path / "model.onnx"
    path.write_bytes(example.build(1).SerializeToString())
    return str(path)


def test_shapes_are_those_of_the_case_and_of_the_model() -> None:
    size = Tensor("size", (2,), "int64")
    shapes = resolve("m", [IMAGE, size], parse(" image = 1 3 8x8 ;"))
    assert shapes == {"image": (1, 3, 8, 8), "size": (2,)}
    assert resolve("m", [size], parse("size=2")) == {"size": (2,)}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("imgae=1x3x8x8", "m has no input 'imgae'; its inputs: image=?x3x?x? float32"),
        ("image=1x3x8", "image=1x3x8 has 3 dimensions, m wants 4"),
        ("image=1x4x8x8", "image=1x4x8x8 changes a size that m fixes to 3"),
        ("", "m leaves sizes of 'image' open and no shape is given for it"),
    ],
)
def test_a_case_that_does_not_fit_names_the_inputs(case: str, message: str) -> None:
    with pytest.raises(EngineError, match="its inputs: image=") as error:
        resolve("m", [IMAGE], parse(case))
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["image", "=1x3", "image=", "image=1x0", "image=1xa"])
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="is not a shape"):
        parse(text)


def test_a_model_is_prepared_run_and_checked(model: str) -> None:
    worker = start(model, "--case", "small", "image=2x3x16x16")
    hello = ask(worker, "hello", protocol=2)
    assert {"onnxruntime", "provider", "threads"} <= set(hello["environment_lock"])
    assert ask(worker, "list")["workloads"] == [{"name": "small", "op": "inference", "shape": [], "dtype": ""}]
    prepared = ask(worker, "prepare", workload="small", seed=1)
    assert prepared["work"] == {"items": 2, "item": "frames"}
    assert prepared["kernel"]["shape_bucket"] == "image=2x3x16x16"
    assert len(prepared["kernel"]["code_sha256"]) == 64
    before = ask(worker, "verify", workload="small")["answer"]
    assert (before["passed"], before["values_count"]) == (True, 20)
    samples = ask(worker, "run", workload="small", seed=2, samples_count=3, calls_per_sample=2)
    assert len(samples["elapsed_ns"]) == 3
    assert all(ns > 0 for ns in samples["elapsed_ns"])
    assert samples["untimed_ns"] > 0
    assert ask(worker, "verify", workload="small")["answer"]["passed"]
    assert ask(worker, "release", workload="small") == {"type": "released", "workload": "small"}
    assert worker.model is None


def test_an_output_that_was_not_written_does_not_pass(model: str) -> None:
    worker = start(model, "--case", "small", "image=1x3x8x8")
    ask(worker, "prepare", workload="small", seed=1)
    ask(worker, "run", workload="small", seed=1, samples_count=1, calls_per_sample=1)
    calls = worker.prepared["small"].calls
    assert isinstance(calls, OnnxCalls)
    # Only the warm-up call computes; the timed one leaves what was there before.
    turns = iter([calls.function])
    calls.function = lambda: next(turns, lambda: None)()
    ask(worker, "run", workload="small", seed=1, samples_count=1, calls_per_sample=1)
    answer = ask(worker, "verify", workload="small")["answer"]
    assert not answer["passed"]
    assert "nan" in answer["first_bad"]


def test_inputs_are_drawn_from_the_seed(model: str) -> None:
    worker = start(model, "--case", "small", "image=1x3x8x8")
    ask(worker, "prepare", workload="small", seed=1)
    outputs = []
    for seed in (1, 2, 1):
        ask(worker, "run", workload="small", seed=seed, samples_count=1, calls_per_sample=1)
        got = worker.prepared["small"].calls.answer()
        assert isinstance(got, dict)
        outputs.append(got["scores"].tolist())
    assert outputs[0] == outputs[2] != outputs[1]


def test_another_model_as_the_reference_finds_the_difference(example: Any, model: str, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(example.build(2).SerializeToString())
    worker = start(model, "--case", "small", "image=1x3x8x8", "--reference", str(other))
    ask(worker, "prepare", workload="small", seed=1)
    assert not ask(worker, "verify", workload="small")["answer"]["passed"]
    worker = start(model, "--case", "small", "image=1x3x8x8", "--no-check")
    ask(worker, "prepare", workload="small", seed=1)
    assert ask(worker, "verify", workload="small")["answer"] is None


def test_a_model_exported_by_torch_runs_with_any_batch(example: Any) -> None:
    cases = [("one", "tokens=1x5;mask=1x5"), ("four", "tokens=4x16;mask=4x16")]
    worker = start(str(ATTENTION), *(word for case in cases for word in ("--case", *case)))
    assert ask(worker, "list")["type"] == "workloads"
    for name, values in (("one", 1 * 5 * 32), ("four", 4 * 16 * 32)):
        ask(worker, "prepare", workload=name, seed=3)
        answer = ask(worker, "verify", workload=name)["answer"]
        assert (answer["passed"], answer["values_count"]) == (True, values)


def test_bad_cases_are_told_by_list_and_what_cannot_run_by_prepare(model: str, tmp_path: Path) -> None:
    told = ask(start(model, "--case", "a", "imgae=1x3x8x8"), "list")
    assert told == {"type": "error", "message": "model.onnx has no input 'imgae'; its inputs: image=?x3x?x? float32"}
    nowhere = start(str(tmp_path / "nix.onnx"))
    assert ask(nowhere, "list")["type"] == "workloads"
    skipped = ask(nowhere, "prepare", workload="default", seed=1)
    assert skipped["reason"].startswith("engine_not_found:")
    no_device = start(model, "--provider", "cuda", "--case", "a", "image=1x3x8x8")
    assert ask(no_device, "prepare", workload="a", seed=1)["reason"] == "provider_unavailable:cuda"
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    assert "ONNX Runtime cannot load it" in ask(start(str(broken)), "list")["message"]
    assert "the ending '.pt' is not known" in ask(start(str(tmp_path / "model.pt")), "list")["message"]


def test_gpus_are_part_of_the_lock(tmp_path: Path) -> None:
    for at in range(2):
        (tmp_path / str(at)).mkdir()
        (tmp_path / str(at) / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 0\n")
    assert device_lock(tmp_path)["gpus"] == "NVIDIA H200"
    assert "gpus" not in device_lock(tmp_path / "nowhere")


def test_tolerances_grow_with_the_output_and_integers_must_be_equal() -> None:
    numpy = pytest.importorskip("numpy")
    share, _ = TOLERANCES["float32"]
    want = numpy.array([1000.0, 0.0], "float32")
    off = numpy.array([1000.0, 1000.0 * share * 0.9], "float32")
    assert compare({"y": off}, {"y": want}).passed
    assert not compare({"y": off / 100}, {"y": want / 1e4}).passed
    assert not compare({"y": numpy.array([7, 8])}, {"y": numpy.array([7, 9])}).passed
    assert not compare({"y": numpy.array([numpy.nan], "float32")}, {"y": numpy.array([1.0], "float32")}).passed
    assert not compare({"x": want}, {"y": want}).passed


def test_products_in_tf32_may_be_as_far_off_as_those_of_f16(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    want = numpy.array([1.0, 0.5], "float32")
    off = numpy.array([1.0, 0.501], "float32")
    assert not compare({"y": off}, {"y": want}).passed
    assert compare({"y": off}, {"y": want}, is_tf32=True).passed
    assert not compare({"y": off.astype("float64")}, {"y": want.astype("float64")}, is_tf32=True).passed
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    assert uses_tf32("cuda")
    assert not uses_tf32("cpu")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert not uses_tf32("cuda")
