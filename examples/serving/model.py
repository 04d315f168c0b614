"""A small language model in plain Python: bytes in, bytes out. Its weights come from a seed, so it talks nonsense, at the cost of a real one."""

import math
import random
from operator import mul

WIDTH = 48
VOCABULARY = 64


def matrix(rng: random.Random, rows: int, columns: int) -> list:
    return [[rng.gauss(0.0, columns**-0.5) for _ in range(columns)] for _ in range(rows)]


def times(rows: list, vector: list) -> list:
    return [sum(map(mul, row, vector)) for row in rows]


class Model:
    """A gated recurrence over embedded tokens, and a softmax over the next one."""

    def __init__(self, seed: int = 1) -> None:
        rng = random.Random(seed)
        self.embedding = matrix(rng, VOCABULARY, WIDTH)
        self.mix = matrix(rng, WIDTH, WIDTH)
        self.gate = matrix(rng, WIDTH, WIDTH)

    def generate(self, prompt: str, count: int):
        """Yields so many tokens after a prompt, the likeliest each time."""
        state = [0.0] * WIDTH
        token = 0
        for byte in prompt.encode():
            token = byte % VOCABULARY
            state = self.step(state, token)
        for _ in range(count):
            scores = times(self.embedding, state)
            token = max(range(VOCABULARY), key=scores.__getitem__)
            yield token
            state = self.step(state, token)

    def step(self, state: list, token: int) -> list:
        mixed = times(self.mix, [s + e for s, e in zip(state, self.embedding[token])])
        gates = times(self.gate, state)
        return [math.tanh(m) * (0.5 + 0.5 * math.tanh(g)) for m, g in zip(mixed, gates)]
