"""The logic around TensorRT, against stand-ins for the few functions of it and of torch that are used.

No TensorRT runs here, and device memory is NumPy's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from holdpoint.engine import tensorrt, tilessm
from holdpoint.engine.shapes import EngineError, Shapes, Tensor
from holdpoint.workloads import Skip

numpy = pytest.importorskip("numpy", reason="skipped: numpy is not installed")

INPUT, OUTPUT = "input", "output"
MEMORY: dict[int, Any] = {}


class FakeTensor:
    """An array with the names that torch has for it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def to(self, device: str, dtype: str | None = None) -> FakeTensor:
        return FakeTensor(self.array.astype(dtype or self.array.dtype))

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


TORCH = SimpleNamespace(
    float32="float32",
    from_numpy=FakeTensor,
    empty=lambda shape, dtype, device: FakeTensor(numpy.empty(shape, dtype)),
)


class FakeContext:
    """Doubles `x` into `y`."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.profile = -1

    def set_optimization_profile_async(self, profile: int, stream: int) -> bool:
        self.profile = profile
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shapes[name] = shape
        return True

    def infer_shapes(self) -> list[str]:
        return self.engine.unresolved

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self.shapes["x"] if not self.engine.is_data_dependent else (-1, 4)

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        MEMORY[self.addresses["y"]].array[...] = 2 * MEMORY[self.addresses["x"]].array
        return self.engine.runs


class FakeEngine:
    num_io_tensors = 2
    num_optimization_profiles = 2
    is_data_dependent = False
    runs = True

    def __init__(self) -> None:
        self.unresolved: list[str] = []
        self.dtype = "FLOAT"

    def get_tensor_name(self, at: int) -> str:
        return "xy"[at]

    def get_tensor_mode(self, name: str) -> str:
        return INPUT if name == "x" else OUTPUT

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (-1, 4)

    def get_tensor_dtype(self, name: str) -> Any:
        return SimpleNamespace(name=self.dtype)

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[tuple[int, ...]]:
        return [(1, 4), (2, 4), (4, 4)] if profile == 0 else [(8, 4), (8, 4), (16, 4)]

    def create_execution_context(self) -> FakeContext:
        return FakeContext(self)


class FakeLogger:
    ERROR = 1

    def __init__(self, level: int) -> None: ...


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """TensorRT as `import tensorrt` finds it; device memory is the host's."""
    module: Any = ModuleType("tensorrt")
    module.engine = FakeEngine()
    module.creator = None
    module.__version__ = "10.0"
    module.Logger = FakeLogger
    module.TensorIOMode = SimpleNamespace(INPUT=INPUT, OUTPUT=OUTPUT)
    module.init_libnvinfer_plugins = lambda logger, namespace: True
    module.Runtime = lambda logger: SimpleNamespace(
        deserialize_cuda_engine=lambda data: module.engine if data == b"engine" else None
    )
    module.get_plugin_registry = lambda: SimpleNamespace(get_creator=lambda *names: module.creator)
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setattr(tensorrt, "import_torch", lambda: TORCH)
    monkeypatch.setattr(tensorrt.TensorrtModel, "device", "cpu", raising=False)
    return module


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.engine"
    path.write_bytes(b"engine")
    return path


def test_an_engine_runs_at_the_shapes_of_a_case(fake: Any, path: Path) -> None:
    model = tensorrt.TensorrtModel(path, [])
    assert model.inputs() == [Tensor("x", (None, 4), "float32")]
    shapes: Shapes = {"x": (9, 4)}
    context = tensorrt.Context(model, shapes)
    assert context.context.profile == 1
    arrays = model.place(model.draw(shapes, 5))
    for tensor in (*arrays.values(), *context.outputs.values()):
        MEMORY[tensor.data_ptr()] = tensor
    outputs = context(arrays)
    assert (outputs["y"].array == 2 * arrays["x"].array).all()
    # Drawn again into the same memory, as before each run.
    arrays["x"].array[...] = model.draw(shapes, 6)["x"]
    assert (context(arrays)["y"].array == 2 * arrays["x"].array).all()
    fake.engine.runs = False
    with pytest.raises(EngineError, match="could not run the engine"):
        context(arrays)


def test_shapes_outside_all_profiles_are_refused(fake: Any, path: Path) -> None:
    model = tensorrt.TensorrtModel(path, [])
    with pytest.raises(
        EngineError, match=r"no optimisation profile .* takes x=6x4; it has x 1x4 to 4x4, x 8x4 to 16x4"
    ):
        tensorrt.Context(model, {"x": (6, 4)})


def test_what_cannot_run_says_why(fake: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(*arguments: Any) -> str:
        with pytest.raises(Skip) as skip:
            tensorrt.Context(tensorrt.TensorrtModel(*arguments), {"x": (2, 4)})
        return str(skip.value)

    assert reason(tmp_path / "nix.engine", []) == f"engine_not_found:{tmp_path / 'nix.engine'}"
    assert reason(path, [str(tmp_path / "nix.so")]).startswith("cdll_load_failed:")
    monkeypatch.setenv("APEXX_TRT_PLUGIN_LIB", str(tmp_path / "other.so"))
    assert "other.so" in reason(path, [])
    monkeypatch.delenv("APEXX_TRT_PLUGIN_LIB")
    fake.engine.unresolved = ["x"]
    assert reason(path, []) == "unresolved_tensor_shape:x"
    fake.engine.unresolved, fake.engine.is_data_dependent = [], True
    assert reason(path, []) == "unresolved_tensor_shape:y"
    fake.engine.is_data_dependent, fake.engine.dtype = False, "FP8"
    with pytest.raises(Skip, match="unsupported_dtype:FP8"):
        tensorrt.TensorrtModel(path, []).inputs()
    path.write_bytes(b"of another version")
    assert reason(path, []) == "engine_deserialize_failed"
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert reason(path, []) == "tensorrt_python_unavailable"


def test_the_scan_plugin_says_why_it_cannot_run(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(*plugins: str) -> str:
        with pytest.raises(Skip) as skip:
            tilessm.TileSsmModel(plugins).start({"tokens": (1, 4, 2)})
        return str(skip.value)

    assert reason() == "missing_plugin_library"
    monkeypatch.setattr("ctypes.CDLL", lambda library, mode: None)
    assert reason("libapexx.so") == "tilessm_plugin_creator_not_registered"
    fake.creator = object()
    fake.Builder = lambda logger: SimpleNamespace(create_network=lambda flags: SimpleNamespace(add_input=print))
    fake.NetworkDefinitionCreationFlag = SimpleNamespace(STRONGLY_TYPED=1)
    fake.float16 = "half"
    fake.PluginFieldType = SimpleNamespace(INT32=0, FLOAT32=1)
    fake.PluginField = fake.PluginFieldCollection = lambda *arguments: arguments
    assert reason("libapexx.so") == "engine_build_failed:AttributeError"


def test_the_scan_of_a_constant_tends_to_it(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda library, mode: None)
    fake.creator = object()
    model = tilessm.TileSsmModel(["libapexx.so"])
    arrays = model.draw({"tokens": (2, 3, 4)}, 1)
    assert {name: array.shape for name, array in arrays.items()} == tilessm.list_shapes(2, 3, 4)
    half, one = numpy.full(4, 0.5, "float16"), numpy.ones(4, "float16")
    gains = {"decay": half, "input_gain": one, "output_gain": 2 * one, "state_bias": 0 * one}
    arrays |= {"tokens": numpy.ones((2, 3, 4), "float16"), **gains}
    outputs = model.reference(arrays)
    # s = 1/2, 3/4, 7/8 by s = s/2 + 1/2; outputs are twice that.
    assert outputs["y"][0, :, 0].tolist() == [1.0, 1.5, 1.75]
    assert outputs["final_state"][1].tolist() == [0.875] * 4
