"""Ways of calling the same torch function: eager, compiled, and as a CUDA graph."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from .device_calls import Arguments
from .devices import open_device
from .workloads import Function, Skip

# By the names of torch's errors: it found no compiler, which says nothing about the function.
NO_COMPILER = ("InvalidCxxCompiler", "CppCompileError")


def make_variant(function: Function, variant: str | None) -> Function:
    """The function as the variant calls it."""
    if variant in (None, "eager"):
        return function
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        raise Skip("torch_not_installed") from None
    return Compiled(torch, function) if variant == "compiled" else Graphed(function)


class Compiled:
    """The function by torch.compile. Compiling happens in the first call; without a compiler, that one skips."""

    def __init__(self, torch: Any, function: Function) -> None:
        # Read when torch loads its compiler: a pool of compiling processes would compete with the calls for the CPUs.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        # Compiled code is found again on disk by these settings, not by torch.set_num_threads: code for two threads was
        # used where there was one, and took ten times as long.
        config: Any = importlib.import_module("torch._inductor.config")
        config.cpp.threads = torch.get_num_threads()
        self.function: Callable[..., object] = torch.compile(function)

    def __call__(self, *arguments: object) -> object:
        try:
            return self.function(*arguments)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if any(name in text for name in NO_COMPILER) or "Failed to find C compiler" in text:
                raise Skip("no_compiler: torch.compile needs a C++ compiler; install g++") from error
            raise


class Graphed:
    """The function captured in a CUDA graph once and replayed afterwards, on the same buffers."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.device = open_device()
        self.captured_for = Arguments()
        self.replay: Callable[[], None] | None = None
        self.answer: object = None

    def __call__(self, *arguments: object) -> object:
        if self.replay is None or not self.is_captured_for(arguments):
            self.capture(arguments)
        if self.replay is not None:
            self.replay()
        return self.answer

    def is_captured_for(self, arguments: tuple[object, ...]) -> bool:
        known = self.captured_for.values
        return known is not None and len(known) == len(arguments) and all(map(is_same, known, arguments))

    def capture(self, arguments: tuple[object, ...]) -> None:
        self.captured_for.values = arguments
        with self.device.stream():
            for _ in range(3):
                self.function(*arguments)
            self.device.synchronize()
            self.replay, self.answer = self.device.capture(lambda: self.function(*arguments))
        self.device.synchronize()


def is_same(one: object, other: object) -> bool:
    return one is other
