"""Attention by PyTorch and by holdpoint's Triton kernel, for `holdpoint fuzz`: sdpa-oracle.toml in this folder."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import holdpoint

# One of PyTorch's backends (flash_attention, efficient_attention, cudnn_attention, math), or triton.
BACKEND = os.environ.get("BACKEND", "math")


@holdpoint.kernel("attention", tensors="cuda" if torch.cuda.is_available() else "torch")
def attention(
    shape: list[int], params: dict[str, Any], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    causal = params.get("causal", False)
    if BACKEND == "triton":
        from holdpoint.ops import triton_ops

        return triton_ops.attention(q, k, v, causal)
    if BACKEND == "math":
        # The oracle: in 64 bits, which no other backend takes.
        q, k, v = q.double(), k.double(), v.double()
    with sdpa_kernel(getattr(SDPBackend, BACKEND.upper())):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)
