"""Asks the server for a few answers, checks them, and prints tokens per second, time to first token and p99 between tokens."""

import json
import os
import socket
import sys
import time

from model import Model

PROMPTS = ["is it still right?", "is it still fast?", "and can we prove it?"]
TOKENS = 32


def ask(stream, prompt: str) -> tuple:
    """The tokens of an answer, and when each of them came, from the question on, in milliseconds."""
    start = time.perf_counter()
    stream.write(json.dumps({"prompt": prompt, "tokens": TOKENS}).encode() + b"\n")
    stream.flush()
    tokens, times_ms = [], []
    for _ in range(TOKENS):
        tokens.append(int(stream.readline()))
        times_ms.append((time.perf_counter() - start) * 1e3)
    return tokens, times_ms


first_ms, gaps_ms, total_ms = [], [], 0.0
with socket.create_connection(("127.0.0.1", int(os.environ["HOLDPOINT_PORT"]))) as connection:
    with connection.makefile("rwb") as stream:
        for prompt in PROMPTS:
            tokens, times_ms = ask(stream, prompt)
            if prompt == PROMPTS[0] and tokens != list(Model().generate(prompt, TOKENS)):
                sys.exit(f"wrong answer to {prompt!r}: {tokens}")
            first_ms.append(times_ms[0])
            gaps_ms += [after - before for before, after in zip(times_ms, times_ms[1:])]
            total_ms += times_ms[-1]

gaps_ms.sort()
print(json.dumps({
    "tokens_per_s": len(PROMPTS) * TOKENS / total_ms * 1e3,
    "first_token_ms": sorted(first_ms)[len(first_ms) // 2],
    "between_tokens_p99_ms": gaps_ms[int(0.99 * (len(gaps_ms) - 1))],
}))
