"""The worker of a model: each shape case is a workload."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from ..clocks import Calls
from ..worker import Message, Prepared, Worker
from ..workloads import Registry, Skip, Workload
from . import onnx
from .model import Arrays, Model, compare, draw, sha256
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
    parser.add_argument("--no-check", action="store_true", help="do not check the model's outputs")


class EngineWorker(Worker):
    """Serves the cases of one model, which is loaded once for all of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path = Path(options.model)
        self.options = options
        self.model: Model | None = None
        self.digest: str | None = None
        self.cases: dict[str, Shapes] = {name: parse(shapes) for name, shapes in options.case or [(LABEL_DEFAULT, "")]}
        if len(self.cases) < len(options.case):
            raise EngineError("two cases have the same name; give each its own")
        registry = Registry()
        for name in self.cases:
            registry.add(Workload(name=name, op=OP, function=lambda: None))
        super().__init__(registry, name="engine")

    @property
    def is_onnx(self) -> bool:
        return self.path.suffix in ONNX_SUFFIXES

    def environment_lock(self) -> dict[str, str]:
        lock = super().environment_lock()
        return {**lock, **onnx.environment_lock(self.options.provider, self.options.threads)} if self.is_onnx else lock

    def open(self) -> Model:
        """The model, loaded where it is not."""
        if self.model is None:
            if not self.is_onnx:
                known = ", ".join(ONNX_SUFFIXES)
                raise EngineError(f"{self.path}: the ending {self.path.suffix!r} is not known; known: {known}")
            self.model = onnx.OnnxModel(self.path, self.options.provider, self.options.threads)
        return self.model

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
        inputs = model.inputs()
        shapes = resolve(self.path.name, inputs, self.cases[name])
        return Workload(
            name=name,
            op=workload.op,
            function=workload.function,
            inputs=lambda seed: draw(inputs, shapes, seed),
            work=describe_work(shapes),
            reference=None if self.options.no_check else model.reference,
            kernel=lambda: self.describe_model(model, shapes),
        )

    def start(self, workload: Workload) -> Calls:
        model = self.open()
        return model.start(resolve(self.path.name, model.inputs(), self.cases[workload.name]))

    def describe_model(self, model: Model, shapes: Shapes) -> Mapping[str, object]:
        """Which model was measured, for reports."""
        if self.digest is None:
            self.digest = sha256(self.path)
        return {
            "op_name": OP,
            "kernel_name": self.path.name,
            "shape_bucket": "|".join(f"{name}={'x'.join(map(str, dims))}" for name, dims in shapes.items()),
            "selected_config": {},
            "selection_source": model.mode,
            "launches_per_call": 1,
            "code_sha256": self.digest,
        }

    def verify(self, request: Message) -> Message:
        prepared = self.find_prepared(request["workload"])
        answer = None
        if prepared.workload.reference is not None:
            got = prepared.calls.answer()
            answer = compare(as_arrays(got), self.want(prepared)).to_json()
        return {"type": "verified", "workload": request["workload"], "answer": answer}

    def want(self, prepared: Prepared) -> Arrays:
        """The right outputs, computed once for each seed."""
        if not prepared.has_want and prepared.workload.reference is not None:
            arrays = prepared.workload.draw(prepared.seed)
            prepared.want, prepared.has_want = prepared.workload.reference(*arrays), True
        return as_arrays(prepared.want)

    def drop(self, name: str) -> None:
        super().drop(name)
        if not self.prepared and self.model is not None:
            # The next unit of a comparison finds its buffers elsewhere.
            self.model.close()
            self.model = None

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
