"""A worker whose kernels `holdpoint fuzz` can check (docs/fuzz.md), in plain Python with no dependency.

To check your own kernel, add it to KERNELS; the rest stays the same. On a GPU, copy the inputs to the device before the clock
starts, and wait for the device before reading the clock.
"""

import json
import math
import mmap
import struct
import sys
import time
from array import array
from operator import mul

FORMATS = {"f32": "f", "f16": "e", "bf16": "H", "i32": "i"}
# Values from here on round to infinity.
OVERFLOW = {"f32": 2.0**128 - 2.0**103, "f16": 65520.0}


def attention(shape: list, params: dict, q: list, k: list, v: list) -> list:
    """softmax(q kᵀ / √D) v for each head of [B, H, S, D]."""
    steps, width = shape[2:]
    scale, out = 1.0 / math.sqrt(width), []
    for head in range(0, len(q), steps * width):
        end = head + steps * width
        keys = [k[at : at + width] for at in range(head, end, width)]
        columns = [v[head + d : end : width] for d in range(width)]
        for i in range(steps):
            query = q[head + i * width : head + (i + 1) * width]
            seen = i + 1 if params.get("causal") else steps
            scores = [scale * sum(map(mul, query, key)) for key in keys[:seen]]
            largest = max(scores)
            weights = [math.exp(score - largest) for score in scores]
            total = sum(weights)
            out += [sum(map(mul, weights, column)) / total for column in columns]
    return [out]


def tile_ssm(shape: list, params: dict, tokens: list, decay: list, input_gain: list, output_gain: list,
             state_bias: list, gate: list) -> list:
    """A recurrence over the tokens [B, K, C], channel by channel: the outputs and the last states."""
    batch, steps, channels = shape
    limit, merge = abs(params.get("clamp_value", 1e4)), params.get("merge_mode", "avg")
    direction = params.get("direction", "forward")
    ways = ["forward", "backward"] if direction == "bidirectional" else [direction]
    y, states = [None] * len(tokens), []
    for first in range(0, len(tokens), steps * channels):
        for way in ways:
            for c in range(channels):
                keep, state = min(max(decay[c], 1e-6), 1.0 - 1e-6), 0.0
                places = range(first + c, first + steps * channels, channels)
                for at in places if way == "forward" else reversed(places):
                    x = 0.0 if math.isnan(tokens[at]) else min(max(tokens[at], -limit), limit)
                    state = keep * state + (1.0 - keep) * (input_gain[c] * x + state_bias[c])
                    value = output_gain[c] * state
                    if y[at] is None:
                        y[at] = value
                    elif merge == "gated":
                        y[at] = gate[c] * y[at] + (1.0 - gate[c]) * value
                    else:
                        y[at] = (y[at] + value) * (0.5 if merge == "avg" else 1.0)
                states.append(state)
    return [y, states]


KERNELS = {"attention": attention, "tile_ssm": tile_ssm}


def read(memory: mmap.mmap, dtype: str, place: dict) -> list:
    """The tensor's values."""
    count, at = math.prod(place["shape"]), place["byte_offset"]
    if dtype == "bf16":  # The upper half of an f32.
        halves = struct.unpack_from(f"<{count}H", memory, at)
        return array("f", array("I", [half << 16 for half in halves]).tobytes()).tolist()
    return list(struct.unpack_from(f"<{count}{FORMATS[dtype]}", memory, at))


def write(memory: mmap.mmap, dtype: str, place: dict, values: list) -> None:
    """Writes every element of a tensor, and nothing else."""
    at, dtype = place["byte_offset"], place.get("dtype", dtype)
    if dtype == "bf16":  # Round to nearest, ties to even; NaN stays NaN.
        bits = array("I", array("f", values).tobytes())
        halves = [x >> 16 | 0x40 if x & 0x7FFFFFFF > 0x7F800000 else (x + 0x7FFF + (x >> 16 & 1)) >> 16 for x in bits]
        struct.pack_into(f"<{len(values)}H", memory, at, *halves)
    else:
        try:
            struct.pack_into(f"<{len(values)}{FORMATS[dtype]}", memory, at, *values)
        except OverflowError:
            stored = [math.copysign(math.inf, x) if abs(x) >= OVERFLOW[dtype] else x for x in values]
            struct.pack_into(f"<{len(values)}{FORMATS[dtype]}", memory, at, *stored)


def evaluate(request: dict) -> dict:
    """Makes the calls `repeats` times and writes their outputs."""
    op, dtype, shape, params = (request[key] for key in ("op", "dtype", "shape", "params"))
    if op not in KERNELS or dtype not in FORMATS:
        return {"type": "skipped", "workload": op, "reason": f"no kernel for {op} in {dtype}"}
    with open(request["file"], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        inputs = [[read(memory, dtype, place) for place in call["inputs"]] for call in request["calls"]]
        start = time.perf_counter_ns()
        for _ in range(request["repeats"]):
            outputs = [KERNELS[op](shape, params, *tensors) for tensors in inputs]
        elapsed_ns = time.perf_counter_ns() - start
        for call, tensors in zip(request["calls"], outputs):
            for place, values in zip(call["outputs"], tensors):
                write(memory, dtype, place, values)
    return {"type": "computed", "elapsed_ns": elapsed_ns}


def answer(request: dict) -> dict:
    if request["type"] == "hello":
        return {"type": "hello", "protocol": 2, "name": "kernels", "version": "1",
                "timer": "host_monotonic", "clock_resolution_ns": 100}
    if request["type"] == "list":  # Nothing to measure, only to check.
        return {"type": "workloads", "workloads": []}
    if request["type"] == "evaluate":
        return evaluate(request)
    if request["type"] == "bye":
        return {"type": "bye"}
    return {"type": "error", "message": f"{request['type']} is not known here"}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)


if __name__ == "__main__":
    main()
