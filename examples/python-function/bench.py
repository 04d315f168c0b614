"""The workloads: `python3 -m holdpoint suite bench.py` prints a suite of them."""

import random

import words

import holdpoint


def draw(seed: int, length: int) -> tuple[str, int]:
    """A text of words that follow Zipf's law, drawn again for every seed."""
    rng = random.Random(seed)
    ranks = range(1, 2001)
    drawn = rng.choices(ranks, weights=[1 / rank for rank in ranks], k=length)
    return " ".join(f"Word{rank}" for rank in drawn), 10


def slow_but_sure(text: str, count: int) -> list[tuple[str, int]]:
    listed = text.lower().split()
    found = sorted({(-listed.count(word), word) for word in set(listed)})
    return [(word, -minus) for minus, word in found[:count]]


@holdpoint.workload(
    inputs=draw,
    params={"length": [1000, 10_000]},
    shape=lambda length: (length,),
    work=lambda length: {"items": length, "item": "words"},
    reference=slow_but_sure,
)
def most_common(text: str, count: int) -> list[tuple[str, int]]:
    return words.most_common(text, count)
