"""The worker of a model: each shape case is a workload."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from ..clocks import Calls
from ..worker import Message, Prepared, Worker
from ..workloads import Registry, Skip, Workload
from . import onnx, tensorrt, tilessm
from .model import Arrays, Model, compare, sha256
from .shapes import EngineError, Shapes, parse, resolve

OP = "inference"
LABEL_DEFAULT = "default"
ONNX_SUFFIXES = (".onnx", ".ort")
TENSORRT_SUFFIXES = (".engine", ".plan", ".trt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=f"a file: {', '.join((*ONNX_SUFFIXES, *TENSORRT_SUFFIXES))}")
    parser.add_argument(
        "--case",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "SHAPES"),
        help='a workload and its input shapes, such as small "image=1x3x64x64"; "" for those of the model',
    )
    parser.add_argument("--provider", choices=tuple(onnx.PROVIDERS), default="cpu", help="where ONNX Runtime computes")
    parser.add_argument("--threads", type=int, default=1, help="threads of ONNX Runtime on the CPU")
    parser.add_argument("--plugin", action="append", default=[], metavar="LIB", help="a library of TensorRT plugins")
    parser.add_argument("--reference", metavar="MODEL.onnx", help="a model that computes the right outputs on the CPU")
    parser.add_argument("--no-check", action="store_true", help="do not check the model's outputs")


class EngineWorker(Worker):
    """Serves the cases of one model, which is loaded once for all of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path = Path(options.model)
        self.options = options
        self.model: Model | None = None
        self.reference: onnx.OnnxModel | None = None
        self.digest: str | None = None
        self.cases: dict[str, Shapes] = {name: parse(shapes) for name, shapes in options.case or [(LABEL_DEFAULT, "")]}
        if len(self.cases) < len(options.case):
            raise EngineError("two cases have the same name; give each its own")
        registry = Registry()
        for name in self.cases:
            registry.add(Workload(name=name, op=OP, function=lambda: None, timer=self.timer))
        super().__init__(registry, name="engine")

    @property
    def is_onnx(self) -> bool:
        return self.path.suffix in ONNX_SUFFIXES

    @property
    def timer(self) -> str | None:
        return None if self.is_onnx else tensorrt.TensorrtModel.timer

    def environment_lock(self) -> dict[str, str]:
        lock = super().environment_lock()
        if self.is_onnx:
            return {**lock, **onnx.environment_lock(self.options.provider, self.options.threads)}
        return {**lock, **tensorrt.environment_lock()}

    def open(self) -> Model:
        """The model, loaded where it is not."""
        if self.model is None:
            self.model = self.load()
        return self.model

    def load(self) -> Model:
        if self.is_onnx:
            return onnx.OnnxModel(self.path, self.options.provider, self.options.threads)
        if self.options.model == tilessm.NAME:
            return tilessm.TileSsmModel(self.options.plugin)
        if self.path.suffix in TENSORRT_SUFFIXES:
            return tensorrt.TensorrtModel(self.path, self.options.plugin)
        known = ", ".join((*ONNX_SUFFIXES, *TENSORRT_SUFFIXES))
        raise EngineError(f"{self.path}: the ending {self.path.suffix!r} is not known; known: {known}")

    def list(self, request: Message) -> Message:
        """Cases that do not fit the model are told before anything is measured; what cannot run here says so later."""
        try:
            model = self.open()
            for case in self.cases.values():
                resolve(self.path.name, model.inputs(), case)
        except Skip:
            pass
        return super().list(request)

    def find(self, name: str) -> Workload:
        """The workload with the parts that need the model."""
        workload = super().find(name)
        model = self.open()
        shapes = resolve(self.path.name, model.inputs(), self.cases[name])
        return Workload(
            name=name,
            op=workload.op,
            function=workload.function,
            inputs=lambda seed: model.place(model.draw(shapes, seed)),
            work=describe_work(shapes),
            timer=workload.timer,
            kernel=lambda: self.describe_model(model, shapes),
        )

    def start(self, workload: Workload) -> Calls:
        model = self.open()
        return model.start(resolve(self.path.name, model.inputs(), self.cases[workload.name]))

    def describe_model(self, model: Model, shapes: Shapes) -> Mapping[str, object]:
        """Which model was measured, for reports."""
        if self.digest is None and self.path.is_file():
            self.digest = sha256(self.path)
        kernel = {
            "op_name": OP,
            "kernel_name": self.path.name,
            "shape_bucket": "|".join(f"{name}={'x'.join(map(str, dims))}" for name, dims in shapes.items()),
            "selected_config": {},
            "selection_source": model.mode,
            "launches_per_call": 1,
        }
        return kernel if self.digest is None else {**kernel, "code_sha256": self.digest}

    def verify(self, request: Message) -> Message:
        prepared = self.find_prepared(request["workload"])
        got = prepared.calls.answer()
        want = None if self.options.no_check else self.want(prepared)
        answer = None if want is None else compare(as_arrays(got), want, is_tf32=self.open().is_tf32).to_json()
        return {"type": "verified", "workload": request["workload"], "answer": answer}

    def want(self, prepared: Prepared) -> Arrays | None:
        """The right outputs, computed once for each seed; None where nothing computes them."""
        if prepared.wants is None:
            model = self.open()
            shapes = resolve(self.path.name, model.inputs(), self.cases[prepared.workload.name])
            arrays = model.draw(shapes, prepared.seed)
            prepared.wants = [self.oracle.reference(arrays) if self.oracle else model.reference(arrays)]
        return None if prepared.wants[0] is None else as_arrays(prepared.wants[0])

    @property
    def oracle(self) -> onnx.OnnxModel | None:
        """The model that was named to compute the right outputs."""
        if self.reference is None and self.options.reference is not None:
            self.reference = onnx.OnnxModel(Path(self.options.reference), "cpu", self.options.threads)
        return self.reference

    def release(self, request: Message) -> Message:
        released = super().release(request)
        if not self.prepared and self.model is not None:
            # The next unit of a comparison finds its buffers elsewhere.
            self.model.close()
            self.model = None
        return released

    def describe_error(self, error: Exception) -> Message:
        if isinstance(error, EngineError):
            return {"type": "error", "message": str(error)}
        return super().describe_error(error)


def describe_work(shapes: Shapes) -> Mapping[str, object] | None:
    """The batch is the first size of the first input that has one."""
    batches = [dims[0] for dims in shapes.values() if dims]
    return {"items": batches[0], "item": "frames"} if batches else None


def as_arrays(value: object) -> Arrays:
    assert isinstance(value, dict), "outputs come by name"
    return value
