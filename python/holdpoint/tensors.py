"""Tensors in the file of an `evaluate` request, as lists, NumPy arrays or torch tensors."""

from __future__ import annotations

import bisect
import importlib
import math
import mmap
import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .workloads import Skip

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "i32": 4, "i64": 8}
FORMATS = {"f64": "d", "f32": "f", "f16": "e", "i32": "i", "i64": "q"}
# Values from here on round to infinity.
OVERFLOWS = {"f32": 2.0**128 - 2.0**103, "f16": 65520.0}
NUMPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i32": "<i4", "i64": "<i8"}
TORCH = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "i32": "int32",
    "i64": "int64",
}
Place = Mapping[str, Any]


class Form(Protocol):
    """How a kernel wants its tensors."""

    def read(self, raw: bytes, dtype: str, shape: Sequence[int]) -> object: ...
    def write(self, tensor: Any, dtype: str, shape: Sequence[int]) -> bytes: ...
    def synchronize(self) -> None: ...


class Lists:
    """Flat lists of numbers."""

    def read(self, raw: bytes, dtype: str, shape: Sequence[int]) -> object:
        if dtype == "bf16":
            # The upper half of an f32.
            halves = struct.unpack(f"<{len(raw) // 2}H", raw)
            return array("f", array("I", [half << 16 for half in halves]).tobytes()).tolist()
        if dtype == "e4m3":
            return [E4M3[byte] for byte in raw]
        return list(struct.unpack(f"<{math.prod(shape)}{FORMATS[dtype]}", raw))

    def write(self, tensor: Any, dtype: str, shape: Sequence[int]) -> bytes:
        values = list(tensor)
        if len(values) != math.prod(shape):
            raise ValueError(f"an output has {len(values)} values, {list(shape)} needs {math.prod(shape)}")
        if dtype == "bf16":
            return struct.pack(f"<{len(values)}H", *map(round_bf16, f32_bits(values)))
        if dtype == "e4m3":
            return bytes(map(round_e4m3, values))
        try:
            return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        except OverflowError:
            limit = OVERFLOWS[dtype]
            stored = [math.copysign(math.inf, value) if abs(value) >= limit else value for value in values]
            return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *stored)

    def synchronize(self) -> None:
        pass


class NumpyArrays:
    """NumPy arrays; it has no bf16 and no e4m3."""

    def __init__(self) -> None:
        self.numpy = import_for_kernel("numpy")

    def read(self, raw: bytes, dtype: str, shape: Sequence[int]) -> object:
        return self.numpy.frombuffer(bytearray(raw), dtype=self.kind(dtype)).reshape(shape)

    def write(self, tensor: Any, dtype: str, shape: Sequence[int]) -> bytes:
        values = self.numpy.asarray(tensor)
        check_size(values.size, shape)
        with self.numpy.errstate(over="ignore"):
            return bytes(values.astype(self.kind(dtype)).tobytes())

    def kind(self, dtype: str) -> str:
        if dtype not in NUMPY:
            raise Skip(f"NumPy has no {dtype}")
        return NUMPY[dtype]

    def synchronize(self) -> None:
        pass


class TorchTensors:
    """torch tensors, on the CPU or on the device."""

    def __init__(self, place: str) -> None:
        self.torch = import_for_kernel("torch")
        self.place = place
        if place == "cuda" and not self.torch.cuda.is_available():
            raise Skip("cuda_unavailable")

    def read(self, raw: bytes, dtype: str, shape: Sequence[int]) -> object:
        kind = getattr(self.torch, TORCH[dtype])
        if not raw:
            return self.torch.empty(tuple(shape), dtype=kind, device=self.place)
        values = self.torch.frombuffer(bytearray(raw), dtype=self.torch.uint8).view(kind)
        return values.reshape(tuple(shape)).to(self.place)

    def write(self, tensor: Any, dtype: str, shape: Sequence[int]) -> bytes:
        check_size(tensor.numel(), shape)
        values = tensor.detach().to(getattr(self.torch, TORCH[dtype])).cpu().contiguous().reshape(-1)
        return bytes(values.view(self.torch.uint8).numpy()) if values.numel() else b""

    def synchronize(self) -> None:
        if self.place == "cuda":
            self.torch.cuda.synchronize()


def open_form(name: str) -> Form:
    if name == "list":
        return Lists()
    return NumpyArrays() if name == "numpy" else TorchTensors("cuda" if name == "cuda" else "cpu")


def import_for_kernel(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skip(f"{name}_not_installed") from None


def read(memory: mmap.mmap, place: Place, dtype: str, form: Form) -> object:
    return form.read(slice_of(memory, place, dtype), place.get("dtype", dtype), place["shape"])


def write(memory: mmap.mmap, place: Place, dtype: str, form: Form, tensor: object) -> None:
    """Writes every element of a tensor, and nothing else."""
    raw = form.write(tensor, place.get("dtype", dtype), place["shape"])
    at = place["byte_offset"]
    memory[at : at + len(raw)] = raw


def slice_of(memory: mmap.mmap, place: Place, dtype: str) -> bytes:
    at = place["byte_offset"]
    return memory[at : at + math.prod(place["shape"]) * BYTES[place.get("dtype", dtype)]]


def check_size(count: int, shape: Sequence[int]) -> None:
    if count != math.prod(shape):
        raise ValueError(f"an output has {count} values, {list(shape)} needs {math.prod(shape)}")


def f32_bits(values: Sequence[float]) -> array[int]:
    limit = OVERFLOWS["f32"]
    rounded = [math.copysign(math.inf, value) if abs(value) >= limit else value for value in values]
    return array("I", array("f", rounded).tobytes())


def round_bf16(bits: int) -> int:
    """To nearest, ties to even; NaN stays NaN."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def decode_e4m3(byte: int) -> float:
    """Four bits of exponent, three of mantissa, no infinity."""
    sign, exponent, mantissa = -1.0 if byte & 0x80 else 1.0, byte >> 3 & 0xF, byte & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    size = math.ldexp(mantissa / 8, -6) if exponent == 0 else math.ldexp(1 + mantissa / 8, exponent - 7)
    return sign * size


E4M3 = [decode_e4m3(byte) for byte in range(256)]
E4M3_LARGEST = 0x7E
E4M3_NAN = 0x7F


def round_e4m3(value: float) -> int:
    """To nearest, ties to even; what is too large stays at the largest value."""
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return sign | E4M3_NAN
    size = min(abs(value), E4M3[E4M3_LARGEST])
    above = bisect.bisect_left(E4M3, size, 0, E4M3_LARGEST)
    below = max(above - 1, 0)
    nearer = E4M3[above] - size - (size - E4M3[below])
    is_above = nearer < 0 or (nearer == 0 and above % 2 == 0)
    return sign | (above if is_above else below)
