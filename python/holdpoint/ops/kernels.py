"""The ops as kernels for `holdpoint fuzz`: parameters and tensors as docs/fuzz.md lists them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import holdpoint

from . import routing

if TYPE_CHECKING:
    from torch import Tensor

Params = Mapping[str, Any]
Shape = Sequence[int]
DTYPES = ("f32", "f16", "bf16")


def attention(ops: Any, _: Shape, params: Params, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ops.attention(q, k, v, params.get("causal", False))


def tile_ssm(ops: Any, _: Shape, params: Params, tokens: Tensor, *vectors_and_gate: Tensor) -> tuple[Tensor, Tensor]:
    from .torch_ops import ScanParams

    *vectors, gate = vectors_and_gate
    scanned: tuple[Tensor, Tensor] = ops.tile_ssm(
        tokens,
        ScanParams(*vectors),
        clamp=params.get("clamp_value", 1e4),
        direction=params.get("direction", "forward"),
        merge=params.get("merge_mode", "avg"),
        merge_gate=gate,
    )
    return scanned


def fusion_gate(ops: Any, _: Shape, params: Params, *tensors: Tensor) -> object:
    from .torch_ops import DEFAULT_GATE

    gate = DEFAULT_GATE._replace(**{name: params[name] for name in DEFAULT_GATE._fields if name in params})
    return ops.fusion_gate(*tensors, gate) if params.get("apply_fusion", True) else ops.gate_alpha(*tensors, gate)


def tile_ids(shape: Shape, params: Params, like: Tensor) -> tuple[int, Tensor]:
    """The edge of a tile, and the ids of each sample in their order."""
    import torch

    batch, _, height, width = shape
    tile = params.get("tile_size", 16)
    rows, columns = height // tile, width // tile
    ids = params.get("indices")
    if ids is None and params.get("kmax") is not None:
        raise holdpoint.Skip("tiles are drawn by kmax from a seed that workers are not given; name them by indices")
    ids = list(range(rows * columns)) if ids is None else ids
    ordered = routing.order(ids, params.get("order_mode", "hilbert"), rows, columns)
    return tile, torch.tensor([ordered] * batch, dtype=torch.int32, device=like.device)


def tile_pack(ops: Any, shape: Shape, params: Params, feature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from .torch_ops import tile_origins

    tile, ids = tile_ids(shape, params, feature)
    return ops.tile_pack(feature, ids, tile), ids, tile_origins(ids, shape[3], tile)


def tile_unpack(ops: Any, shape: Shape, params: Params, base: Tensor, packed: Tensor) -> tuple[Tensor, ...]:
    import torch

    from . import torch_ops

    tile, ids = tile_ids(shape, params, base)
    origins = torch_ops.tile_origins(ids, shape[3], tile)
    overlap = params.get("overlap_mode", "override"), params.get("blend_alpha", 0.5)
    levels = params.get("levels")
    if levels is not None:
        rows = torch.tensor([levels] * shape[0], dtype=torch.int32, device=base.device)
        return (ops.tile_unpack(base, packed, origins, torch_ops.priority_keys(rows), *overlap),)
    priority = params.get("level_priority", 1)
    merged = ops.tile_unpack(base, packed, origins, None, *overlap) if priority >= 0 else base.clone()
    return merged, torch_ops.priority_map(base, origins, tile, priority)


def fused_pack_op_unpack(ops: Any, shape: Shape, params: Params, feature: Tensor) -> Tensor:
    from .torch_ops import DEFAULT_AFFINE

    affine = DEFAULT_AFFINE._replace(**{name: params[name] for name in DEFAULT_AFFINE._fields if name in params})
    tile, ids = tile_ids(shape, {**params, "order_mode": "none"}, feature)
    return ops.fused_pack_op_unpack(feature, ids, tile, affine)


def rms_norm(ops: Any, _: Shape, params: Params, x: Tensor, weight: Tensor) -> Tensor:
    return ops.rms_norm(x, weight, params.get("eps", 1e-6))


KERNELS: tuple[Callable[..., object], ...] = (
    attention,
    tile_ssm,
    fusion_gate,
    tile_pack,
    tile_unpack,
    fused_pack_op_unpack,
    rms_norm,
)


def declare(ops: Callable[[], Any], tensors: str) -> None:
    """Declares one implementation of all ops, which is imported at the first call."""
    for kernel in KERNELS:

        @holdpoint.kernel(kernel.__name__, tensors=tensors, dtypes=DTYPES)
        @functools.wraps(kernel)
        def call(*args: object, kernel: Callable[..., object] = kernel) -> object:
            return kernel(ops(), *args)
