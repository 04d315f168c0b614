"""A worker in plain Python without dependencies: docs/worker-protocol.md in about sixty lines."""

import json
import random
import sys
import time

SIZE = 10_000
state: dict = {}


def dot() -> float:
    return sum(x * y for x, y in zip(state["x"], state["y"]))


def draw(seed: int) -> None:
    number = random.Random(seed).random
    state.update(seed=seed, x=[number() for _ in range(SIZE)], y=[number() for _ in range(SIZE)], out=None)


def answer(request: dict) -> dict:
    kind, name = request["type"], request.get("workload")
    if kind == "hello":
        return {"type": "hello", "protocol": 2, "name": "example", "version": "1",
                "timer": "host_monotonic", "clock_resolution_ns": 100}
    if kind == "list":
        return {"type": "workloads", "workloads": [{"name": "dot", "op": "dot", "shape": [SIZE], "dtype": "f64"}]}
    if kind == "prepare":
        draw(request["seed"])
        return {"type": "prepared", "workload": name}
    if kind == "run":
        if request["seed"] != state["seed"]:
            draw(request["seed"])
        elapsed_ns = []
        for _ in range(request["samples_count"]):
            start = time.perf_counter_ns()
            for _ in range(request["calls_per_sample"]):
                state["out"] = dot()
            elapsed_ns.append(time.perf_counter_ns() - start)
        return {"type": "samples", "workload": name, "calls_per_sample": request["calls_per_sample"],
                "elapsed_ns": elapsed_ns}
    if kind == "verify":
        got, want = state["out"] if state["out"] is not None else dot(), 0.0
        for x, y in zip(state["x"], state["y"]):
            want += x * y
        error = abs(got - want)
        return {"type": "verified", "workload": name, "answer": {"passed": error <= 1e-9 * abs(want),
                "values_count": 1, "max_abs_err": error, "max_rel_err": error / abs(want)}}
    if kind == "release":
        return {"type": "released", "workload": name}
    return {"type": "bye"}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
