"""Copies of answers as plain data: builtin values, containers of them, and arrays in memory of their own.

What is measured may return objects whose methods compute, or say that they are equal to anything. Nothing here calls a
method that a subclass could have replaced, so a copy holds what the answer was when it was made, and comparing copies
runs no code of theirs.
"""

from __future__ import annotations

import dataclasses
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import EnumMeta
from fractions import Fraction
from types import MemberDescriptorType, ModuleType
from typing import Any

IMMUTABLE = frozenset((type(None), bool, int, float, complex, str, bytes, Decimal, date, timedelta))
# Not those that a dataclass shares among its objects (ClassVar) or only passes on (InitVar).
STORED = dataclasses._FIELD  # type: ignore[attr-defined]
ADVICE = "return numbers, strings, lists, dicts, arrays, or a dataclass of them"


class AnswerError(TypeError):
    """An answer that cannot be copied, and so not compared."""


def copy_out(value: object, place: str = "answer") -> Any:
    """The value as plain data that nobody else holds; AnswerError where it is of another type."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    module = array_module(value)
    if module is not None:
        return copy_array(module, value, place)
    for base, copy in COPIES:
        if base in kind.__mro__:
            return copy(value, place)
    if kind in (datetime, time):
        return copy_time(value, place)
    if EnumMeta in type(kind).__mro__:
        # Its value may be any object; its name is what tells it from the others.
        return copy_out(object.__getattribute__(value, "_name_"), place)
    if (fields := find_in_class(kind, "__dataclass_fields__")) is not None:
        names = [name for name, field in fields.items() if field._field_type is STORED]
        return copy_dataclass(value, names, place)
    if find_in_class(kind, "__next__") is not None:
        raise AnswerError(f"{place} is a {name_of(kind)}, whose values are not computed yet; return list(...) of it")
    raise AnswerError(f"{place} is a {name_of(kind)}, which cannot be compared; {ADVICE}")


def find_in_class(kind: type, name: str) -> Any:
    """An attribute of a class or its bases, as it is stored there."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def copy_each(values: Iterable[object], place: str) -> list[object]:
    return [each if type(each) in IMMUTABLE else copy_out(each, f"{place}[{at}]") for at, each in enumerate(values)]


def copy_list(value: Any, place: str) -> list[object]:
    return copy_each(list.__iter__(value), place)


def copy_tuple(value: Any, place: str) -> tuple[object, ...]:
    return tuple(copy_each(tuple.__iter__(value), place))


def copy_deque(value: Any, place: str) -> list[object]:
    return copy_each(deque.__iter__(value), place)


def copy_dict(value: Any, place: str) -> dict[object, object]:
    copied = {}
    for key, each in dict.items(value):
        plain = copy_out(key, f"a key of {place}")
        copied[plain] = copy_out(each, f"{place}[{plain!r:.40}]")
    return copied


def copy_set(value: Any, place: str) -> set[object]:
    return set(copy_each(set.__iter__(value), place))


def copy_frozenset(value: Any, place: str) -> frozenset[object]:
    return frozenset(copy_each(frozenset.__iter__(value), place))


def copy_fraction(value: Any, place: str) -> Fraction:
    parts = [object.__getattribute__(value, name) for name in ("_numerator", "_denominator")]
    return Fraction(*(copy_out(part, place) for part in parts))


def copy_complex(value: Any, _: str) -> complex:
    fields: Any = complex.__dict__
    return complex(fields["real"].__get__(value), fields["imag"].__get__(value))


def copy_time(value: Any, place: str) -> object:
    """A time zone of their own would be asked when times are compared."""
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise AnswerError(f"{place} is a time in a zone of {name_of(type(value.tzinfo))}; return it in UTC")
    return value


def copy_dataclass(value: object, names: list[str], place: str) -> dict[object, object]:
    return {name: copy_out(stored_field(value, name, place), f"{place}.{name}") for name in names}


def stored_field(value: object, name: str, place: str) -> object:
    """A field as it is stored: a property of the same name could compute."""
    slot = find_in_class(type(value), name)
    if type(slot) is MemberDescriptorType:
        return slot.__get__(value)
    try:
        return dict.__getitem__(object.__getattribute__(value, "__dict__"), name)
    except (AttributeError, KeyError):
        raise AnswerError(f"{place}.{name} is no stored field of {name_of(type(value))}; {ADVICE}") from None


# Subclasses are copied as what they are built on: what is stored counts, not what their methods make of it. Strings and
# numbers of enumerations are their values.
COPIES: tuple[tuple[type, Callable[[Any, str], Any]], ...] = (
    (int, lambda value, _: int.__int__(value)),
    (float, lambda value, _: float.__float__(value)),
    (complex, copy_complex),
    (str, lambda value, _: str.__str__(value)),
    (bytes, lambda value, _: bytes.__getitem__(value, slice(None))),
    (bytearray, lambda value, _: bytes(bytearray.__getitem__(value, slice(None)))),
    (memoryview, lambda value, _: value.tobytes()),
    (list, copy_list),
    (tuple, copy_tuple),
    (dict, copy_dict),
    (set, copy_set),
    (frozenset, copy_frozenset),
    (deque, copy_deque),
    (array, lambda value, _: array.tolist(value)),
    (range, lambda value, _: list(value)),
    (type({}.keys()), lambda value, place: set(copy_each(value, place))),
    (type({}.values()), copy_each),
    (Fraction, copy_fraction),
)


def array_module(value: object) -> ModuleType | None:
    """The loaded module whose array this is: torch, CuPy or NumPy."""
    bases = type(value).__mro__
    for name, kind in (("torch", "Tensor"), ("cupy", "ndarray"), ("numpy", "ndarray"), ("numpy", "generic")):
        module = sys.modules.get(name)
        if module is not None and getattr(module, kind, None) in bases:
            return module
    return None


def copy_array(module: Any, value: Any, place: str) -> Any:
    if module.__name__ == "torch":
        return copy_tensor(module, value, place)
    if module.__name__ == "cupy":
        if type(value) is not module.ndarray:
            raise AnswerError(f"{place} is a {name_of(type(value))}; return a cupy.ndarray")
        return module.ndarray.copy(value)
    return copy_numpy(module, value, place)


def copy_numpy(numpy: Any, value: Any, place: str) -> Any:
    if numpy.ndarray in type(value).__mro__:
        copied = numpy.ndarray.copy(numpy.ndarray.view(value, numpy.ndarray))
    else:
        dtype = numpy.generic.__dict__["dtype"].__get__(value)
        copied = numpy.frombuffer(numpy.generic.tobytes(value), dtype=dtype).reshape(())
    # Elements that are no numbers are compared as what they are; objects among them must be plain as well.
    return copied if copied.dtype.kind in "biufc" else copy_out(copied.tolist(), place)


def copy_tensor(torch: Any, value: Any, place: str) -> Any:
    """The values of a tensor; one that computes them only when they are asked for is not an answer yet."""
    kind, base = type(value), torch.Tensor
    subclasses = kind.__mro__[: kind.__mro__.index(base)]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        is_lazy = any("__torch_dispatch__" in each.__dict__ for each in subclasses)
        if is_lazy or base.device.__get__(value).type in ("meta", "lazy"):
            raise AnswerError(f"{place} is a {name_of(kind)} without values of its own; return a torch.Tensor")
        return base.clone(base.detach(value if kind is base else base.as_subclass(value, base)))
