"""The built-in ops as Triton kernels: grids, block sizes and arguments.

Must not compute anything itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import triton
from torch import Tensor

from . import torch_ops
from . import triton_kernels as kernels
from .launching import UNTUNED, Block, Grid, Launcher, Tunable
from .torch_ops import (
    DEFAULT_AFFINE,
    DEFAULT_GATE,
    Affine,
    Direction,
    Gate,
    Kernels,
    Merge,
    Overlap,
    PathWeights,
    ScanParams,
)

INT32_MIN = -(2**31)
_MERGES: Mapping[Merge, int] = {"sum": 1, "avg": 2, "gated": 3}
_DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}


def _pixel_blocks() -> tuple[Block, ...]:
    sizes = ((64, 4), (128, 4), (256, 8), (512, 4), (1024, 4))
    return tuple({"BLOCK_PIX": size, "num_warps": warps} for size, warps in sizes)


_MAP_KEY = ("kmax", "channels", "height", "width", "TILE")
TILE_PACK = Tunable("tilepack", kernels._tilepack_kernel, _pixel_blocks(), _MAP_KEY)
TILE_UNPACK_PRIORITY = Tunable(
    "tileunpack_priority", kernels._tileunpack_priority_kernel, _pixel_blocks()[:3], ("kmax", "height", "width", "TILE")
)
TILE_UNPACK_SCATTER = Tunable("tileunpack_scatter", kernels._tileunpack_scatter_kernel, _pixel_blocks(), _MAP_KEY)
TILE_UNPACK_BLEND = Tunable(
    "tileunpack_blend_update",
    kernels._tileunpack_blend_update_kernel,
    _pixel_blocks(),
    _MAP_KEY,
    restored=("merged",),
)
FUSION_ALPHA = Tunable(
    "fusiongate_alpha",
    kernels._fusiongate_alpha_kernel,
    tuple({"BLOCK_SIZE": size, "num_warps": 4} for size in (256, 512, 1024)),
    ("n_elements",),
)
FUSION_FUSE = Tunable(
    "fusiongate_fuse",
    kernels._fusiongate_fuse_kernel,
    tuple(
        {"BLOCK_SIZE": size, "CHANNELS": channels, "num_warps": 4}
        for size in (256, 512, 1024)
        for channels in (1, 4, 8)
    ),
    ("channels", "plane"),
)
FUSED = Tunable("fused_pack_op_unpack", kernels._fused_pack_op_unpack_kernel, _pixel_blocks(), _MAP_KEY)
TILE_SSM = Tunable(
    "tilessm_scan",
    kernels._tilessm_scan_kernel,
    tuple(
        {"BLOCK_STEPS": steps, "BLOCK_CHANNELS": channels, "num_warps": warps}
        for steps, channels, warps in ((64, 8, 4), (128, 4, 4), (128, 8, 4), (256, 2, 4), (256, 4, 4), (256, 8, 8))
    ),
    ("steps", "channels", "MERGE"),
)
ATTENTION = Tunable(
    "attention",
    kernels._attention_kernel,
    tuple(
        {"BLOCK_M": rows, "BLOCK_N": keys, "num_warps": warps}
        for rows, keys, warps in ((64, 32, 4), (64, 64, 4), (128, 32, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8))
    ),
    ("steps", "width", "IS_CAUSAL"),
)
RMS_NORM = Tunable(
    "rms_norm",
    kernels._rms_norm_kernel,
    tuple({"BLOCK_SIZE": size, "num_warps": warps} for size, warps in ((1024, 4), (2048, 4), (4096, 8), (4096, 16))),
    ("hidden",),
)


def _pixel_block(pixels: int) -> Block:
    size = 64 if pixels <= 64 else 128 if pixels <= 128 else 256
    return {"BLOCK_PIX": size, "num_warps": 8 if size == 256 else 4}


def _tile_grid(slots: int, elements: int) -> Grid:
    return lambda meta: (slots, triton.cdiv(elements, meta["BLOCK_PIX"]))


def _map_bucket(feature: Tensor, kmax: int, tile: int) -> dict[str, int | str]:
    batch, channels, height, width = feature.shape
    return {
        "batch": batch,
        "channels": channels,
        "dtype": _dtype_name(feature),
        "height": height,
        "kmax": kmax,
        "tile_size": tile,
        "width": width,
    }


def _dtype_name(tensor: Tensor) -> str:
    return _DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))


def tile_pack(feature: Tensor, indices: Tensor, tile: int, *, launcher: Launcher = UNTUNED) -> Tensor:
    """As `torch_ops.tile_pack`; ids in int32."""
    batch, channels, height, width = feature.shape
    count = indices.shape[1]
    packed = torch.empty((batch, count, channels, tile, tile), dtype=feature.dtype, device=feature.device)
    size = channels * tile * tile
    launcher.launch(
        TILE_PACK,
        _tile_grid(batch * count, size),
        _pixel_block(tile * tile),
        _map_bucket(feature, count, tile),
        feature.contiguous(),
        indices.contiguous(),
        packed,
        count,
        channels,
        height,
        width,
        TILE=tile,
    )
    return packed


def tile_unpack(
    base: Tensor,
    packed: Tensor,
    origins: Tensor,
    keys: Tensor | None = None,
    overlap: Overlap = "override",
    blend_alpha: float = 0.5,
    *,
    launcher: Launcher = UNTUNED,
) -> Tensor:
    """As `torch_ops.tile_unpack`; keys of a sample must differ."""
    batch, channels, height, width = base.shape
    count, tile = packed.shape[1], packed.shape[-1]
    merged = base.clone(memory_format=torch.contiguous_format)
    packed, origins = packed.contiguous(), origins.to(torch.int32).contiguous()
    if keys is None:
        keys = torch.arange(count, dtype=torch.int32, device=base.device).expand(batch, count)
    bucket, block = _map_bucket(base, count, tile), _pixel_block(tile * tile)
    sizes = (count, channels, height, width)
    if overlap == "blend":
        order = keys.argsort(dim=1).to(torch.int32).contiguous()
        grid = _tile_grid(batch, channels * tile * tile)
        for rank in range(count):
            launcher.launch(
                TILE_UNPACK_BLEND,
                grid,
                block,
                {**bucket, "overlap_mode": overlap},
                packed,
                origins,
                order,
                merged,
                rank,
                blend_alpha,
                *sizes,
                TILE=tile,
            )
        return merged
    keys = keys.to(torch.int32).contiguous()
    winner = torch.full((batch, height, width), INT32_MIN, dtype=torch.int32, device=base.device)
    launcher.launch(
        TILE_UNPACK_PRIORITY,
        _tile_grid(batch * count, tile * tile),
        block,
        bucket,
        origins,
        keys,
        winner,
        count,
        height,
        width,
        TILE=tile,
    )
    launcher.launch(
        TILE_UNPACK_SCATTER,
        _tile_grid(batch * count, channels * tile * tile),
        block,
        bucket,
        packed,
        origins,
        keys,
        winner,
        merged,
        *sizes,
        TILE=tile,
    )
    return merged


def gate_alpha(
    boundary: Tensor, uncertainty: Tensor, gate: Gate = DEFAULT_GATE, *, launcher: Launcher = UNTUNED
) -> Tensor:
    """As `torch_ops.gate_alpha`, in the proxies' type."""
    alpha = torch.empty_like(boundary, memory_format=torch.contiguous_format)
    count = alpha.numel()
    launcher.launch(
        FUSION_ALPHA,
        lambda meta: (triton.cdiv(count, meta["BLOCK_SIZE"]),),
        {"BLOCK_SIZE": 256 if count <= 256 else 512 if count <= 512 else 1024, "num_warps": 4},
        {"dtype": _dtype_name(boundary), "n_elements": count},
        boundary.contiguous(),
        uncertainty.contiguous(),
        alpha,
        *gate.weights(),
        count,
    )
    return alpha


def fusion_gate(
    base: Tensor,
    heavy: Tensor,
    boundary: Tensor,
    uncertainty: Tensor,
    gate: Gate = DEFAULT_GATE,
    *,
    launcher: Launcher = UNTUNED,
) -> tuple[Tensor, Tensor]:
    """As `torch_ops.fusion_gate`, in one launch."""
    batch, channels, height, width = base.shape
    plane = height * width
    fused = torch.empty_like(base, memory_format=torch.contiguous_format)
    alpha = torch.empty((batch, 1, height, width), dtype=base.dtype, device=base.device)
    bucket = {
        "batch": batch,
        "channels": channels,
        "dtype": _dtype_name(base),
        "height": height,
        "n_elements": base.numel(),
        "width": width,
    }
    launcher.launch(
        FUSION_FUSE,
        lambda meta: (triton.cdiv(plane, meta["BLOCK_SIZE"]), triton.cdiv(channels, meta["CHANNELS"]), batch),
        {"BLOCK_SIZE": 256 if plane <= 256 else 512 if plane <= 512 else 1024, "CHANNELS": 4, "num_warps": 4},
        bucket,
        base.contiguous(),
        heavy.contiguous(),
        boundary.contiguous(),
        uncertainty.contiguous(),
        fused,
        alpha,
        *gate.weights(),
        channels,
        plane,
    )
    return fused, alpha


def _scan(
    tokens: Tensor,
    params: ScanParams,
    y: Tensor,
    state: Tensor,
    *,
    start: Tensor | None,
    clamp: float,
    is_reversed: bool,
    merge: int = 0,
    ahead: Tensor | None = None,
    merge_gate: Tensor | None = None,
    launcher: Launcher,
) -> None:
    """One direction, into `y` and `state`, whose rows may be strided."""
    batch, steps, channels = tokens.shape
    vectors = [vector.contiguous() for vector in params]
    has_start = start is not None
    start = start if start is not None else state
    gate = merge_gate if merge_gate is not None else tokens
    launcher.launch(
        TILE_SSM,
        lambda meta: (batch, triton.cdiv(channels, meta["BLOCK_CHANNELS"])),
        {"BLOCK_STEPS": min(128, triton.next_power_of_2(steps)), "BLOCK_CHANNELS": 8, "num_warps": 4},
        {"batch": batch, "channels": channels, "dtype": _dtype_name(tokens), "steps": steps},
        tokens,
        *vectors,
        start,
        ahead if ahead is not None else tokens,
        gate,
        y,
        state,
        abs(clamp),
        steps,
        channels,
        start.stride(0),
        state.stride(0),
        gate.stride(0) if gate.dim() > 1 else 0,
        HAS_START=has_start,
        IS_REVERSED=is_reversed,
        MERGE=merge,
    )


def tile_ssm(
    tokens: Tensor,
    params: ScanParams,
    *,
    backward: ScanParams | None = None,
    start: Tensor | None = None,
    clamp: float = 1e4,
    direction: Direction = "forward",
    merge: Merge = "avg",
    merge_gate: Tensor | None = None,
    launcher: Launcher = UNTUNED,
) -> tuple[Tensor, Tensor]:
    """As `torch_ops.tile_ssm`; a state is carried in float32 however long the sequence is."""
    batch, steps, channels = tokens.shape
    tokens = tokens.contiguous()
    y = torch.empty_like(tokens)
    if direction != "bidirectional":
        state = torch.empty((batch, channels), dtype=tokens.dtype, device=tokens.device)
        _scan(
            tokens,
            params,
            y,
            state,
            start=start,
            clamp=clamp,
            is_reversed=direction == "backward",
            launcher=launcher,
        )
        return y, state
    states = torch.empty((batch, 2, channels), dtype=tokens.dtype, device=tokens.device)
    starts = (start, start) if start is None or start.dim() == 2 else start.unbind(1)
    ahead = torch.empty((batch, steps, channels), dtype=torch.float32, device=tokens.device)
    if merge == "gated" and merge_gate is None:
        merge_gate = torch.full((channels,), 0.5, dtype=torch.float32, device=tokens.device)
    _scan(tokens, params, ahead, states[:, 0], start=starts[0], clamp=clamp, is_reversed=False, launcher=launcher)
    _scan(
        tokens,
        backward or params,
        y,
        states[:, 1],
        start=starts[1],
        clamp=clamp,
        is_reversed=True,
        merge=_MERGES[merge],
        ahead=ahead,
        merge_gate=merge_gate,
        launcher=launcher,
    )
    return y, states


def fused_pack_op_unpack(
    feature: Tensor, indices: Tensor, tile: int, affine: Affine = DEFAULT_AFFINE, *, launcher: Launcher = UNTUNED
) -> Tensor:
    """As `torch_ops.fused_pack_op_unpack`: no tile may occur twice in a row."""
    batch, channels, height, width = feature.shape
    count = indices.shape[1]
    feature = feature.contiguous()
    merged = feature.clone()
    launcher.launch(
        FUSED,
        _tile_grid(batch * count, channels * tile * tile),
        _pixel_block(tile * tile),
        _map_bucket(feature, count, tile),
        feature,
        indices.contiguous(),
        merged,
        *affine,
        count,
        channels,
        height,
        width,
        TILE=tile,
    )
    return merged


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, *, launcher: Launcher = UNTUNED) -> Tensor:
    """As `torch_ops.attention`, without ever storing the scores."""
    batch, heads, steps, width = q.shape
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    is_float32 = q.dtype == torch.float32
    launcher.launch(
        ATTENTION,
        lambda meta: (triton.cdiv(steps, meta["BLOCK_M"]), batch * heads),
        {"BLOCK_M": 64, "BLOCK_N": 32, "num_warps": 4},
        {
            "batch": batch,
            "causal": int(causal),
            "dtype": _dtype_name(q),
            "head_dim": width,
            "heads": heads,
            "steps": steps,
        },
        q.contiguous(),
        k.contiguous(),
        v.contiguous(),
        out,
        math.log2(math.e) / math.sqrt(width),
        steps,
        width,
        # A product of matrices has at least 16 columns.
        BLOCK_WIDTH=max(16, triton.next_power_of_2(width)),
        IS_CAUSAL=causal,
        PRECISION="ieee" if is_float32 else "tf32",
    )
    return out


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6, *, launcher: Launcher = UNTUNED) -> Tensor:
    """As `torch_ops.rms_norm`."""
    hidden = x.shape[-1]
    rows = x.numel() // hidden
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    launcher.launch(
        RMS_NORM,
        lambda meta: (rows,),
        {"BLOCK_SIZE": min(4096, max(128, triton.next_power_of_2(hidden))), "num_warps": 8},
        {"dtype": _dtype_name(x), "hidden": hidden, "rows": rows},
        x.contiguous(),
        weight.contiguous(),
        y,
        hidden,
        eps,
    )
    return y


def path_kernels(launcher: Launcher) -> Kernels:
    """The kernels of an FF path."""

    def pack(feature: Tensor, indices: Tensor, tile: int) -> Tensor:
        return tile_pack(feature, indices, tile, launcher=launcher)

    def scan(tokens: Tensor, weights: PathWeights) -> tuple[Tensor, Tensor]:
        return tile_ssm(
            tokens,
            weights.ahead,
            backward=weights.back,
            clamp=torch_ops.TOKEN_CLAMP,
            direction="bidirectional",
            merge="gated",
            merge_gate=weights.merge_gate,
            launcher=launcher,
        )

    def unpack(base: Tensor, packed: Tensor, origins: Tensor) -> Tensor:
        return tile_unpack(base, packed, origins, launcher=launcher)

    def gate(
        base: Tensor, heavy: Tensor, boundary: Tensor, uncertainty: Tensor, numbers: Gate
    ) -> tuple[Tensor, Tensor]:
        return fusion_gate(base, heavy, boundary, uncertainty, numbers, launcher=launcher)

    return Kernels(pack, scan, unpack, gate)
