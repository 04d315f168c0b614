"""Declaring workloads and kernels. Nothing here runs them; worker.py does."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, overload

Function = Callable[..., object]
F = TypeVar("F", bound=Function)

TIMERS = ("host_monotonic", "cuda_events", "cuda_graph")
CACHES = ("warm", "cold")
VARIANTS = ("eager", "compiled", "graphed")
# A limit of holdpoint's suites: names end up in file names and metrics.
NAME_CHARS_MAX = 200


class Skip(Exception):  # noqa: N818 (it is not an error)
    """Raised by inputs, a workload or a kernel that cannot run here. The message is a reason code or a sentence."""


@dataclass(frozen=True)
class Workload:
    """A function to be timed, with its inputs and its check: one combination of params."""

    name: str
    op: str
    function: Function
    inputs: Function | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    dtype: str = ""
    work: Mapping[str, object] | None = None
    reference: Function | None = None
    tolerance: tuple[float, float] | None = None
    timer: str | None = None
    cache: str = "warm"
    kernel: Mapping[str, object] | Callable[[], Mapping[str, object] | None] | None = None
    variant: str | None = None
    remembers: bool = False

    def draw(self, seed: int) -> tuple[object, ...]:
        """The arguments of a call. The usual global generators are seeded first, so inputs may draw from them."""
        if self.inputs is None:
            return ()
        seed_generators(seed)
        drawn = self.inputs(seed, **self.params)
        return drawn if isinstance(drawn, tuple) else (drawn,)

    def bind(self, function: Function) -> Function:
        """Without inputs, the params are the arguments."""
        if self.inputs is not None or not self.params:
            return function
        params = dict(self.params)
        return lambda: function(**params)

    def describe(self) -> dict[str, object]:
        """Its entry in the answer to `list`."""
        entry: dict[str, object] = {"name": self.name, "op": self.op, "shape": list(self.shape), "dtype": self.dtype}
        if self.timer is not None:
            entry["timer"] = self.timer
        return {**entry, "remembers": True} if self.remembers else entry

    def describe_kernel(self) -> Mapping[str, object] | None:
        return self.kernel() if callable(self.kernel) else self.kernel


@dataclass(frozen=True)
class Kernel:
    """A function that `holdpoint fuzz` may call: `function(shape, params, *tensors)` returns the outputs."""

    op: str
    function: Function
    tensors: str
    dtypes: tuple[str, ...] | None = None


@dataclass
class Registry:
    """The workloads and kernels that were declared, by name and by op."""

    workloads: dict[str, Workload] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def add(self, workload: Workload) -> None:
        if workload.name in self.workloads:
            raise ValueError(f"workload {workload.name!r} is declared twice; give one of them another name=")
        self.workloads[workload.name] = workload

    def add_kernel(self, kernel: Kernel) -> None:
        if kernel.op in self.kernels:
            raise ValueError(f"a kernel for op {kernel.op!r} is declared twice; serve them by two workers")
        self.kernels[kernel.op] = kernel


REGISTRY = Registry()


@overload
def workload(fn: F, /) -> F: ...


@overload
def workload(
    *,
    name: str | None = None,
    op: str | None = None,
    inputs: Function | None = None,
    params: Mapping[str, Sequence[object]] | None = None,
    shape: int | Sequence[int] | Function = (),
    dtype: str | Function = "",
    work: Mapping[str, object] | Function | None = None,
    reference: Function | None = None,
    tolerance: tuple[float, float] | Function | None = None,
    timer: str | None = None,
    cache: str = "warm",
    kernel: Mapping[str, object] | Callable[[], Mapping[str, object] | None] | None = None,
    variants: Sequence[str] | None = None,
    remembers: bool = False,
) -> Callable[[F], F]: ...


def workload(
    fn: F | None = None,
    /,
    *,
    name: str | None = None,
    op: str | None = None,
    inputs: Function | None = None,
    params: Mapping[str, Sequence[object]] | None = None,
    shape: int | Sequence[int] | Function = (),
    dtype: str | Function = "",
    work: Mapping[str, object] | Function | None = None,
    reference: Function | None = None,
    tolerance: tuple[float, float] | Function | None = None,
    timer: str | None = None,
    cache: str = "warm",
    kernel: Mapping[str, object] | Callable[[], Mapping[str, object] | None] | None = None,
    variants: Sequence[str] | None = None,
    remembers: bool = False,
) -> F | Callable[[F], F]:
    """Declares a function as a workload, one for each combination of params, and returns it unchanged.

    `inputs(seed, **params)` returns the tuple of arguments; without it, the params are passed by name. `shape`,
    `dtype`, `work` and `tolerance` are values or functions of the params. `reference(*arguments)` returns the right
    answer, and `tolerance` is (atol, rtol). `variants` makes a workload for each way of calling a torch function:
    "eager", "compiled", "graphed". With `remembers`, calls may be quick because of earlier ones on the same inputs. See
    docs/python.md.
    """
    check_choice("timer", timer, (None, *TIMERS))
    check_choice("cache", cache, CACHES)
    if cache == "cold" and timer not in ("cuda_events", "cuda_graph"):
        raise ValueError('cache="cold" needs a timer on the device: timer="cuda_graph" or "cuda_events"')

    for variant in variants or ():
        check_choice("variants", variant, VARIANTS)

    def declare(function: F) -> F:
        check_function(function)
        base = name or function.__name__
        for values, variant in itertools.product(combine(params or {}), variants or (None,)):
            REGISTRY.add(
                Workload(
                    name=name_combination(base, values, variant),
                    op=op or base,
                    function=function,
                    inputs=inputs,
                    params=values,
                    shape=read_shape(resolve(shape, values)),
                    dtype=read_as(str, "dtype", resolve(dtype, values)),
                    work=read_work(resolve(work, values)),
                    reference=reference,
                    tolerance=read_tolerance(resolve(tolerance, values)),
                    timer=timer,
                    cache=cache,
                    kernel=kernel,
                    variant=variant,
                    remembers=remembers,
                )
            )
        return function

    return declare if fn is None else declare(fn)


def kernel(op: str, *, tensors: str = "list", dtypes: Sequence[str] | None = None) -> Callable[[F], F]:
    """Declares `function(shape, params, *tensors) -> outputs` as the kernel of an op, for `holdpoint fuzz` and `check`.

    `tensors` is "list" (flat lists of numbers), "numpy", "torch" or "cuda" (torch tensors on the device).
    """
    check_choice("tensors", tensors, ("list", "numpy", "torch", "cuda"))

    def declare(function: F) -> F:
        REGISTRY.add_kernel(Kernel(op, function, tensors, tuple(dtypes) if dtypes is not None else None))
        return function

    return declare


def load(sources: Sequence[str]) -> Registry:
    """Imports files and modules, which declare their workloads as they are imported."""
    for source in sources:
        if source.endswith(".py"):
            load_file(Path(source))
        else:
            importlib.import_module(source)
    return REGISTRY


def load_file(path: Path) -> None:
    """Imports a file as its folder's scripts see it: its neighbours can be imported."""
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


def seed_generators(seed: int) -> None:
    """Seeds the global generators of random, and of NumPy, torch and CuPy where they are loaded."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed % 2**63)
    if cupy := sys.modules.get("cupy"):
        cupy.random.seed(seed % 2**32)


def combine(params: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every combination of the values."""
    for key, values in params.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise ValueError(f"params: {key!r} needs a list of values, not {values!r}")
    return [dict(zip(params, values, strict=True)) for values in itertools.product(*params.values())]


def name_combination(base: str, values: Mapping[str, object], variant: str | None) -> str:
    """`dot` with n = 1000 is `dot.n_1000`. Characters that a suite's names may not have become dashes."""
    parts = [base, *(f"{key}_{value}" for key, value in values.items()), *([variant] if variant else [])]
    name = ".".join(re.sub(r"[^A-Za-z0-9_.-]", "-", part) for part in parts)
    if len(name) > NAME_CHARS_MAX or name.startswith("."):
        raise ValueError(f"{name!r} is no usable workload name (at most {NAME_CHARS_MAX} characters); give a name=")
    return name


def check_function(function: Function) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ValueError(
            f"{function.__name__}: calling it does no work yet, since it is a coroutine or a generator; "
            "declare a function that awaits or exhausts it"
        )


def check_choice(key: str, value: str | None, choices: Sequence[str | None]) -> None:
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{key}={value!r} is not known; choose from {known}")


def resolve(value: object, params: Mapping[str, object]) -> object:
    return value(**params) if callable(value) else value


def read_as(kind: type[str], key: str, value: object) -> str:
    if not isinstance(value, kind):
        raise ValueError(f"{key}: {value!r} is not a {kind.__name__}")
    return value


def read_shape(value: object) -> tuple[int, ...]:
    sizes = (value,) if isinstance(value, int) else value
    if not isinstance(sizes, Sequence) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError(f"shape: {value!r} is not a tuple of sizes")
    return tuple(sizes)


def read_work(value: object) -> Mapping[str, object] | None:
    known = {"bytes", "flops", "items", "item"}
    if value is None:
        return None
    if not isinstance(value, Mapping) or not set(value) <= known:
        raise ValueError(f"work: {value!r} is not a dict with some of {', '.join(sorted(known))}")
    return {key: each if key == "item" else int(each) for key, each in value.items()}


def read_tolerance(value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or len(value) != 2 or not all(float(each) >= 0 for each in value):
        raise ValueError(f"tolerance: {value!r} is not (atol, rtol)")
    return float(value[0]), float(value[1])
