# ruff: noqa: N803 (constants are in capitals, as Triton's users write them)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
"""An RMS norm in Triton, right unless the variable BUG names one of six bugs; served to `holdpoint fuzz`.

Two programs share a row: each adds its squares to the row's sum, then each writes its part.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl

import holdpoint

BUG = os.environ.get("BUG", "none")
BUGS = ("none", "mask", "tail", "scale", "accumulator", "stride", "race")
if BUG not in BUGS:
    raise ValueError(f"BUG={BUG} is not known; choose from {', '.join(BUGS)}")
BLOCK_SIZE = 256


@triton.jit
def _sum_kernel(x, sums, hidden, stride, size, end, BUG: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((BLOCK_SIZE,), x.dtype.element_ty if BUG == "accumulator" else tl.float32)
    for first in range(part * BLOCK_SIZE, end, 2 * BLOCK_SIZE):
        column = first + tl.arange(0, BLOCK_SIZE)
        at = row * stride + column
        # Past the end of a row nothing may be added.
        other = 1.0 if BUG == "mask" else 0.0
        values = tl.load(x + at, mask=(column < hidden) & (at < size), other=other)
        if BUG == "accumulator":
            total += values * values
        else:
            total += values.to(tl.float32) * values.to(tl.float32)
    if BUG == "race":
        tl.store(sums + row, tl.load(sums + row) + tl.sum(total).to(tl.float32))
    else:
        tl.atomic_add(sums + row, tl.sum(total).to(tl.float32))


@triton.jit
def _norm_kernel(x, weight, sums, y, hidden, stride, size, end, count, eps, BLOCK_SIZE: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    norm = 1.0 / tl.sqrt(tl.load(sums + row) / count + eps)
    for first in range(part * BLOCK_SIZE, end, 2 * BLOCK_SIZE):
        column = first + tl.arange(0, BLOCK_SIZE)
        at = row * stride + column
        inside = (column < hidden) & (at < size)
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        scales = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
        tl.store(y + at, values * norm * scales, mask=inside)


@holdpoint.kernel("rms_norm", tensors="torch" if os.environ.get("TRITON_INTERPRET") else "cuda")
def rms_norm(shape: list[int], params: dict[str, Any], x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    hidden = shape[-1]
    rows = x.numel() // hidden
    # Memory of unwritten outputs must not hold the answer of an earlier call.
    y = torch.full_like(x, torch.nan)
    sums = torch.zeros(rows, dtype=torch.float32, device=x.device)
    stride = triton.cdiv(hidden, 16) * 16 if BUG == "stride" else hidden
    # The kernel that forgets the tail has only seen rows of whole blocks, or of less than one.
    end = hidden // BLOCK_SIZE * BLOCK_SIZE if BUG == "tail" and hidden >= BLOCK_SIZE else hidden
    count = triton.cdiv(hidden, BLOCK_SIZE) * BLOCK_SIZE if BUG == "scale" else hidden
    sizes = (hidden, stride, x.numel(), end)
    grid = (2, rows)
    _sum_kernel[grid](x, sums, *sizes, BUG=BUG, BLOCK_SIZE=BLOCK_SIZE)
    _norm_kernel[grid](x, weight, sums, y, *sizes, count, params.get("eps", 1e-6), BLOCK_SIZE=BLOCK_SIZE)
    return y
