"""Which workloads' calls take several inputs in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdpoint.inputs import BYTES_MAX, DRAW_NS_MAX, INPUTS, count_inputs, other_seeds

numpy = pytest.importorskip("numpy")
SHARED = [0]


def refill(seed: int) -> tuple[Any]:
    SHARED[0] = seed
    return (SHARED,)


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: ([seed] * 100, 3, None),
        lambda seed: (numpy.full(1000, seed), {"scale": 2.0}, (1, "words", b"bytes")),
        lambda seed: (seed, str(seed)),
    ],
)
def test_small_plain_data_that_is_quickly_drawn_is_rotated(draw: Callable[[int], Any]) -> None:
    assert count_inputs(draw, 1, lambda: 0) == INPUTS


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: (),
        lambda seed: (numpy.zeros(BYTES_MAX + 8, dtype="uint8"),),
        lambda seed: (list(range(10_000)),),
        lambda seed: (object(),),
        lambda seed: ("/tmp/of-every-seed", seed),
        refill,
    ],
)
def test_what_is_large_shared_or_not_plain_data_is_not(draw: Callable[[int], Any]) -> None:
    assert count_inputs(draw, 1, lambda: 0) == 1


def test_what_takes_long_to_draw_is_not() -> None:
    now_ns = [0]

    def draw(seed: int) -> tuple[int]:
        now_ns[0] += DRAW_NS_MAX + 1
        return (seed,)

    assert count_inputs(draw, 1, lambda: now_ns[0]) == 1


def test_other_seeds_are_the_same_everywhere_and_fit_every_generator() -> None:
    seeds = [other for seed in range(1000) for other in other_seeds(seed, INPUTS)]
    assert seeds == [other for seed in range(1000) for other in other_seeds(seed, INPUTS)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert other_seeds(2**64 - 1, 1) == []
