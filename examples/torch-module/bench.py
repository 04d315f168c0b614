"""A torch module, called as it is and through torch.compile."""

import copy

import torch

import holdpoint

# Threads that wait for each other are slow and uneven on a busy machine; with one, both sides can share a CPU.
torch.set_num_threads(1)

# The same weights in every process.
torch.manual_seed(0)
NETWORK = torch.nn.Sequential(
    torch.nn.Linear(256, 512),
    torch.nn.GELU(),
    torch.nn.LayerNorm(512),
    torch.nn.Linear(512, 256),
).eval()


def draw(seed: int, rows: int) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, 256, generator=generator),)


def in_double(x: torch.Tensor) -> torch.Tensor:
    """The right answer, to more digits than the timed one has."""
    with torch.no_grad():
        return copy.deepcopy(NETWORK).double()(x.double())


@holdpoint.workload(
    inputs=draw,
    params={"rows": [32, 512]},
    shape=lambda rows: (rows, 256),
    dtype="f32",
    work=lambda rows: {"flops": 4 * rows * 256 * 512, "items": rows, "item": "rows"},
    reference=in_double,
    tolerance=(1e-5, 1e-4),
    variants=["eager", "compiled"],
)
def forward(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return NETWORK(x)
