"""Launching Triton kernels: with block sizes of a heuristic, or with those that Triton's tuner finds fastest."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import triton

Grid = Callable[[Mapping[str, int]], tuple[int, ...]]
Block = Mapping[str, int]


@dataclass(frozen=True)
class Tunable:
    """A kernel and the block sizes that it may be launched with; a choice is made for the arguments named by `key`."""

    op_name: str
    kernel: Any
    configs: tuple[Block, ...]
    key: tuple[str, ...]
    # Arguments that the kernel changes: calls of the tuner must not.
    restored: tuple[str, ...] = ()
    tuner: Any = field(init=False)

    def __post_init__(self) -> None:
        configs = [triton.Config(block_sizes(c), num_warps=c["num_warps"]) for c in self.configs]
        tuner = triton.autotune(
            configs=configs, key=list(self.key), restore_value=list(self.restored), cache_results=True
        )(self.kernel)
        object.__setattr__(self, "tuner", tuner)

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


def block_sizes(config: Block) -> dict[str, int]:
    return {name: value for name, value in config.items() if name != "num_warps"}


@dataclass(frozen=True)
class Launch:
    """One launch, as it was."""

    kernel: Tunable
    config: dict[str, int]
    bucket: str
    is_tuned: bool
    registers: int | None
    shared_bytes: int | None


class Launcher:
    """Launches kernels, and records the launches of a call on request."""

    def __init__(self, *, is_tuned: bool = False) -> None:
        self.is_tuned = is_tuned
        self.launches: list[Launch] = []
        self._is_recording = False
        self._tuned: set[tuple[object, ...]] = set()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Records the launches from here on, in place of earlier ones."""
        self.launches.clear()
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False

    def launch(
        self, kernel: Tunable, grid: Grid, block: Block, bucket: Mapping[str, int | str], *args: object, **meta: object
    ) -> None:
        """Launches with the sizes of `block`, or of the tuner's choice. Nothing is done where the grid is empty."""
        if 0 in grid(block):
            return
        if self.is_tuned:
            compiled = self._launch_tuned(kernel, grid, (kernel.op_name, *bucket.values()), args, meta)
        else:
            compiled = kernel.kernel[grid](*args, **meta, **block)
        if self._is_recording:
            self.launches.append(self._describe(kernel, block, bucket, compiled))

    def _launch_tuned(
        self, kernel: Tunable, grid: Grid, key: tuple[object, ...], args: tuple[object, ...], meta: dict[str, object]
    ) -> Any:
        """One process at a time makes a choice; the others then find it in Triton's cache and take the same."""
        if key in self._tuned:
            return kernel.tuner[grid](*args, **meta)
        folder = Path(triton.knobs.cache.dir)
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "holdpoint-tuning.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            compiled = kernel.tuner[grid](*args, **meta)
            torch.cuda.synchronize()
        finally:
            os.close(descriptor)
        self._tuned.add(key)
        return compiled

    def _describe(self, kernel: Tunable, block: Block, bucket: Mapping[str, int | str], compiled: Any) -> Launch:
        config = dict(block)
        if self.is_tuned:
            best = kernel.tuner.best_config
            config = {**best.kwargs, "num_stages": best.num_stages, "num_warps": best.num_warps}
        return Launch(
            kernel,
            dict(sorted(config.items())),
            "|".join(f"{key}={bucket[key]}" for key in sorted(bucket)),
            self.is_tuned,
            getattr(compiled, "n_regs", None),
            getattr(getattr(compiled, "metadata", None), "shared", None),
        )

    def kernel_info(self) -> dict[str, object] | None:
        """The kernel of a report: the first of the call, with the number of all launches."""
        if not self.launches:
            return None
        first = self.launches[0]
        info: dict[str, object] = {
            "op_name": first.kernel.op_name,
            "kernel_name": first.kernel.name,
            "shape_bucket": first.bucket,
            "selected_config": first.config,
            "selection_source": "triton_best_config" if first.is_tuned else "heuristic",
            "backend": "triton",
            "launches_per_call": len(self.launches),
            "functions": sorted({launch.kernel.name for launch in self.launches}),
        }
        registers = [launch.registers for launch in self.launches if launch.registers is not None]
        shared = [launch.shared_bytes for launch in self.launches if launch.shared_bytes is not None]
        if registers:
            info["registers"] = max(registers)
        if shared:
            info["shared_bytes"] = max(shared)
        return info


# Launches with a heuristic's block sizes.
UNTUNED = Launcher()
