"""A worker that is right for every op that `holdpoint fuzz` can ask of one: honest.py EXAMPLES. It computes in 64 bits and rounds
to the element type in the end; written from docs/suites.md and docs/fuzz.md, not from holdpoint's own kernels."""

import math
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import kernel_worker as worker  # noqa: E402
import matmul  # noqa: E402, F401 (it registers the declared op)


def fusion_gate(shape: list, params: dict, base: list, heavy: list, boundary: list, uncertainty: list) -> list:
    """base + alpha (heavy - base), alpha a sigmoid of two proxies by pixel."""
    batch, channels, height, width = shape
    plane = height * width

    def softplus(x: float) -> float:
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))

    by_boundary = softplus(params.get("boundary_log_weight", 1.0))
    by_uncertainty, bias = softplus(params.get("uncertainty_log_weight", 1.0)), params.get("bias", 0.0)
    alpha = [1.0 / (1.0 + math.exp(-(by_boundary * b + by_uncertainty * u + bias)))
             for b, u in zip(boundary, uncertainty)]
    fused = []
    for b in range(batch):
        weights = alpha[b * plane : (b + 1) * plane]
        for at in range(b * channels * plane, (b + 1) * channels * plane, plane):
            rows = zip(base[at : at + plane], heavy[at : at + plane], weights)
            fused += [low + weight * (high - low) for low, high, weight in rows]
    return [fused, alpha]


def hilbert(column: int, row: int, side: int) -> int:
    """The place of a tile on the curve, as docs/fuzz.md has it."""
    place, half = 0, side // 2
    while half:
        right, down = int(column & half != 0), int(row & half != 0)
        place += half * half * ((3 * right) ^ down)
        if not down:
            if right:
                column, row = half - 1 - column, half - 1 - row
            column, row = row, column
        half //= 2
    return place


def ordered(ids: list, mode: str, rows: int, columns: int) -> list:
    side = 1
    while side < max(rows, columns):
        side *= 2
    keys = {
        "none": lambda r, c: 0,
        "hilbert": lambda r, c: hilbert(c, r, side),
        "multi_direction": lambda r, c: r * columns + c * rows,
        "l2r": lambda r, c: r * columns + c,
        "r2l": lambda r, c: r * columns + columns - 1 - c,
        "u2d": lambda r, c: c * rows + r,
        "d2u": lambda r, c: c * rows + rows - 1 - r,
    }
    return sorted(ids, key=lambda tile: keys[mode](tile // columns, tile % columns))


def tiles(shape: list, params: dict) -> tuple:
    """The edge of a tile, the tiles in their order, and the corner of each."""
    height, width = shape[2:]
    edge = params.get("tile_size", 16)
    rows, columns = height // edge, width // edge
    ids = params.get("indices", list(range(rows * columns)))
    ids = ordered(ids, params.get("order_mode", "hilbert"), rows, columns)
    return edge, ids, [(tile // columns * edge, tile % columns * edge) for tile in ids]


def lines(shape: list, edge: int, corner: tuple, sample: int):
    """Where each line of a tile begins in the map, channel by channel."""
    _, channels, height, width = shape
    y, x = corner
    for c in range(channels):
        for dy in range(edge):
            yield ((sample * channels + c) * height + y + dy) * width + x


def tile_pack(shape: list, params: dict, feature: list) -> list:
    """Tiles of a map one after the other, their ids and their corners."""
    edge, ids, corners = tiles(shape, params)
    packed = []
    for sample in range(shape[0]):
        for corner in corners:
            for at in lines(shape, edge, corner, sample):
                packed += feature[at : at + edge]
    return [packed, ids * shape[0], [place for corner in corners for place in corner] * shape[0]]


def tile_unpack(shape: list, params: dict, base: list, packed: list) -> list:
    """Tiles laid onto a map: by `levels` where there are any, else by priority, which then is an output as well."""
    batch, _, height, width = shape
    edge, ids, corners = tiles(shape, params)
    levels = params.get("levels")
    by_level = sorted(range(len(ids)), key=lambda k: levels[k]) if levels else range(len(ids))
    alpha = params.get("blend_alpha", 0.5) if params.get("overlap_mode", "override") == "blend" else None
    priority = params.get("level_priority", 1)
    merged, size = list(base), len(packed) // (batch * len(ids))
    priorities = [0] * (batch * height * width)
    for sample in range(batch):
        for k in by_level:
            if levels is None and priority < 0:
                continue
            at = (sample * len(ids) + k) * size
            for line in lines(shape, edge, corners[k], sample):
                incoming = packed[at : at + edge]
                if alpha is not None:
                    current = merged[line : line + edge]
                    incoming = [(1.0 - alpha) * old + alpha * new for old, new in zip(current, incoming)]
                merged[line : line + edge] = incoming
                at += edge
            for line in lines([1, 1, height, width], edge, corners[k], 0):
                line += sample * height * width
                priorities[line : line + edge] = [priority] * edge
    return [merged] if levels else [merged, priorities]


def fused_pack_op_unpack(shape: list, params: dict, feature: list) -> list:
    """(vs x + vb) max(0, gs x + gb) within the tiles, x elsewhere."""
    edge, _, corners = tiles(shape, params)
    vs, vb = params.get("value_scale", 1.0), params.get("value_bias", 0.0)
    gs, gb = params.get("gate_scale", 1.0), params.get("gate_bias", 0.0)

    def apply(x: float) -> float:
        gate = gs * x + gb
        return (vs * x + vb) * (gate if gate > 0.0 or math.isnan(gate) else 0.0)

    merged = list(feature)
    for sample in range(shape[0]):
        for corner in corners:
            for at in lines(shape, edge, corner, sample):
                merged[at : at + edge] = map(apply, feature[at : at + edge])
    return [merged]


for kernel in (fusion_gate, tile_pack, tile_unpack, fused_pack_op_unpack):
    worker.KERNELS[kernel.__name__] = kernel

if __name__ == "__main__":
    worker.main()
