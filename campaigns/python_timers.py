"""The Python package's timers on a device, for `python3 -m holdpoint`: the same calls by each clock, warm and cold.

    python3 -m holdpoint suite campaigns/python_timers.py > timers.toml
    holdpoint run --suite timers.toml --workdir .
    holdpoint ab --base-suite timers.toml --head-suite timers.toml --workdir .     # no side may be slower

A copy that fits into the L2 cache must take longer cold than warm, and by the host's clock longer than by the device's.
"""

from typing import Any

import torch

import holdpoint


def draw_vector(seed: int, n: int) -> tuple[Any]:
    return (torch.randn(n, device="cuda", generator=torch.Generator("cuda").manual_seed(seed)),)


def draw_matrices(seed: int, n: int) -> tuple[Any, Any]:
    generator = torch.Generator("cuda").manual_seed(seed)
    return tuple(torch.randn(n, n, device="cuda", dtype=torch.float16, generator=generator) for _ in range(2))


def declare(timer: str, cache: str) -> None:
    @holdpoint.workload(
        name=f"copy.{timer}.{cache}",
        op="copy",
        inputs=draw_vector,
        params={"n": [1 << 12, 1 << 20, 1 << 26]},
        shape=lambda n: (n,),
        dtype="f32",
        work=lambda n: {"bytes": 8 * n},
        reference=lambda x: x,
        tolerance=(0.0, 0.0),
        timer=timer,
        cache=cache,
    )
    def copy(x: Any) -> Any:
        return x.clone()


for each in ("cuda_graph", "cuda_events"):
    declare(each, "warm")
    declare(each, "cold")
declare("host_monotonic", "warm")


@holdpoint.workload(
    inputs=draw_matrices,
    params={"n": [256, 4096]},
    shape=lambda n: (n, n),
    dtype="f16",
    work=lambda n: {"flops": 2 * n**3},
    reference=lambda a, b: a.double() @ b.double(),
    tolerance=lambda n: (2e-3 * n**0.5, 1e-2),
    timer="host_monotonic",
    variants=["eager", "compiled", "graphed"],
)
def matmul(a: Any, b: Any) -> Any:
    return a @ b
