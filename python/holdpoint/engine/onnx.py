"""Models run by ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..clocks import NO_ANSWER, HostCalls
from ..workloads import Skip
from .model import Arrays, device_lock, draw_inputs, poison
from .shapes import EngineError, Shapes, Tensor

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
# ONNX Runtime's names of element types that NumPy has as well.
DTYPES = {
    "tensor(double)": "float64",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def import_runtime() -> Any:
    try:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise Skip("onnxruntime_not_installed") from error
    return onnxruntime


def environment_lock(provider: str, threads: int) -> dict[str, str]:
    """Settings that times depend on."""
    try:
        runtime = import_runtime()
    except Skip:
        return {}
    lock = {"onnxruntime": runtime.__version__, "provider": PROVIDERS[provider], "threads": str(threads)}
    if provider == "cpu":
        return lock
    return {**lock, "tf32": "on" if uses_tf32(provider) else "off", **device_lock()}


def uses_tf32(provider: str) -> bool:
    """ONNX Runtime computes in TF32 on a GPU unless NVIDIA's variable forbids it."""
    return provider == "cuda" and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"


def open_session(path: Path, provider: str, threads: int, *, is_optimised: bool) -> Any:
    runtime = import_runtime()
    if not path.is_file():
        raise Skip(f"engine_not_found:{path}")
    if PROVIDERS[provider] not in runtime.get_available_providers():
        raise Skip(f"provider_unavailable:{provider}")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    levels = runtime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_optimised else levels.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(str(path), options, providers=[PROVIDERS[provider]])
    except Exception as error:
        raise EngineError(f"{path}: ONNX Runtime cannot load it: {str(error).splitlines()[0]}") from error
    # Where a device cannot be used after all, ONNX Runtime says so on stderr and computes on the CPU.
    if PROVIDERS[provider] not in session.get_providers():
        raise Skip(f"provider_unavailable:{provider}")
    return session


def read_dtype(kind: str) -> str:
    if kind not in DTYPES:
        raise Skip(f"unsupported_dtype:{kind}")
    return DTYPES[kind]


class OnnxModel:
    """A model, and once it is asked for, the same model without optimisations as the oracle."""

    timer = "host_monotonic"

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider, self.threads = path, provider, threads
        self.session = open_session(path, provider, threads, is_optimised=True)
        self.oracle: Any = None
        self.mode = f"onnxruntime:{PROVIDERS[provider]}"
        self.is_tf32 = uses_tf32(provider)

    def inputs(self) -> Sequence[Tensor]:
        def size(dim: object) -> int | None:
            return dim if isinstance(dim, int) and dim > 0 else None

        return [
            Tensor(each.name, tuple(size(dim) for dim in each.shape), read_dtype(each.type))
            for each in self.session.get_inputs()
        ]

    def draw(self, shapes: Shapes, seed: int) -> Arrays:
        return draw_inputs(self.inputs(), shapes, seed)

    def place(self, arrays: Arrays) -> Arrays:
        return arrays

    def start(self, shapes: Shapes) -> OnnxCalls:
        return OnnxCalls(self.session, self.provider, is_single_threaded=self.threads == 1)

    def reference(self, arrays: Arrays) -> Arrays:
        if self.oracle is None:
            self.oracle = open_session(self.path, "cpu", self.threads, is_optimised=False)
        names = [each.name for each in self.oracle.get_outputs()]
        return dict(zip(names, self.oracle.run(names, arrays), strict=True))

    def close(self) -> None:
        self.session = self.oracle = None


class OnnxCalls(HostCalls):
    """Calls of a session whose inputs and outputs stay where they are, so that nothing is copied in a sample."""

    def __init__(self, session: Any, provider: str, *, is_single_threaded: bool) -> None:
        import numpy

        self.numpy = numpy
        self.device = provider
        self.value = import_runtime().OrtValue
        self.outputs = [each.name for each in session.get_outputs()]
        self.bound: dict[str, Any] = {}
        self.binding = binding = session.io_binding()
        run = session.run_with_iobinding

        def call_and_wait() -> None:
            run(binding)
            binding.synchronize_outputs()

        is_cpu = provider == "cpu"
        super().__init__((lambda: run(binding)) if is_cpu else call_and_wait, count_waits=is_cpu and is_single_threaded)

    def load(self, arguments: tuple[object, ...]) -> None:
        (arrays,) = arguments
        assert isinstance(arrays, dict), "the worker draws arrays by input"
        for name, array in arrays.items():
            if name in self.bound:
                self.bound[name].update_inplace(array)
            else:
                self.bound[name] = self.value.ortvalue_from_numpy(array, self.device, 0)
                self.binding.bind_ortvalue_input(name, self.bound[name])
        # Sizes of outputs may depend on the inputs: the next call allocates them, and later ones write to the same.
        self.binding.clear_binding_outputs()
        for name in self.outputs:
            self.binding.bind_output(name, self.device, 0)
        self.last = NO_ANSWER

    def forget(self) -> None:
        if self.last is not NO_ANSWER:
            for value in self.binding.get_outputs():
                value.update_inplace(poison(self.numpy, value.numpy()))
        self.last = NO_ANSWER

    def forget_warm_up(self) -> bool:
        """Outputs stay in one place, so what a warm-up call left there would pass for the answer of a timed one."""
        self.forget()
        return True

    def answer(self) -> Arrays:
        super().answer()
        values = (value.numpy().copy() for value in self.binding.get_outputs())
        return dict(zip(self.outputs, values, strict=True))

    def close(self) -> None:
        super().close()
        self.binding = self.bound = None  # type: ignore[assignment]
