"""The right answer for `holdpoint fuzz`: softmax in 64 bits."""

from __future__ import annotations

from typing import Any

import torch

import holdpoint


@holdpoint.kernel("softmax", tensors="torch")
def softmax(shape: list[int], params: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.double(), dim=-1)
