# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
"""A Triton kernel as a workload of holdpoint, and as a kernel that `holdpoint fuzz` checks."""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl

import holdpoint

# Triton's interpreter runs kernels on the CPU, for trying them out.
DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") else "cuda"


@triton.jit
def _softmax_kernel(x, y, columns, BLOCK: tl.constexpr):  # noqa: N803
    """One row, which fits a block."""
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row + column, mask=inside, other=float("-inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values))
    tl.store(y + row + column, weights / tl.sum(weights), mask=inside)


def draw(seed: int, rows: int, columns: int) -> tuple[torch.Tensor]:
    return (torch.randn(rows, columns, device=DEVICE, dtype=torch.float16),)


@holdpoint.workload(
    inputs=draw,
    params={"rows": [4096], "columns": [1024, 1000]},
    shape=lambda rows, columns: (rows, columns),
    dtype="f16",
    work=lambda rows, columns: {"bytes": 4 * rows * columns, "items": rows, "item": "rows"},
    reference=lambda x: torch.softmax(x.double(), dim=-1),
    timer=None if DEVICE == "cpu" else "cuda_graph",
)
def softmax(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@holdpoint.kernel("softmax", tensors="torch" if DEVICE == "cpu" else "cuda")
def softmax_of_case(shape: list[int], params: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    return softmax(x)
