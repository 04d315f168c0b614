"""Comparing answers: numbers, strings, containers and arrays, however they are nested. NaN never passes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from numbers import Number, Real
from types import ModuleType
from typing import Any

from .plain import array_module, copy_out

# (atol, rtol) by element type, as of holdpoint's own ops (docs/fuzz.md); for f64 sums in another order must pass.
TOLERANCES = {
    "f64": (1e-12, 1e-9),
    "f32": (1e-6, 1e-5),
    "f16": (1e-3, 1e-2),
    "bf16": (2e-3, 2e-2),
    "e4m3": (3e-3, 9.25e-2),
}
DTYPES = {
    "float64": "f64",
    "complex128": "f64",
    "float32": "f32",
    "complex64": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
}

# How many pieces of memory are spoiled beyond those that are held; one, if they are larger than this.
PIECES = 4
PIECE_BYTES_MAX = 64 << 20


@dataclass
class Answer:
    """How an answer compared with the right one."""

    values_count: int = 0
    max_abs_err: float = 0.0
    max_rel_err: float = 0.0
    first_bad: str | None = None

    @property
    def passed(self) -> bool:
        return self.first_bad is None and self.values_count > 0

    def to_json(self) -> dict[str, object]:
        """JSON has no infinity; the protocol's word for it is null."""
        finite = {key: getattr(self, key) for key in ("max_abs_err", "max_rel_err")}
        entry: dict[str, object] = {
            "passed": self.passed,
            "values_count": self.values_count,
            **{key: value if math.isfinite(value) else None for key, value in finite.items()},
        }
        return entry if self.first_bad is None else {**entry, "first_bad": self.first_bad}

    def add(self, place: str, got: object, want: object, abs_err: float, rel_err: float, *, is_bad: bool) -> None:
        self.values_count += 1
        self.max_abs_err = max(self.max_abs_err, abs_err)
        self.max_rel_err = max(self.max_rel_err, rel_err)
        if is_bad and self.first_bad is None:
            self.first_bad = f"{place}: got {shorten(got)}, want {shorten(want)}"

    def reject(self, reason: str) -> None:
        self.values_count += 1
        self.max_abs_err = self.max_rel_err = math.inf
        if self.first_bad is None:
            self.first_bad = reason


@dataclass
class Comparison:
    """A walk through two answers of the same structure."""

    tolerance: tuple[float, float] | None
    result: Answer = field(default_factory=Answer)

    def walk(self, place: str, got: object, want: object) -> None:
        if is_array(got) or is_array(want):
            self.walk_arrays(place, got, want)
        elif isinstance(want, Number):
            self.walk_numbers(place, got, want)
        elif isinstance(want, Mapping):
            self.walk_mappings(place, got, want)
        elif isinstance(want, Sequence) and not isinstance(want, (str, bytes, bytearray)):
            self.walk_sequences(place, got, want)
        else:
            is_bad = not is_equal(got, want)
            self.result.add(place, got, want, math.inf * is_bad if is_bad else 0.0, 0.0, is_bad=is_bad)

    def walk_numbers(self, place: str, got: object, want: Number) -> None:
        if not isinstance(got, Number) or isinstance(got, bool) != isinstance(want, bool):
            self.result.reject(f"{place}: got {shorten(got)}, want the number {shorten(want)}")
            return
        abs_err, rel_err, is_bad = compare_numbers(got, want, self.tolerance)
        self.result.add(place, got, want, abs_err, rel_err, is_bad=is_bad)

    def walk_mappings(self, place: str, got: object, want: Mapping[Any, object]) -> None:
        if not isinstance(got, Mapping) or set(got) != set(want):
            self.result.reject(f"{place}: the keys differ: got {shorten(got)}, want {shorten(want)}")
            return
        for key, value in want.items():
            self.walk(f"{place}[{shorten(key)}]", got[key], value)
        if not want:
            self.result.values_count += 1

    def walk_sequences(self, place: str, got: object, want: Sequence[object]) -> None:
        if not isinstance(got, Sequence) or isinstance(got, (str, bytes, bytearray)) or len(got) != len(want):
            self.result.reject(f"{place}: got {shorten(got)}, want {len(want)} values")
            return
        for at, (each, right) in enumerate(zip(got, want, strict=True)):
            self.walk(f"{place}[{at}]", each, right)
        if not want:
            self.result.values_count += 1

    def walk_arrays(self, place: str, got: Any, want: Any) -> None:
        module = array_module(got) or array_module(want)
        assert module is not None, "the caller has seen that one of them is an array"
        got, want = as_array(module, got, want), as_array(module, want, got)
        if tuple(got.shape) != tuple(want.shape):
            self.result.reject(f"{place}: got shape {list(got.shape)}, want {list(want.shape)}")
            return
        count = math.prod(got.shape)
        atol, rtol = self.tolerance or array_tolerance(got, want)
        if module.__name__ == "torch":
            got, want = widen_torch(module, got), widen_torch(module, want).to(got.device)
        else:
            got, want = widen_numpy(module, got), widen_numpy(module, want)
        if count == 0:
            self.result.values_count += 1
            return
        got, want = got.reshape(-1), want.reshape(-1)
        with quiet(module):
            abs_err, rel_err, is_bad = compare_arrays(module, got, want, (atol, rtol))
        result = self.result
        result.values_count += count
        result.max_abs_err = max(result.max_abs_err, float(abs_err.max()))
        result.max_rel_err = max(result.max_rel_err, float(rel_err.max()))
        if bool(is_bad.any()) and result.first_bad is None:
            at = int((is_bad * 1).argmax())
            result.first_bad = f"{place}[{at}]: got {got[at].item()!r}, want {want[at].item()!r}"


def compare(got: object, want: object, tolerance: tuple[float, float] | None = None) -> Answer:
    """Compares copies of two answers, so that no method of theirs has a say in it."""
    return compare_copies(copy_out(got), copy_out(want, "the right answer"), tolerance)


def compare_copies(got: object, want: object, tolerance: tuple[float, float] | None = None) -> Answer:
    """Compares what `copy_out` returned by `|got − want| <= atol + rtol·|want|`.

    Without a tolerance, that of the element type counts; integers, strings and everything else must be equal.
    """
    comparison = Comparison(tolerance)
    comparison.walk("answer", got, want)
    return comparison.result


def compare_numbers(got: Any, want: Any, tolerance: tuple[float, float] | None) -> tuple[float, float, bool]:
    """Absolute error, relative error, and whether that is too much."""
    if got == want:
        return 0.0, 0.0, False
    is_exact = isinstance(got, int) and isinstance(want, int)
    atol, rtol = tolerance or ((0.0, 0.0) if is_exact else TOLERANCES["f64"])
    try:
        abs_err, size = float(abs(got - want)), float(abs(want))
    except (TypeError, OverflowError):
        return math.inf, math.inf, True
    if math.isnan(abs_err):
        return math.inf, math.inf, True
    rel_err = abs_err / size if 0 < size < math.inf else math.inf
    # An infinite error is within no tolerance, even one relative to infinity.
    return abs_err, rel_err, not (math.isfinite(abs_err) and abs_err <= atol + rtol * size)


def compare_arrays(module: Any, got: Any, want: Any, tolerance: tuple[float, float]) -> tuple[Any, Any, Any]:
    """The same for each element. A NaN is wrong even where it is expected."""
    is_same, size, infinite = got == want, abs(want), module.full_like(abs(want), math.inf)
    nothing = module.zeros_like(size)
    error = abs(got - want)
    abs_err = module.where(is_same, nothing, module.where(module.isnan(error), infinite, error))
    is_scaled = (size > 0) & module.isfinite(size)
    rel_err = module.where(is_scaled, abs_err / module.where(is_scaled, size, nothing + 1), infinite)
    rel_err = module.where(is_same, nothing, rel_err)
    atol, rtol = tolerance
    is_bad = ~is_same & ~(module.isfinite(abs_err) & (abs_err <= atol + rtol * size))
    return abs_err, rel_err, is_bad


def quiet(module: Any) -> AbstractContextManager[object]:
    """NumPy warns of infinities, which are handled here."""
    return module.errstate(all="ignore") if module.__name__ == "numpy" else nullcontext()


def is_equal(got: object, want: object) -> bool:
    if isinstance(want, Set) != isinstance(got, Set):
        return False
    return bool(got == want)


def is_array(value: object) -> bool:
    return array_module(value) is not None


def as_array(module: ModuleType, value: Any, other: Any) -> Any:
    """The value as an array of that module: a reference may answer with a list or with NumPy."""
    own = array_module(value)
    if own is module:
        return value
    if module.__name__ == "torch":
        return module.as_tensor(value)
    if own is not None and own.__name__ == "torch":
        value = value.detach().cpu().numpy()
    return module.asarray(value)


def array_tolerance(got: Any, want: Any) -> tuple[float, float]:
    """That of the coarser element type; integers are exact."""
    names = [DTYPES.get(str(array.dtype).removeprefix("torch.")) for array in (got, want)]
    pairs = [TOLERANCES[name] for name in names if name is not None]
    return max(pairs, default=(0.0, 0.0))


def widen_torch(torch: Any, tensor: Any) -> Any:
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def widen_numpy(module: Any, array: Any) -> Any:
    array = module.asarray(array)
    return array.astype(module.complex128 if array.dtype.kind == "c" else module.float64)


def arrays_in(value: object) -> Iterator[Any]:
    """The arrays within nested lists, tuples and dicts."""
    if is_array(value):
        yield value
    else:
        for each in elements(value):
            yield from arrays_in(each)


def elements(value: object) -> Iterable[object]:
    """What a container stores. An answer's own methods could compute, outside of the time."""
    if isinstance(value, dict):
        return dict.values(value)
    if isinstance(value, list):
        return list.__iter__(value)
    if isinstance(value, tuple):
        return tuple.__iter__(value)
    return value.values() if isinstance(value, Mapping) else ()


def spoil(answer: object) -> None:
    """Fills the arrays of an answer with NaN: a call that writes nothing must not be right by what memory holds."""
    for array in arrays_with_memory(answer):
        fill(array)


def arrays_with_memory(answer: object) -> list[Any]:
    return [array for array in arrays_in(answer) if memory_of(array) is not None]


def spoil_free_memory(answer: object) -> None:
    """Fills memory that is free for the next answer with NaN: earlier answers may lie there, held by nobody.

    Allocators hand out what was freed last for the same size; taking several pieces at once reaches several of them.
    """
    for array in arrays_in(answer):
        module: Any = array_module(array)
        if module is None or memory_of(array) is None:
            continue
        pieces_count = PIECES if array.nbytes <= PIECE_BYTES_MAX else 1
        pieces = [module.empty_like(array) for _ in range(pieces_count)]
        for piece in pieces:
            fill(piece)


def share_memory(answer: object, arguments: object) -> bool:
    """Whether a call has written its answer into one of its arguments."""
    memories = {memory_of(array) for array in arrays_in(arguments)} - {None}
    return any(memory_of(array) in memories for array in arrays_in(answer))


def memory_of(array: Any) -> int | None:
    """The address of the memory behind an array; None where it has none of its own."""
    module = array_module(array)
    if module is None:
        return None
    if module.__name__ == "torch":
        return int(array.untyped_storage().data_ptr()) if array.layout == module.strided else None
    while getattr(array, "base", None) is not None and is_array(array.base):
        array = array.base
    interface = getattr(array, "__array_interface__", None) or getattr(array, "__cuda_array_interface__", None)
    return int(interface["data"][0]) if interface is not None else None


def fill(array: Any) -> None:
    """NaN, or for integers the smallest value."""
    module: Any = array_module(array)
    name = str(array.dtype).removeprefix("torch.")
    if "float" in name or "complex" in name:
        fill_with(array, math.nan)
    elif "int" in name and module is not None:
        fill_with(array, module.iinfo(array.dtype).min)


def fill_with(array: Any, value: float) -> None:
    module: Any = array_module(array)
    if module is not None and module.__name__ == "torch":
        with module.no_grad():
            array.fill_(value)
    elif getattr(getattr(array, "flags", None), "writeable", True):
        array.fill(value)


def shorten(value: object) -> str:
    text = repr(float(value)) if isinstance(value, Real) and not isinstance(value, int) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
