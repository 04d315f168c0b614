# ruff: noqa: N803 (constants are in capitals, as Triton's users write them)
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
"""The built-in ops' Triton kernels: device code alone, launched by `triton_ops`.

Every kernel covers its output with whatever block size it is given: the grid is computed from the block size that was
chosen. Arithmetic is in float32. Comparisons are written so that NaN stays NaN where the op asks for that.
"""

import triton
import triton.language as tl


@triton.jit
def _tile_places(indices, slot, element, height, width, TILE: tl.constexpr):
    """Where elements (channel, y, x) of a packed tile lie in its sample of the map."""
    index = tl.load(indices + slot)
    columns = width // TILE
    pixel = element % (TILE * TILE)
    channel = element // (TILE * TILE)
    y = index // columns * TILE + pixel // TILE
    x = index % columns * TILE + pixel % TILE
    return (channel * height + y) * width + x


@triton.jit
def _tilepack_kernel(
    feature, indices, packed, kmax, channels, height, width, TILE: tl.constexpr, BLOCK_PIX: tl.constexpr
):
    """A block of one tile's channels and pixels, which lie one after the other in the answer."""
    slot = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK_PIX + tl.arange(0, BLOCK_PIX)
    size = channels * TILE * TILE
    inside = element < size
    places = _tile_places(indices, slot, element, height, width, TILE)
    sample = feature + slot // kmax * channels * height * width
    tl.store(packed + slot * size + element, tl.load(sample + places, mask=inside), mask=inside)


@triton.jit
def _tileunpack_priority_kernel(
    origins, keys, winner, kmax, height, width, TILE: tl.constexpr, BLOCK_PIX: tl.constexpr
):
    """The largest key of the tiles on each pixel."""
    slot = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * BLOCK_PIX + tl.arange(0, BLOCK_PIX)
    y = tl.load(origins + 2 * slot) + pixel // TILE
    x = tl.load(origins + 2 * slot + 1) + pixel % TILE
    plane = winner + slot // kmax * height * width
    tl.atomic_max(plane + y * width + x, tl.load(keys + slot), mask=pixel < TILE * TILE, sem="relaxed")


@triton.jit
def _tileunpack_scatter_kernel(
    packed, origins, keys, winner, merged, kmax, channels, height, width, TILE: tl.constexpr, BLOCK_PIX: tl.constexpr
):
    """A block of one tile, written where its key is the largest: keys of a sample differ, so one writes a pixel."""
    slot = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK_PIX + tl.arange(0, BLOCK_PIX)
    size = channels * TILE * TILE
    inside = element < size
    pixel = element % (TILE * TILE)
    y = tl.load(origins + 2 * slot) + pixel // TILE
    x = tl.load(origins + 2 * slot + 1) + pixel % TILE
    sample = slot // kmax
    place = y * width + x
    largest = tl.load(winner + sample * height * width + place, mask=inside, other=-1)
    is_on_top = inside & (largest == tl.load(keys + slot))
    target = merged + (sample * channels + element // (TILE * TILE)) * height * width + place
    tl.store(target, tl.load(packed + slot * size + element, mask=is_on_top), mask=is_on_top)


@triton.jit
def _tileunpack_blend_update_kernel(
    packed,
    origins,
    order,
    merged,
    rank,
    alpha,
    kmax,
    channels,
    height,
    width,
    TILE: tl.constexpr,
    BLOCK_PIX: tl.constexpr,
):
    """Blends one tile of each sample, the one that comes `rank`-th, into the map."""
    sample = tl.program_id(0).to(tl.int64)
    slot = sample * kmax + tl.load(order + sample * kmax + rank)
    element = tl.program_id(1) * BLOCK_PIX + tl.arange(0, BLOCK_PIX)
    size = channels * TILE * TILE
    inside = element < size
    pixel = element % (TILE * TILE)
    y = tl.load(origins + 2 * slot) + pixel // TILE
    x = tl.load(origins + 2 * slot + 1) + pixel % TILE
    target = merged + (sample * channels + element // (TILE * TILE)) * height * width + y * width + x
    current = tl.load(target, mask=inside).to(tl.float32)
    incoming = tl.load(packed + slot * size + element, mask=inside).to(tl.float32)
    tl.store(target, (1.0 - alpha) * current + alpha * incoming, mask=inside)


@triton.jit
def _gate_alpha(boundary, uncertainty, places, inside, by_boundary, by_uncertainty, bias):
    """Proxies that are not finite count as 0, plus infinity as 1."""
    b = tl.load(boundary + places, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(uncertainty + places, mask=inside, other=0.0).to(tl.float32)
    b = tl.where(b == float("inf"), 1.0, b)
    b = tl.where(tl.abs(b) < float("inf"), b, 0.0)
    u = tl.where(u == float("inf"), 1.0, u)
    u = tl.where(tl.abs(u) < float("inf"), u, 0.0)
    return 1.0 / (1.0 + tl.exp(-(by_boundary * b + by_uncertainty * u + bias)))


@triton.jit
def _fusiongate_alpha_kernel(
    boundary, uncertainty, alpha, by_boundary, by_uncertainty, bias, n_elements, BLOCK_SIZE: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = places < n_elements
    weight = _gate_alpha(boundary, uncertainty, places, inside, by_boundary, by_uncertainty, bias)
    tl.store(alpha + places, weight, mask=inside)


@triton.jit
def _fusiongate_fuse_kernel(
    base,
    heavy,
    boundary,
    uncertainty,
    fused,
    alpha,
    by_boundary,
    by_uncertainty,
    bias,
    channels,
    plane,
    BLOCK_SIZE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """A block of pixels in some channels. Alpha is computed again for each of them, cheaper than reading it."""
    sample = tl.program_id(2).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = pixel < plane
    places = sample * plane + pixel
    weight = _gate_alpha(boundary, uncertainty, places, inside, by_boundary, by_uncertainty, bias)
    tl.store(alpha + places, weight, mask=inside & (tl.program_id(1) == 0))
    for c in tl.static_range(CHANNELS):
        channel = tl.program_id(1) * CHANNELS + c
        at = (sample * channels + channel) * plane + pixel
        is_there = inside & (channel < channels)
        low = tl.load(base + at, mask=is_there).to(tl.float32)
        high = tl.load(heavy + at, mask=is_there).to(tl.float32)
        tl.store(fused + at, low + weight * (high - low), mask=is_there)


@triton.jit
def _fused_pack_op_unpack_kernel(
    feature,
    indices,
    merged,
    value_scale,
    value_bias,
    gate_scale,
    gate_bias,
    kmax,
    channels,
    height,
    width,
    TILE: tl.constexpr,
    BLOCK_PIX: tl.constexpr,
):
    """A block of one tile, from the map into its copy."""
    slot = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK_PIX + tl.arange(0, BLOCK_PIX)
    inside = element < channels * TILE * TILE
    places = _tile_places(indices, slot, element, height, width, TILE)
    at = slot // kmax * channels * height * width + places
    x = tl.load(feature + at, mask=inside).to(tl.float32)
    gate = gate_scale * x + gate_bias
    gate = tl.where(gate <= 0.0, 0.0, gate)
    tl.store(merged + at, (value_scale * x + value_bias) * gate, mask=inside)


@triton.jit
def _compose(decay, value, next_decay, next_value):
    """Two steps of s -> decay s + value as one."""
    return decay * next_decay, value * next_decay + next_value


@triton.jit
def _tilessm_scan_kernel(
    tokens,
    decay,
    input_gain,
    output_gain,
    state_bias,
    start,
    ahead,
    merge_gate,
    y,
    state,
    clamp,
    steps,
    channels,
    start_stride,
    state_stride,
    gate_stride,
    HAS_START: tl.constexpr,
    IS_REVERSED: tl.constexpr,
    MERGE: tl.constexpr,
    BLOCK_STEPS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
):
    """Some channels of a sample: blocks of steps one after the other, the steps of a block at once.

    MERGE: 0 writes the scan itself; 1, 2 and 3 merge it with the scan the other way in `ahead`: sum, mean, gated.
    """
    sample = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_CHANNELS + tl.arange(0, BLOCK_CHANNELS)
    known = channel < channels
    keep = tl.load(decay + channel, mask=known, other=0.5).to(tl.float32)
    keep = tl.where(keep < 1e-6, 1e-6, keep)
    keep = tl.where(keep > 1.0 - 1e-6, 1.0 - 1e-6, keep)
    gain = tl.load(input_gain + channel, mask=known, other=0.0).to(tl.float32)
    bias = tl.load(state_bias + channel, mask=known, other=0.0).to(tl.float32)
    gain_out = tl.load(output_gain + channel, mask=known, other=0.0).to(tl.float32)
    if MERGE == 3:
        gate = tl.load(merge_gate + sample * gate_stride + channel, mask=known, other=0.0).to(tl.float32)
        gate = tl.where(gate < 0.0, 0.0, gate)
        gate = tl.where(gate > 1.0, 1.0, gate)
    if HAS_START:
        carry = tl.load(start + sample * start_stride + channel, mask=known, other=0.0).to(tl.float32)
    else:
        carry = tl.zeros((BLOCK_CHANNELS,), tl.float32)
    row = tl.arange(0, BLOCK_STEPS)
    for first in range(0, steps, BLOCK_STEPS):
        step = first + row
        inside = (step < steps)[:, None] & known[None, :]
        if IS_REVERSED:
            step = steps - 1 - step
        at = (sample * steps + step)[:, None] * channels + channel[None, :]
        x = tl.load(tokens + at, mask=inside, other=0.0).to(tl.float32)
        x = tl.where(x != x, 0.0, x)
        x = tl.minimum(tl.maximum(x, -clamp), clamp)
        # Steps past the end neither decay nor add, so that the last row holds the last state.
        factor = tl.where(inside, keep[None, :] + tl.zeros_like(x), 1.0)
        value = tl.where(inside, (1.0 - keep)[None, :] * (gain[None, :] * x + bias[None, :]), 0.0)
        factor, value = tl.associative_scan((factor, value), 0, _compose)
        states = factor * carry[None, :] + value
        carry = tl.sum(tl.where(row[:, None] == BLOCK_STEPS - 1, states, 0.0), axis=0)
        out = gain_out[None, :] * states
        if MERGE > 0:
            other = tl.load(ahead + at, mask=inside, other=0.0)
            if MERGE == 1:
                out = other + out
            elif MERGE == 2:
                out = 0.5 * (other + out)
            else:
                out = gate[None, :] * other + (1.0 - gate)[None, :] * out
        tl.store(y + at, out, mask=inside)
    tl.store(state + sample * state_stride + channel, carry, mask=known)


@triton.jit
def _attention_kernel(
    q,
    k,
    v,
    out,
    scale,
    steps,
    width,
    BLOCK_WIDTH: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """A block of one head's queries; keys and values block by block, the largest score and the sum carried along."""
    head = tl.program_id(1).to(tl.int64) * steps * width
    query = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_WIDTH)
    is_wide = column < width
    rows = query[:, None] * width + column[None, :]
    inside = (query < steps)[:, None] & is_wide[None, :]
    queries = tl.load(q + head + rows, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_WIDTH), tl.float32)
    end = steps
    if IS_CAUSAL:
        end = tl.minimum(steps, (tl.program_id(0) + 1) * BLOCK_M)
    for first in range(0, end, BLOCK_N):
        key = first + tl.arange(0, BLOCK_N)
        places = key[:, None] * width + column[None, :]
        is_key = (key < steps)[:, None] & is_wide[None, :]
        keys = tl.load(k + head + places, mask=is_key, other=0.0)
        # In powers of two: the scale holds the logarithm's factor.
        scores = tl.dot(queries, tl.trans(keys), input_precision=PRECISION) * scale
        seen = (key < steps)[None, :]
        if IS_CAUSAL:
            seen = seen & (key[None, :] <= query[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=1))
        shrink = tl.exp2(largest - new_largest)
        weights = tl.exp2(scores - new_largest[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v + head + places, mask=is_key, other=0.0)
        sums = sums * shrink[:, None]
        sums += tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
        largest = new_largest
    tl.store(out + head + rows, sums / total[:, None], mask=inside)


@triton.jit
def _rms_norm_kernel(x, weight, y, hidden, eps, BLOCK_SIZE: tl.constexpr):
    """One row: a sum of squares over its blocks, then the answer; the second reading comes from the cache."""
    row = tl.program_id(0).to(tl.int64) * hidden
    squares = tl.zeros((BLOCK_SIZE,), tl.float32)
    for first in range(0, hidden, BLOCK_SIZE):
        at = first + tl.arange(0, BLOCK_SIZE)
        values = tl.load(x + row + at, mask=at < hidden, other=0.0).to(tl.float32)
        squares += values * values
    norm = 1.0 / tl.sqrt(tl.sum(squares) / hidden + eps)
    for first in range(0, hidden, BLOCK_SIZE):
        at = first + tl.arange(0, BLOCK_SIZE)
        values = tl.load(x + row + at, mask=at < hidden).to(tl.float32)
        scales = tl.load(weight + at, mask=at < hidden).to(tl.float32)
        tl.store(y + row + at, values * norm * scales, mask=at < hidden)
