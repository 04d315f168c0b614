"""The built-in ops in PyTorch and Triton as workloads: `python3 -m holdpoint serve holdpoint.ops.suite`.

Names, shapes and inputs are those of Apex-X's GPU suite, fixed profile, fp16; `suites/gpu-torch.toml` lists them beside
the CUDA kernels. Answers are compared with the PyTorch version in float64 on the same inputs. As kernels for `holdpoint
fuzz` the Triton versions are served, with block sizes of the heuristic: tuning for every shape would take seconds.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import holdpoint

from . import kernels, routing

# Both take a second to import. They are loaded here, where they are installed, since the worker names their versions in
# its first answer.
with contextlib.suppress(ImportError):
    import torch
    import triton  # noqa: F401

if TYPE_CHECKING:
    from torch import Tensor

    from . import launching, torch_ops

BATCH, CHANNELS, HEIGHT, WIDTH = 1, 128, 128, 128
TILE, KMAX, STEPS = 8, 32, 256
ATTENTION = (32, 8, 512, 64)
NORM = (8, 1024, 4096)
# Seed of the FF path's weights, which are the same for all inputs.
WEIGHTS_SEED = 140
# (atol, rtol) of ops in fp16 and bf16, as Apex-X compares them; a gather must be exact.
EXACT, OP, OP_BF16 = (0.0, 0.0), (1e-3, 1e-2), (2e-3, 2e-2)
# Apex-X allows 3e-3 and 3e-2 end to end, and one value in 10 000 beyond. Here none may be, and a dozen layers
# that hand each other fp16 are up to 0.013 from float64 where values are small (maps of up to 11).
END_TO_END = (2e-2, 2e-2)
# By this variable a test runs the ops on the CPU, the Triton kernels in Triton's interpreter.
DEVICE = os.environ.get("HOLDPOINT_OPS_DEVICE", "cuda")

MAP = (BATCH, CHANNELS, HEIGHT, WIDTH)
MAP_SIZE, PLANE_SIZE = math.prod(MAP), BATCH * HEIGHT * WIDTH
PACKED_SIZE = BATCH * KMAX * CHANNELS * TILE * TILE
# Bytes of an element.
HALF = 2

Inputs = tuple[Any, ...]
Work = dict[str, int | str]


def torch_version() -> Any:
    from . import torch_ops

    return torch_ops


def triton_version() -> Any:
    if "triton" not in globals():
        raise holdpoint.Skip("triton_not_installed")
    from . import triton_ops

    return triton_ops


def generator(seed: int) -> torch.Generator:
    return torch.Generator(DEVICE).manual_seed(seed)


def normal(rng: torch.Generator, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
    return torch.randn(shape, generator=rng, device=DEVICE).to(dtype or torch.float16)


def uniform(rng: torch.Generator, *shape: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    return (torch.rand(shape, generator=rng, device=DEVICE) * scale + shift).half()


def tile_ids(rng: torch.Generator) -> Tensor:
    """Distinct ids in ascending order, drawn for each sample."""
    count = (HEIGHT // TILE) * (WIDTH // TILE)
    rows = [torch.randperm(count, generator=rng, device=DEVICE)[:KMAX].sort().values for _ in range(BATCH)]
    return torch.stack(rows).int()


class TritonCall:
    """A call of a Triton op with block sizes of Triton's tuner, and the kernel that it chose."""

    def __init__(self, call: Callable[..., object], inputs: Callable[[int], Inputs]) -> None:
        self.call, self.inputs = call, inputs

    def __call__(self, *args: object) -> object:
        return self.call(self.launcher, *args)

    @functools.cached_property
    def launcher(self) -> launching.Launcher:
        triton_version()
        from .launching import Launcher

        # The interpreter has no times to choose by.
        return Launcher(is_tuned=DEVICE != "cpu")

    @functools.cached_property
    def info(self) -> Mapping[str, object] | None:
        # The first call tunes, or finds the choice of an earlier process.
        with self.launcher.recording():
            self.call(self.launcher, *self.inputs(0))
        return self.launcher.kernel_info()

    def kernel(self) -> Mapping[str, object] | None:
        return self.info


def declare(
    name: str,
    op: str,
    versions: Mapping[str, Callable[..., object]],
    inputs: Callable[[int], Inputs],
    reference: Callable[..., object],
    *,
    shape: Sequence[int] = MAP,
    dtype: str = "f16",
    work: Work,
    tolerance: tuple[float, float] = OP,
    timer: str = "cuda_graph",
) -> None:
    """Declares a workload `name.version` for each version of an op."""
    for version, call in versions.items():
        holdpoint.workload(
            name=f"{name}.{version}",
            op=op,
            inputs=inputs,
            shape=shape,
            dtype=dtype,
            work=work,
            reference=reference,
            tolerance=tolerance,
            timer=timer if DEVICE != "cpu" else None,
            kernel=call.kernel if isinstance(call, TritonCall) else None,
        )(call)


def in_float64(function: Callable[..., object]) -> Callable[..., object]:
    """The same function on arguments in float64; integers stay what they are."""

    def is_float(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_floating_point()

    def call(*args: Any) -> object:
        return function(*(arg.double() if is_float(arg) else arg for arg in args))

    return call


# Tile pack.


def pack_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    return normal(rng, *MAP), tile_ids(rng)


def pack_torch(feature: Tensor, ids: Tensor) -> Tensor:
    return torch_version().tile_pack(feature, ids, TILE)


PACK_WORK: Work = {"bytes": 2 * PACKED_SIZE * HALF + 4 * BATCH * KMAX, "items": BATCH * KMAX, "item": "tiles"}
pack_triton = TritonCall(
    lambda launcher, *args: triton_version().tile_pack(*args, TILE, launcher=launcher), pack_inputs
)
declare(
    "tile_ops.tilepack",
    "tile_pack",
    {"reference": pack_torch, "dispatch": pack_triton},
    pack_inputs,
    in_float64(pack_torch),
    work=PACK_WORK,
    tolerance=EXACT,
)


# Tile unpack, tiles of three levels.


def unpack_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    base, packed = normal(rng, *MAP), normal(rng, BATCH, KMAX, CHANNELS, TILE, TILE)
    levels = torch.randint(0, 3, (BATCH, KMAX), generator=rng, device=DEVICE, dtype=torch.int32)
    return base, packed, tile_ids(rng), levels


def unpack(ops: Any, base: Tensor, packed: Tensor, ids: Tensor, levels: Tensor, **options: object) -> Tensor:
    origins = torch_version().tile_origins(ids, WIDTH, TILE)
    return ops.tile_unpack(base, packed, origins, torch_version().priority_keys(levels), **options)


def unpack_torch(*args: Tensor) -> Tensor:
    return unpack(torch_version(), *args)


UNPACK_WORK: Work = {
    "bytes": 2 * MAP_SIZE * HALF + 8 * BATCH * KMAX,
    "items": BATCH * KMAX,
    "item": "tiles",
}
unpack_triton = TritonCall(lambda launcher, *args: unpack(triton_version(), *args, launcher=launcher), unpack_inputs)
declare(
    "tile_ops.tileunpack",
    "tile_unpack",
    {"reference": unpack_torch, "dispatch": unpack_triton},
    unpack_inputs,
    in_float64(unpack_torch),
    work=UNPACK_WORK,
    tolerance=EXACT,
)


# Fusion gate.


def fusion_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    proxy = (BATCH, 1, HEIGHT, WIDTH)
    return normal(rng, *MAP), normal(rng, *MAP), uniform(rng, *proxy), uniform(rng, *proxy)


def fusion_torch(*args: Tensor) -> tuple[Tensor, Tensor]:
    fused: tuple[Tensor, Tensor] = torch_version().fusion_gate(*args)
    return fused


FUSION_WORK: Work = {
    "bytes": HALF * (3 * MAP_SIZE + 3 * PLANE_SIZE),
    "flops": 3 * MAP_SIZE + 7 * PLANE_SIZE,
    "items": MAP_SIZE,
    "item": "elements",
}
fusion_triton = TritonCall(
    lambda launcher, *args: triton_version().fusion_gate(*args, launcher=launcher), fusion_inputs
)
declare(
    "tile_ops.fusion_gate",
    "fusion_gate",
    {"reference": fusion_torch, "dispatch": fusion_triton},
    fusion_inputs,
    in_float64(fusion_torch),
    work=FUSION_WORK,
)


# Scan.


def scan_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    vectors = (
        uniform(rng, CHANNELS, scale=0.8, shift=0.1),
        uniform(rng, CHANNELS, scale=1.5, shift=0.05),
        uniform(rng, CHANNELS, scale=1.5, shift=0.05),
        normal(rng, CHANNELS) * 0.1,
    )
    return normal(rng, BATCH, STEPS, CHANNELS), *vectors


def scan_torch(tokens: Tensor, *vectors: Tensor) -> tuple[Tensor, Tensor]:
    ops = torch_version()
    scanned: tuple[Tensor, Tensor] = ops.tile_ssm(tokens, ops.ScanParams(*vectors))
    return scanned


SCAN_SIZE = BATCH * STEPS * CHANNELS
SCAN_WORK: Work = {
    "bytes": HALF * (2 * SCAN_SIZE + 4 * CHANNELS + BATCH * CHANNELS),
    "flops": 6 * SCAN_SIZE,
    "items": BATCH * STEPS,
    "item": "tokens",
}
scan_triton = TritonCall(
    lambda launcher, tokens, *vectors: triton_version().tile_ssm(
        tokens, torch_version().ScanParams(*vectors), launcher=launcher
    ),
    scan_inputs,
)
declare(
    "tilessm",
    "tile_ssm",
    {"torch_reference": scan_torch, "triton_dispatch": scan_triton},
    scan_inputs,
    in_float64(scan_torch),
    shape=(BATCH, STEPS, CHANNELS),
    work=SCAN_WORK,
)


# Fused pack, op and unpack.


def fused_torch(feature: Tensor, ids: Tensor) -> Tensor:
    return torch_version().fused_pack_op_unpack(feature, ids, TILE)


FUSED_WORK: Work = {
    "bytes": 2 * MAP_SIZE * HALF + 4 * BATCH * KMAX,
    "flops": 6 * PACKED_SIZE,
    "items": BATCH * KMAX,
    "item": "tiles",
}
fused_triton = TritonCall(
    lambda launcher, *args: triton_version().fused_pack_op_unpack(*args, TILE, launcher=launcher), pack_inputs
)
declare(
    "fused_stage1",
    "fused_pack_op_unpack",
    {"reference": fused_torch, "dispatch": fused_triton},
    pack_inputs,
    in_float64(fused_torch),
    work=FUSED_WORK,
)


# The FF path: tiles of 16 and 8 whatever TILE is, chosen on the host in every call.

PATH_CONFIG = routing.DEFAULT_CONFIG


def path_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    edge = PATH_CONFIG.tile_size_l0
    utilities = torch.rand((2, BATCH, (HEIGHT // edge) * (WIDTH // edge)), generator=rng, device=DEVICE).tolist()
    proxy = (BATCH, 1, HEIGHT, WIDTH)
    return normal(rng, *MAP), *utilities, uniform(rng, *proxy), uniform(rng, *proxy)


@functools.cache
def path_weights() -> tuple[torch_ops.PathWeights, torch_ops.PathWeights]:
    rng, weights = generator(WEIGHTS_SEED), torch_version().PathWeights
    return weights.draw(CHANNELS, rng, torch.float16), weights.draw(CHANNELS, rng, torch.float16)


def path_torch(*args: Any) -> tuple[Tensor, ...]:
    answer: tuple[Tensor, ...] = torch_version().ff_path(*args, path_weights())
    return answer


def path_float64(*args: Any) -> tuple[Tensor, ...]:
    weights = tuple(path.to(torch.float64) for path in path_weights())
    answer = in_float64(torch_version().ff_path)(*args, weights)
    assert isinstance(answer, tuple), "the path gives four tensors"
    return answer


def path_fast(launcher: launching.Launcher, *args: Any) -> tuple[Tensor, ...]:
    kernels = triton_version().path_kernels(launcher)
    answer: tuple[Tensor, ...] = torch_version().ff_path(*args, path_weights(), kernels=kernels)
    return answer


path_triton = TritonCall(path_fast, path_inputs)
declare(
    "end_to_end_infer",
    "ff_path",
    {"torch_eager": path_torch, "torch_triton_fastpath": path_triton},
    path_inputs,
    path_float64,
    work={"items": BATCH, "item": "frames"},
    tolerance=END_TO_END,
    timer="host_monotonic",
)


# Attention, by each of PyTorch's backends and by our kernel.


def attention_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    return normal(rng, *ATTENTION), normal(rng, *ATTENTION), normal(rng, *ATTENTION)


def sdpa(backend: str) -> tuple[Callable[..., object], Callable[[int], Inputs]]:
    """A call that PyTorch may answer with this backend only, and inputs that skip where it cannot."""

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(getattr(SDPBackend, backend)):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    @functools.cache
    def why_unavailable() -> str | None:
        try:
            call(*attention_inputs(0))
        except RuntimeError as error:
            return f"sdpa_unavailable: {error}"
        return None

    def inputs(seed: int) -> Inputs:
        if (reason := why_unavailable()) is not None:
            raise holdpoint.Skip(reason)
        return attention_inputs(seed)

    return call, inputs


def attention_float64(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch_version().attention(q.double(), k.double(), v.double())


ATTENTION_SIZE = math.prod(ATTENTION)
ATTENTION_WORK: Work = {
    "bytes": 4 * ATTENTION_SIZE * HALF,
    "flops": 4 * ATTENTION_SIZE * ATTENTION[2],
    "items": ATTENTION[0] * ATTENTION[2],
    "item": "tokens",
}
attention_triton = TritonCall(
    lambda launcher, *args: triton_version().attention(*args, launcher=launcher), attention_inputs
)
BACKENDS = {
    "sdpa_flash": "FLASH_ATTENTION",
    "sdpa_efficient": "EFFICIENT_ATTENTION",
    "sdpa_cudnn": "CUDNN_ATTENTION",
    "sdpa_math": "MATH",
}


def declare_attention(version: str, call: Callable[..., object], inputs: Callable[[int], Inputs]) -> None:
    declare(
        "attention",
        "attention",
        {version: call},
        inputs,
        attention_float64,
        shape=ATTENTION,
        work=ATTENTION_WORK,
    )


declare_attention("triton", attention_triton, attention_inputs)
for version, backend in BACKENDS.items():
    declare_attention(version, *sdpa(backend))


# RMS norm.


def norm_inputs(seed: int) -> Inputs:
    rng = generator(seed)
    return normal(rng, *NORM, dtype=torch.bfloat16), normal(rng, NORM[-1], dtype=torch.bfloat16)


def norm_torch(x: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x, (NORM[-1],), weight, eps=1e-6)


def norm_float64(x: Tensor, weight: Tensor) -> Tensor:
    return torch_version().rms_norm(x.double(), weight.double())


NORM_SIZE = math.prod(NORM)
NORM_WORK: Work = {
    "bytes": HALF * (2 * NORM_SIZE + NORM[-1]),
    "flops": 4 * NORM_SIZE,
    "items": NORM_SIZE // NORM[-1],
    "item": "rows",
}
norm_triton = TritonCall(lambda launcher, *args: triton_version().rms_norm(*args, launcher=launcher), norm_inputs)
declare(
    "rms_norm",
    "rms_norm",
    {"torch": norm_torch, "triton": norm_triton},
    norm_inputs,
    norm_float64,
    shape=NORM,
    dtype="bf16",
    work=NORM_WORK,
    tolerance=OP_BF16,
)


kernels.declare(triton_version, "torch" if DEVICE == "cpu" else "cuda")
