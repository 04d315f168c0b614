"""Choosing tiles under a budget, and their order: plain Python on the host. Ties go to the lower id."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

# Slack of every budget comparison, and the smallest cost.
EPS = 1e-9
SPLIT_OVERHEAD = 1.0


class Config(NamedTuple):
    """Tile sizes, limits and budgets of the FF path; budgets are per sample."""

    tile_size_l0: int = 16
    tile_size_l1: int = 8
    kmax_l0: int = 32
    kmax_l1: int = 64
    budget_b1: float = 16.0
    budget_b2: float = 8.0
    cost_heavy: float = 1.0
    cost_cheap: float = 0.2
    nesting: bool = True


DEFAULT_CONFIG = Config()


class Route(NamedTuple):
    """The chosen tiles of both levels: level 0 as accepted, level 1 along the curve; and what they cost."""

    l0: list[int]
    l1: list[int]
    spent: tuple[float, float]


def choose(
    utilities: Sequence[float], split_utilities: Sequence[float], config: Config, rows: int, columns: int
) -> Route:
    """The best tiles by utility per cost while the budget lasts, then the children of those best worth splitting."""
    cost = max(config.cost_heavy - config.cost_cheap, EPS)
    chosen: list[int] = []
    spent = 0.0
    for tile in sorted(range(rows * columns), key=lambda tile: (-utilities[tile] / cost, tile)):
        if len(chosen) >= config.kmax_l0:
            break
        if spent + cost <= config.budget_b1 + EPS:
            chosen.append(tile)
            spent += cost
    children: list[int] = []
    split_spent = 0.0
    if config.nesting and config.kmax_l1 > 0 and config.budget_b2 > 0.0:
        for tile in sorted(chosen, key=lambda tile: (-split_utilities[tile], tile)):
            if split_spent + SPLIT_OVERHEAD > config.budget_b2 + EPS or len(children) + 4 > config.kmax_l1:
                continue
            corner = tile // columns * 4 * columns + tile % columns * 2
            children += [corner, corner + 1, corner + 2 * columns, corner + 2 * columns + 1]
            split_spent += SPLIT_OVERHEAD
    return Route(chosen, hilbert_order(children, 2 * rows, 2 * columns), (spent, split_spent))


def _hilbert_place(column: int, row: int, side: int) -> int:
    """The place of a tile on the curve. Reflections are about the half, so coordinates may become negative."""
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


def order(ids: Sequence[int], mode: str, rows: int, columns: int) -> list[int]:
    """Tile ids in the order of a mode; equal ones keep theirs."""
    side = 1 << (max(rows, columns) - 1).bit_length()
    keys: dict[str, Callable[[int, int], int]] = {
        "none": lambda y, x: 0,
        "hilbert": lambda y, x: _hilbert_place(x, y, side),
        "multi_direction": lambda y, x: y * columns + x * rows,
        "l2r": lambda y, x: y * columns + x,
        "r2l": lambda y, x: y * columns + columns - 1 - x,
        "u2d": lambda y, x: x * rows + y,
        "d2u": lambda y, x: x * rows + rows - 1 - y,
    }
    if mode not in keys:
        raise ValueError(f"order mode {mode!r} is not known; modes: {', '.join(keys)}")
    return sorted(ids, key=lambda tile: keys[mode](tile // columns, tile % columns))


def hilbert_order(ids: Sequence[int], rows: int, columns: int) -> list[int]:
    return order(ids, "hilbert", rows, columns)
