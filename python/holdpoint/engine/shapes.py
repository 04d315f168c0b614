"""Shape cases, and whether they fit a model's inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Shapes = dict[str, tuple[int, ...]]


class EngineError(Exception):
    """A model or a case that cannot be used. The message is a whole sentence for people."""


@dataclass(frozen=True)
class Tensor:
    """An input of a model. Sizes that the model leaves open are None."""

    name: str
    dims: tuple[int | None, ...]
    dtype: str

    @property
    def is_static(self) -> bool:
        return None not in self.dims

    def describe(self) -> str:
        dims = "x".join("?" if size is None else str(size) for size in self.dims)
        return f"{self.name}={dims or 'scalar'} {self.dtype}"


def parse(text: str) -> Shapes:
    """`image=1x3x64x64;mask=1x64` by name. Holdpoint has checked what it passes on; this is for people who type it."""
    shapes: Shapes = {}
    for entry in filter(None, (part.strip() for part in re.split("[;,]", text))):
        name, equals, dims = (part.strip() for part in entry.partition("="))
        sizes = [size for size in re.split(r"[x\s]+", dims) if size]
        if not (name and equals and sizes) or not all(size.isdecimal() and int(size) > 0 for size in sizes):
            raise EngineError(f"{entry!r} is not a shape; give it as name=1x3x64x64")
        shapes[name] = tuple(int(size) for size in sizes)
    return shapes


def resolve(model: str, inputs: Sequence[Tensor], case: Mapping[str, tuple[int, ...]]) -> Shapes:
    """The shape of every input: the model's own, or the case's where the model leaves sizes open."""
    known = f"its inputs: {', '.join(each.describe() for each in inputs) or 'none'}"
    names = {each.name for each in inputs}
    for name in case:
        if name not in names:
            raise EngineError(f"{model} has no input {name!r}; {known}")
    return {each.name: resolve_one(model, each, case.get(each.name), known) for each in inputs}


def resolve_one(model: str, tensor: Tensor, given: tuple[int, ...] | None, known: str) -> tuple[int, ...]:
    fixed = tuple(size for size in tensor.dims if size is not None)
    if given is None:
        if not tensor.is_static:
            raise EngineError(f"{model} leaves sizes of {tensor.name!r} open and no shape is given for it; {known}")
        return fixed
    if len(given) != len(tensor.dims):
        raise EngineError(
            f"{tensor.name}={'x'.join(map(str, given))} has {len(given)} dimensions, {model} wants "
            f"{len(tensor.dims)}; {known}"
        )
    for size, own in zip(given, tensor.dims, strict=True):
        if own is not None and size != own:
            raise EngineError(
                f"{tensor.name}={'x'.join(map(str, given))} changes a size that {model} fixes to {own}; {known}"
            )
    return given
