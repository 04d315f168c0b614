"""The built-in ops in plain PyTorch.

They are written to be obviously right, and are what the Triton kernels are compared with; in float64 they are the
oracle. None reads a value back to the host, so all but `ff_path`, which chooses its tiles there, can be recorded in a
CUDA graph. Must not import Triton.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from . import routing

Direction = Literal["forward", "backward", "bidirectional"]
Merge = Literal["sum", "avg", "gated"]
Overlap = Literal["override", "blend"]

# Shares of the old state that a scan may keep: at 0 or 1 it would not be a recurrence.
DECAY_MIN, DECAY_MAX = 1e-6, 1.0 - 1e-6
# Range of a learned decay, and the magnitude that tokens of the FF path are clamped to.
LEARNED_DECAY_MIN, LEARNED_DECAY_MAX = 1e-3, 0.999
TOKEN_CLAMP = 1e4
NORM_EPS = 1e-5


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type that sums and recurrences are computed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def tile_origins(indices: Tensor, width: int, tile: int) -> Tensor:
    """Corners (y, x) of tiles [..., 2], by their ids on the grid."""
    columns = width // tile
    return torch.stack((indices // columns, indices % columns), dim=-1) * tile


def _pixels(origins: Tensor, width: int, tile: int) -> Tensor:
    """Places of the tiles' pixels in a plane, [B, K, t, t]."""
    edge = torch.arange(tile, device=origins.device)
    y, x = origins.long().unbind(-1)
    rows = (y[..., None] + edge)[..., :, None]
    return rows * width + (x[..., None] + edge)[..., None, :]


def tile_pack(feature: Tensor, indices: Tensor, tile: int) -> Tensor:
    """Tiles [B, K, C, t, t] of a map [B, C, H, W], in the order of the ids [B, K]."""
    batch, channels, height, width = feature.shape
    count = indices.shape[1]
    places = _pixels(tile_origins(indices, width, tile), width, tile).reshape(batch, 1, -1)
    gathered = feature.reshape(batch, channels, height * width).gather(2, places.expand(-1, channels, -1))
    return gathered.reshape(batch, channels, count, tile, tile).transpose(1, 2).contiguous()


def priority_keys(levels: Tensor) -> Tensor:
    """Keys [B, K] in int32 by which tiles lie on each other: by level, then by position; the larger one is on top."""
    count = levels.shape[1]
    bits = max(1, (count - 1).bit_length())
    levels = levels.to(torch.int32)
    return ((levels - levels.min()) << bits) + torch.arange(count, device=levels.device, dtype=torch.int32)


def tile_unpack(
    base: Tensor,
    packed: Tensor,
    origins: Tensor,
    keys: Tensor | None = None,
    overlap: Overlap = "override",
    blend_alpha: float = 0.5,
) -> Tensor:
    """Lays tiles [B, K, C, t, t] onto a copy of a map, the smallest key first; without keys in their order."""
    batch, channels, height, width = base.shape
    count, tile = packed.shape[1], packed.shape[-1]
    if keys is not None:
        order = keys.argsort(dim=1)
        packed = packed.gather(1, order[:, :, None, None, None].expand_as(packed))
        origins = origins.gather(1, order[:, :, None].expand(-1, -1, 2))
    merged = base.reshape(batch, channels, height * width).clone()
    places = _pixels(origins, width, tile).reshape(batch, count, 1, tile * tile)
    for k in range(count):
        at, values = places[:, k].expand(-1, channels, -1), packed[:, k].reshape(batch, channels, -1)
        if overlap == "blend":
            exact = wide(base.dtype)
            current = merged.gather(2, at).to(exact)
            values = ((1.0 - blend_alpha) * current + blend_alpha * values.to(exact)).to(base.dtype)
        merged.scatter_(2, at, values)
    return merged.reshape(base.shape)


def priority_map(base: Tensor, origins: Tensor, tile: int, priority: int) -> Tensor:
    """The priority [B, H, W] that tiles leave where they lie; 0 elsewhere."""
    batch, _, height, width = base.shape
    places = _pixels(origins, width, tile).reshape(batch, -1)
    planes = torch.zeros(batch, height * width, dtype=torch.int32, device=base.device)
    planes.scatter_(1, places, torch.full_like(places, max(priority, 0), dtype=torch.int32))
    return planes.reshape(batch, height, width)


class Gate(NamedTuple):
    """The numbers of a fusion gate. They are called log weights, but pass through softplus."""

    boundary_log_weight: float = 1.0
    uncertainty_log_weight: float = 1.0
    bias: float = 0.0

    def weights(self) -> tuple[float, float, float]:
        return softplus(self.boundary_log_weight), softplus(self.uncertainty_log_weight), self.bias


DEFAULT_GATE = Gate()


def softplus(value: float) -> float:
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def gate_alpha(boundary: Tensor, uncertainty: Tensor, gate: Gate = DEFAULT_GATE) -> Tensor:
    """The weight of the heavy map by pixel. Proxies that are not finite count as 0, plus infinity as 1."""
    by_boundary, by_uncertainty, bias = gate.weights()
    exact = wide(boundary.dtype)
    clean = [p.to(exact).nan_to_num(nan=0.0, posinf=1.0, neginf=0.0) for p in (boundary, uncertainty)]
    return torch.sigmoid(by_boundary * clean[0] + by_uncertainty * clean[1] + bias)


def fusion_gate(
    base: Tensor, heavy: Tensor, boundary: Tensor, uncertainty: Tensor, gate: Gate = DEFAULT_GATE
) -> tuple[Tensor, Tensor]:
    """base + alpha (heavy - base), and alpha [B, 1, H, W]."""
    alpha = gate_alpha(boundary, uncertainty, gate)
    low, high = base.to(alpha.dtype), heavy.to(alpha.dtype)
    return (low + alpha * (high - low)).to(base.dtype), alpha.to(base.dtype)


class ScanParams(NamedTuple):
    """A scan's vectors, one number per channel."""

    decay: Tensor
    input_gain: Tensor
    output_gain: Tensor
    state_bias: Tensor


def _scan(tokens: Tensor, params: ScanParams, start: Tensor | None, clamp: float, is_reversed: bool) -> list[Tensor]:
    exact = wide(tokens.dtype)
    decay, input_gain, output_gain, state_bias = (vector.to(exact) for vector in params)
    decay = decay.clamp(DECAY_MIN, DECAY_MAX)
    limit = abs(clamp)
    clean = tokens.to(exact).nan_to_num(nan=0.0, posinf=limit, neginf=-limit).clamp(-limit, limit)
    inputs = (1.0 - decay) * (input_gain * clean + state_bias)
    state = torch.zeros_like(inputs[:, 0]) if start is None else start.to(exact)
    steps = range(tokens.shape[1])
    states = [state] * len(steps)
    for k in reversed(steps) if is_reversed else steps:
        state = decay * state + inputs[:, k]
        states[k] = state
    return [output_gain * torch.stack(states, dim=1), state]


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
) -> tuple[Tensor, Tensor]:
    """A recurrence over tokens [B, K, C], channel by channel: outputs [B, K, C] and last states [B, C], or [B, 2, C].

    The backward scan has the forward one's parameters unless it is given its own.
    """
    if direction != "bidirectional":
        y, state = _scan(tokens, params, start, clamp, direction == "backward")
        return y.to(tokens.dtype), state.to(tokens.dtype)
    starts = (start, start) if start is None or start.dim() == 2 else start.unbind(1)
    ahead, ahead_state = _scan(tokens, params, starts[0], clamp, False)
    back, back_state = _scan(tokens, backward or params, starts[1], clamp, True)
    if merge == "gated":
        gate = torch.tensor(0.5, device=tokens.device) if merge_gate is None else merge_gate
        gate = gate.to(ahead.dtype).clamp(0.0, 1.0)
        y = gate * ahead + (1.0 - gate) * back
    else:
        y = (ahead + back) * (0.5 if merge == "avg" else 1.0)
    return y.to(tokens.dtype), torch.stack((ahead_state, back_state), dim=1).to(tokens.dtype)


class Affine(NamedTuple):
    """The numbers of the fused op: (value_scale x + value_bias) max(0, gate_scale x + gate_bias)."""

    value_scale: float = 1.0
    value_bias: float = 0.0
    gate_scale: float = 1.0
    gate_bias: float = 0.0


DEFAULT_AFFINE = Affine()


def fused_pack_op_unpack(feature: Tensor, indices: Tensor, tile: int, affine: Affine = DEFAULT_AFFINE) -> Tensor:
    """The affine gate on every pixel of the tiles, other pixels as they are. No tile may occur twice in a row."""
    packed = tile_pack(feature, indices, tile)
    x = packed.to(wide(feature.dtype))
    gate = torch.relu(affine.gate_scale * x + affine.gate_bias)
    changed = ((affine.value_scale * x + affine.value_bias) * gate).to(feature.dtype)
    return tile_unpack(feature, changed, tile_origins(indices, feature.shape[3], tile))


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """softmax(q kᵀ / √D) v of [B, H, S, D], step by step; scores of float16 are kept in float32."""
    exact = wide(q.dtype)
    scores = (q.to(exact) @ k.to(exact).transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return (torch.softmax(scores, dim=-1) @ v.to(exact)).to(q.dtype)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """x / √(mean(x²) + eps) · weight, the mean over the last dimension."""
    exact = x.to(wide(x.dtype))
    norm = torch.rsqrt(exact.square().mean(dim=-1, keepdim=True) + eps)
    return (exact * norm * weight.to(exact.dtype)).to(x.dtype)


Layer = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class PathWeights:
    """The parameters of one heavy path; layers are weight and bias."""

    ahead: ScanParams
    back: ScanParams
    merge_gate: Tensor
    token_norm: Layer
    mlp0: Layer
    mlp2: Layer
    depthwise: Layer
    pointwise: Layer
    norm: Layer
    gate: Gate

    @classmethod
    def from_module(cls, get: Callable[[str], Tensor]) -> "PathWeights":
        """From a module's parameters, by their names."""

        def scan(name: str) -> ScanParams:
            raw = [get(f"scan_bidirectional.{name}.{part}") for part in _RAW_SCAN]
            share = torch.sigmoid(raw[0].to(torch.float64))
            decay = LEARNED_DECAY_MIN + (LEARNED_DECAY_MAX - LEARNED_DECAY_MIN) * share
            gains = [functional.softplus(vector.to(torch.float64)) + 1e-6 for vector in raw[1:3]]
            return ScanParams(decay.float(), gains[0].float(), gains[1].float(), raw[3].float())

        def layer(name: str) -> Layer:
            return get(f"{name}.weight"), get(f"{name}.bias")

        return cls(
            ahead=scan("forward_scan"),
            back=scan("backward_scan"),
            merge_gate=torch.sigmoid(get("scan_bidirectional.merge_gate_logit").float()),
            token_norm=layer("film.token_norm"),
            mlp0=layer("film.mlp.0"),
            mlp2=layer("film.mlp.2"),
            depthwise=layer("refine.depthwise"),
            pointwise=layer("refine.pointwise"),
            norm=layer("refine.norm"),
            gate=Gate(*(float(get(f"fusion_gate.{name}")) for name in Gate._fields)),
        )

    @classmethod
    def draw(cls, channels: int, generator: torch.Generator, dtype: torch.dtype) -> "PathWeights":
        """Layers uniform within 1/√fan-in, the usual default; scans, norms and gate at their start."""

        def layer(shape: Sequence[int]) -> Layer:
            bound = 1.0 / math.sqrt(math.prod(shape[1:]))
            sizes = (shape, shape[:1])
            drawn = [torch.rand(tuple(size), generator=generator, device=generator.device) for size in sizes]
            weight, bias = (((2.0 * values - 1.0) * bound).to(dtype) for values in drawn)
            return weight, bias

        def norm(size: int) -> Layer:
            ones = torch.ones(size, device=generator.device, dtype=dtype)
            return ones, torch.zeros_like(ones)

        zeros = torch.zeros(channels, device=generator.device)
        middle = (LEARNED_DECAY_MIN + LEARNED_DECAY_MAX) / 2.0
        gain = torch.full_like(zeros, softplus(0.0) + 1e-6)
        scan = ScanParams(torch.full_like(zeros, middle), gain, gain, zeros)
        return cls(
            ahead=scan,
            back=scan,
            merge_gate=torch.full_like(zeros, 0.5),
            token_norm=norm(channels),
            mlp0=layer((channels, channels)),
            mlp2=layer((2 * channels, channels)),
            depthwise=layer((channels, 1, 3, 3)),
            pointwise=layer((2 * channels, channels, 1, 1)),
            norm=norm(2 * channels),
            gate=Gate(),
        )

    def to(self, dtype: torch.dtype) -> "PathWeights":
        """The layers in another type; scans stay as they are."""
        names = ("token_norm", "mlp0", "mlp2", "depthwise", "pointwise", "norm")
        layers = {name: tuple(part.to(dtype) for part in getattr(self, name)) for name in names}
        return PathWeights(**{**self.__dict__, **layers})


_RAW_SCAN = ("decay_logit", "input_gain_raw", "output_gain_raw", "state_bias")


class Kernels(NamedTuple):
    """The ops that an FF path is made of, in one implementation."""

    pack: Callable[[Tensor, Tensor, int], Tensor]
    scan: Callable[[Tensor, PathWeights], tuple[Tensor, Tensor]]
    unpack: Callable[[Tensor, Tensor, Tensor], Tensor]
    gate: Callable[[Tensor, Tensor, Tensor, Tensor, Gate], tuple[Tensor, Tensor]]


def _scan_tokens(tokens: Tensor, weights: PathWeights) -> tuple[Tensor, Tensor]:
    return tile_ssm(
        tokens,
        weights.ahead,
        backward=weights.back,
        clamp=TOKEN_CLAMP,
        direction="bidirectional",
        merge="gated",
        merge_gate=weights.merge_gate,
    )


EAGER = Kernels(tile_pack, _scan_tokens, tile_unpack, fusion_gate)


def _film(tokens: Tensor, weights: PathWeights) -> tuple[Tensor, Tensor]:
    """Scale and shift [B, K, C] of every tile and channel."""
    clean = tokens.nan_to_num(nan=0.0, posinf=TOKEN_CLAMP, neginf=-TOKEN_CLAMP)
    hidden = functional.layer_norm(clean, clean.shape[-1:], *weights.token_norm, eps=NORM_EPS)
    hidden = functional.silu(functional.linear(hidden, *weights.mlp0))
    gamma, beta = functional.linear(hidden, *weights.mlp2).chunk(2, dim=-1)
    return torch.tanh(gamma), beta


def _refine(tiles: Tensor, weights: PathWeights) -> Tensor:
    """Convolutions of each tile [N, C, t, t] by itself, gated, added to it."""
    weight, bias = weights.depthwise
    mixed = functional.conv2d(tiles, weight, bias, padding=1, groups=tiles.shape[1])
    mixed = functional.conv2d(mixed, *weights.pointwise)
    value, gate = functional.group_norm(mixed, 1, *weights.norm, eps=NORM_EPS).chunk(2, dim=1)
    return tiles + value * torch.relu(gate)


def _heavy_path(
    dense: Tensor,
    ids: Sequence[int],
    tile: int,
    proxies: tuple[Tensor, Tensor],
    weights: PathWeights,
    kernels: Kernels,
) -> tuple[Tensor, Tensor, Tensor]:
    """One level on one sample [1, C, H, W]: the map with its tiles refined, alpha and the last states [1, 2, C]."""
    _, channels, height, width = dense.shape
    ordered = routing.hilbert_order(ids, height // tile, width // tile)
    indices = torch.tensor([ordered], dtype=torch.int32).to(dense.device, non_blocking=True)
    packed = kernels.pack(dense, indices, tile)
    exact = wide(dense.dtype)
    tokens = packed.to(exact).mean(dim=(-1, -2))
    mixed, states = kernels.scan(tokens, weights)
    gamma, beta = _film(mixed.to(dense.dtype), weights)
    modulated = (1.0 + gamma)[..., None, None] * packed + beta[..., None, None]
    refined = _refine(modulated.reshape(-1, channels, tile, tile), weights).reshape(packed.shape)
    heavy = kernels.unpack(dense, refined, tile_origins(indices, width, tile))
    fused, alpha = kernels.gate(dense, heavy, *proxies, weights.gate)
    return fused, alpha, states


def ff_path(
    dense: Tensor,
    utilities: Sequence[Sequence[float]],
    split_utilities: Sequence[Sequence[float]],
    boundary: Tensor,
    uncertainty: Tensor,
    weights: tuple[PathWeights, PathWeights],
    config: routing.Config = routing.DEFAULT_CONFIG,
    kernels: Kernels = EAGER,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two levels of the heavy path on tiles chosen under a budget, sample by sample.

    Returns the map, its difference to the input of the last path that ran, that path's alpha, and the states
    [B, 2 paths, 2 directions, C].
    """
    height, width = dense.shape[2:]
    samples = []
    for b, (worth, split_worth) in enumerate(zip(utilities, split_utilities, strict=True)):
        route = routing.choose(worth, split_worth, config, height // config.tile_size_l0, width // config.tile_size_l0)
        before, proxies = dense[b : b + 1], (boundary[b : b + 1], uncertainty[b : b + 1])
        states = torch.zeros(1, 2, 2, dense.shape[1], dtype=wide(dense.dtype), device=dense.device)
        if not route.l0:
            alpha = gate_alpha(*proxies, weights[0].gate).to(dense.dtype)
            samples.append((before, torch.zeros_like(before), alpha, states))
            continue
        after, alpha, states[:, 0] = _heavy_path(before, route.l0, config.tile_size_l0, proxies, weights[0], kernels)
        if route.l1:
            before = after
            after, alpha, states[:, 1] = _heavy_path(
                before, route.l1, config.tile_size_l1, proxies, weights[1], kernels
            )
        samples.append((after, after - before, alpha, states))
    heavy, detail, alpha, states = (torch.cat(parts) for parts in zip(*samples, strict=True))
    return heavy, detail, alpha, states
