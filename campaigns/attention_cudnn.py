"""Attention of cuDNN, through PyTorch, beside holdpoint's own kernels in one run.

    python3 campaigns/attention_cudnn.py > attention.toml
    PYTHONPATH=python holdpoint run --suite attention.toml --workdir . --output attention.json
"""

from __future__ import annotations

import itertools
from typing import Any

SHAPES = [(32, 8, 512, 64), (16, 16, 2048, 128), (4, 32, 4096, 128)]
DTYPES = {"f16": "float16", "bf16": "bfloat16"}
OURS = [*DTYPES, "e4m3"]


def name(shape: tuple[int, ...], dtype: str, causal: bool) -> str:
    return "_".join([dtype, *map(str, shape)] + ["causal"] * causal)


def print_suite() -> None:
    """All workloads: cuDNN's by this file as a worker, ours by the binary."""
    print('name = "attention-cudnn"\n\n[workers.cudnn]')
    print('command = ["python3", "-m", "holdpoint", "serve", "campaigns/attention_cudnn.py"]')
    for shape, dtype, causal in itertools.product(SHAPES, OURS, (False, True)):
        for worker in ["cuda", "cudnn"] if dtype in DTYPES else ["cuda"]:
            print(f'\n[[workload]]\nname = "{name(shape, dtype, causal)}_{worker}"\nop = "attention"\nworker = "{worker}"')
            print(f'shape = {list(shape)}\ndtype = "{dtype}"')
            if worker == "cuda":
                print(f"params = {{ causal = {str(causal).lower()} }}")


def declare(shape: tuple[int, ...], dtype: str, causal: bool) -> None:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import holdpoint

    def draw(seed: int) -> tuple[Any, ...]:
        generator = torch.Generator("cuda").manual_seed(seed)
        options: Any = {"generator": generator, "device": "cuda", "dtype": getattr(torch, DTYPES[dtype])}
        return tuple(torch.randn(shape, **options) for _ in range(3))

    def attention(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    holdpoint.workload(
        name=f"{name(shape, dtype, causal)}_cudnn", op="attention", timer="cuda_graph", inputs=draw, shape=shape, dtype=dtype
    )(attention)


if __name__ == "__main__":
    print_suite()
else:
    for _shape, _dtype, _causal in itertools.product(SHAPES, DTYPES, (False, True)):
        declare(_shape, _dtype, _causal)
