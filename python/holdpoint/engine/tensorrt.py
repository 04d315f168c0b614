"""Models run by TensorRT 10 and 11, on device memory of torch.

Written against TensorRT's documented Python API; the tests run it against a stand-in (docs/engines.md says what has
run for real).
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import devices
from ..clocks import Samples
from ..device_calls import DeviceCalls
from ..workloads import Skip
from .model import Arrays, device_lock, draw_inputs
from .shapes import EngineError, Shapes, Tensor

# Apex-X's variable: a library of plugins, beside those that are named.
PLUGIN_VARIABLE = "APEXX_TRT_PLUGIN_LIB"
# TensorRT's names of element types, as NumPy or torch call them.
DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}


def import_tensorrt() -> Any:
    try:
        import tensorrt  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise Skip("tensorrt_python_unavailable") from error
    return tensorrt


def import_torch() -> Any:
    reason = devices.why_unavailable("torch")
    if reason is not None:
        raise Skip(reason)
    return importlib.import_module("torch")


def environment_lock() -> dict[str, str]:
    """Settings that times depend on."""
    try:
        return {"tensorrt": str(import_tensorrt().__version__), **device_lock()}
    except Skip:
        return {}


def load_plugins(named: Sequence[str]) -> list[str]:
    """Loads libraries of plugins, which register themselves; engines that use them cannot be read before."""
    own = os.environ.get(PLUGIN_VARIABLE)
    libraries = [*named, *([own] if own and own not in named else [])]
    for library in libraries:
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise Skip(f"cdll_load_failed:{error}") from error
    return libraries


class TensorrtModel:
    """An engine, read once; each case has a context of its own."""

    timer = "cuda_events"
    mode = "modern_io_tensors"
    # As TensorRT builds engines, unless it is told otherwise; an engine does not say.
    is_tf32 = True
    device = "cuda"

    def __init__(self, path: Path, plugins: Sequence[str]) -> None:
        if not path.is_file():
            raise Skip(f"engine_not_found:{path}")
        self.open(plugins)
        self.load(path.read_bytes())

    def open(self, plugins: Sequence[str]) -> list[str]:
        self.trt = import_tensorrt()
        self.torch = import_torch()

        libraries = load_plugins(plugins)
        self.logger = self.trt.Logger(self.trt.Logger.ERROR)
        self.trt.init_libnvinfer_plugins(self.logger, "")
        return libraries

    def load(self, data: object) -> None:
        free_bytes = self.free_bytes()
        self.runtime = self.trt.Runtime(self.logger)
        self.engine = self.runtime.deserialize_cuda_engine(data)
        if self.engine is None:
            raise Skip("engine_deserialize_failed")
        # TensorRT's weights and buffers are not torch's, so its peak does not have them.
        self.own_bytes = max(0, free_bytes - self.free_bytes())

    def free_bytes(self) -> int:
        return int(self.torch.cuda.mem_get_info()[0]) if self.device == "cuda" else 0

    def names(self, mode: Any) -> list[str]:
        names = [self.engine.get_tensor_name(at) for at in range(self.engine.num_io_tensors)]
        return [name for name in names if self.engine.get_tensor_mode(name) == mode]

    def dtype(self, name: str) -> str:
        kind = self.engine.get_tensor_dtype(name).name
        if kind not in DTYPES:
            raise Skip(f"unsupported_dtype:{kind}")
        return DTYPES[kind]

    def inputs(self) -> Sequence[Tensor]:
        return [
            Tensor(
                name,
                tuple(size if size >= 0 else None for size in self.engine.get_tensor_shape(name)),
                self.dtype(name),
            )
            for name in self.names(self.trt.TensorIOMode.INPUT)
        ]

    def draw(self, shapes: Shapes, seed: int) -> Arrays:
        return draw_inputs(self.inputs(), shapes, seed)

    def place(self, arrays: Arrays) -> Arrays:
        dtypes = {each.name: each.dtype for each in self.inputs()}
        return {
            name: self.torch.from_numpy(array).to(self.device, getattr(self.torch, dtypes[name]))
            for name, array in arrays.items()
        }

    def start(self, shapes: Shapes) -> DeviceCalls:
        return TensorrtCalls(Context(self, shapes), self.own_bytes)

    def profile(self, shapes: Shapes) -> int:
        """The first optimisation profile that all shapes are within."""
        ranges = []
        for profile in range(self.engine.num_optimization_profiles):
            limits = {name: self.engine.get_tensor_profile_shape(name, profile) for name in shapes}
            if all(is_within(shapes[name], low, high) for name, (low, _, high) in limits.items()):
                return profile
            ranges += [f"{name} {joined(low)} to {joined(high)}" for name, (low, _, high) in limits.items()]
        given = ", ".join(f"{name}={joined(dims)}" for name, dims in shapes.items())
        raise EngineError(f"no optimisation profile of the engine takes {given}; it has {', '.join(ranges) or 'none'}")

    def reference(self, arrays: Arrays) -> Arrays | None:
        """An engine holds no other way to compute its outputs; --reference names a model that does."""
        return None

    def close(self) -> None:
        self.engine = self.runtime = None


def is_within(shape: Sequence[int], low: Sequence[int], high: Sequence[int]) -> bool:
    return all(least <= size <= most for least, size, most in zip(low, shape, high, strict=True))


def joined(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


class Context:
    """An engine's context at one set of shapes, with outputs that stay where they are."""

    def __init__(self, model: TensorrtModel, shapes: Shapes) -> None:
        self.torch, self.device = model.torch, model.device
        # A context needs its engine as long as it lives.
        self.engine = model.engine
        self.context = self.engine.create_execution_context()
        stream = self.stream()
        if not self.context.set_optimization_profile_async(model.profile(shapes), stream):
            raise EngineError("TensorRT refuses the optimisation profile of these shapes")
        for name, shape in shapes.items():
            if not self.context.set_input_shape(name, shape):
                raise EngineError(f"TensorRT refuses the shape {name}={joined(shape)}")
        for name in self.context.infer_shapes():
            raise Skip(f"unresolved_tensor_shape:{name}")
        self.outputs: Arrays = {}
        for name in model.names(model.trt.TensorIOMode.OUTPUT):
            shape = tuple(self.context.get_tensor_shape(name))
            if min(shape, default=0) < 0:
                raise Skip(f"unresolved_tensor_shape:{name}")
            dtype = getattr(self.torch, model.dtype(name))
            self.outputs[name] = self.torch.empty(shape, dtype=dtype, device=self.device)
            self.context.set_tensor_address(name, self.outputs[name].data_ptr())
        self.bound: Arrays | None = None

    def stream(self) -> int:
        return int(self.torch.cuda.current_stream().cuda_stream) if self.device == "cuda" else 0

    def __call__(self, arrays: Arrays) -> Arrays:
        if arrays is not self.bound:
            for name, array in arrays.items():
                self.context.set_tensor_address(name, array.data_ptr())
            self.bound = arrays
        if not self.context.execute_async_v3(self.stream()):
            raise EngineError("TensorRT could not run the engine; its log is above")
        return self.outputs


class TensorrtCalls(DeviceCalls):
    """Calls timed by CUDA's events, and the memory that TensorRT holds beside torch."""

    def __init__(self, context: Context, own_bytes: int) -> None:
        super().__init__(context, as_graph=False, is_cold=False)
        self.own_bytes = own_bytes

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        samples = super().take(samples_count, calls_per_sample)
        samples.peak_device_bytes = (samples.peak_device_bytes or 0) + self.own_bytes
        return samples
