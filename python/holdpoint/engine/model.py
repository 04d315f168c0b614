"""What every inference library has to offer to be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from .. import devices
from ..answers import Answer, Comparison
from ..clocks import Calls
from .shapes import Shapes, Tensor

Arrays = dict[str, Any]

# (share of the output's largest value, share of the value itself) by element type; integers must be equal. The figures
# are Apex-X's widest ones end to end (its profile "edge"). An engine may fuse and reorder whole layers, so the first
# share is of the largest value: errors grow with the size of what was summed, not with that of a sum near zero.
TOLERANCES = {
    "float64": (1e-10, 1e-8),
    "float32": (8e-5, 8e-4),
    "float16": (4e-3, 4e-2),
    "bfloat16": (6e-3, 6e-2),
    # Factors of float32 rounded to the 11 bits of float16, as the matrix units of a GPU take them.
    "tf32": (4e-3, 4e-2),
}


# Where NVIDIA's driver lists its devices.
GPUS = Path("/proc/driver/nvidia/gpus")


class Model(Protocol):
    """A model that an inference library has loaded."""

    # How it runs, for reports: `onnxruntime:CPUExecutionProvider`.
    mode: str
    timer: str
    # Whether products of float32 may be computed in TF32.
    is_tf32: bool

    def inputs(self) -> Sequence[Tensor]:
        """The model's inputs, in its order."""

    def draw(self, shapes: Shapes, seed: int) -> Arrays:
        """Inputs as NumPy's arrays, by name."""

    def place(self, arrays: Arrays) -> Arrays:
        """The same where a call takes them from."""

    def start(self, shapes: Shapes) -> Calls:
        """Makes the model's calls at these shapes timeable; their argument is what `place` returns."""

    def reference(self, arrays: Arrays) -> Arrays | None:
        """The right outputs, computed by other means; None where there are none."""

    def close(self) -> None:
        """Frees the model."""


def draw_inputs(inputs: Sequence[Tensor], shapes: Shapes, seed: int) -> Arrays:
    """Inputs as Apex-X draws them: normal floats, 0 or 1 for booleans, integers from 0 to 7."""
    import numpy

    arrays: Arrays = {}
    for at, tensor in enumerate(inputs):
        random, shape = numpy.random.default_rng([seed, at]), shapes[tensor.name]
        if "float" in tensor.dtype:
            # NumPy has no bfloat16; whoever places the array converts it.
            dtype = tensor.dtype.replace("bfloat16", "float32")
            arrays[tensor.name] = random.standard_normal(shape).astype(dtype)
        elif tensor.dtype == "bool":
            arrays[tensor.name] = random.integers(0, 2, shape).astype(bool)
        else:
            arrays[tensor.name] = random.integers(0, 8, shape).astype(tensor.dtype)
    return arrays


def compare(got: Mapping[str, Any], want: Mapping[str, Any], *, is_tf32: bool = False) -> Answer:
    """Compares outputs by name, with the tolerance of each one's element type."""
    import numpy

    comparison = Comparison(None)
    for name, right in want.items():
        if name not in got:
            comparison.result.reject(f"there is no output {name!r}, only {', '.join(got)}")
            continue
        dtypes = [str(each.dtype).removeprefix("torch.") for each in (got[name], right)]
        if is_tf32 and "float32" in dtypes:
            dtypes.append("tf32")
        share, own = max((TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES), default=(0.0, 0.0))
        sizes = numpy.abs(right[numpy.isfinite(right)]) if share else numpy.zeros(0)
        comparison.tolerance = (share * float(sizes.max(initial=0.0)), own)
        comparison.walk(name, got[name], right)
    return comparison.result


def poison(numpy: Any, array: Any) -> Any:
    """An array like this one that no model computes: NaN, or for integers the smallest value."""
    if array.dtype.kind in "fc":
        return numpy.full_like(array, numpy.nan)
    return ~array if array.dtype == bool else numpy.full_like(array, numpy.iinfo(array.dtype).min)


def device_lock(gpus: Path = GPUS) -> dict[str, str]:
    """GPUs and driver of this machine, which its fingerprint does not name for a worker like this."""
    lines = [line for file in gpus.glob("*/information") for line in read_lines(file)]
    models = sorted({line.partition(":")[2].strip() for line in lines if line.startswith("Model:")})
    found = {"gpus": ", ".join(models), "driver": devices.driver_version()}
    return {key: value for key, value in found.items() if value}


def read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
