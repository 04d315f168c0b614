"""The PyTorch and Triton ops against vectors that another implementation produced, and against each other.

Without a GPU the Triton kernels run in Triton's interpreter, which knows neither races nor rounding of tensor cores.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="skipped: torch is not installed")
HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="skipped: triton is not installed")

from holdpoint import answers, workloads  # noqa: E402
from holdpoint.ops import launching, routing, torch_ops, triton_ops  # noqa: E402
from holdpoint.ops.torch_ops import Affine, Gate, PathWeights, ScanParams  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
NUMPY = tuple(map(int, pytest.importorskip("numpy").__version__.split(".")[:2]))
NEEDS_TRITON = pytest.mark.skipif(
    not HAS_GPU and NUMPY >= (2, 4), reason="skipped: no device, and Triton's interpreter needs NumPy below 2.4"
)
VECTORS = Path(__file__).parents[2] / "crates/ops/tests/data/apex-x-parity.safetensors"
DTYPES = {"F32": torch.float32, "F16": torch.float16, "I64": torch.int64, "I32": torch.int32, "I8": torch.int8}
MODULES = pytest.mark.parametrize(
    "ops", [pytest.param(torch_ops, id="torch"), pytest.param(triton_ops, id="triton", marks=NEEDS_TRITON)]
)


KERNELS = [value for value in vars(triton_ops).values() if isinstance(value, launching.Tunable)]


class Vectors:
    """Tensors and scalar parameters of the file, by name."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        self.header: dict[str, Any] = json.loads(data[8 : 8 + length])
        self.cases: dict[str, Any] = json.loads(self.header.pop("__metadata__")["cases"])
        self.data = memoryview(data)[8 + length :]

    def __getitem__(self, name: str) -> Any:
        entry = self.header[name]
        start, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(self.data[start:end]), dtype=DTYPES[entry["dtype"]])
        return flat.reshape(entry["shape"]).to(DEVICE)

    def children(self, prefix: str) -> list[str]:
        names = (name.removeprefix(prefix) for name in self.header if name.startswith(prefix))
        return sorted({name.split(".")[0] for name in names})


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    return Vectors(VECTORS)


def assert_close(got: Any, want: Any, tolerance: float) -> None:
    assert got.shape == want.shape
    torch.testing.assert_close(got.to(want.dtype), want, atol=tolerance, rtol=tolerance)


@MODULES
def test_pack_moves_every_value(vectors: Vectors, ops: Any) -> None:
    feature, ids = vectors["pack.feature"], vectors["pack.indices"]
    height, width = feature.shape[2:]
    tile = vectors.cases["pack"]["tile_size"]
    modes = [mode for mode in vectors.children("pack.") if mode not in ("feature", "indices")]
    assert {"unordered", "hilbert"} <= set(modes)
    for mode in modes:
        name = "none" if mode == "unordered" else mode
        rows = [routing.order(row, name, height // tile, width // tile) for row in ids.tolist()]
        indices = torch.tensor(rows, dtype=torch.int32, device=DEVICE)
        assert torch.equal(ops.tile_pack(feature, indices, tile), vectors[f"pack.{mode}.packed"]), mode
        if mode != "unordered":
            assert indices.tolist() == vectors[f"pack.{mode}.indices"].tolist()
            origins = torch_ops.tile_origins(indices, width, tile)
            assert origins.tolist() == vectors[f"pack.{mode}.origins"].tolist()


@MODULES
def test_unpack_lays_tiles_by_their_levels(vectors: Vectors, ops: Any) -> None:
    base, packed, origins = (vectors[f"unpack.{name}"] for name in ("base", "packed", "origins"))
    alpha = vectors.cases["unpack"]["blend_alpha"]
    keys = torch_ops.priority_keys(vectors["unpack_levels.levels"])
    assert torch.equal(ops.tile_unpack(base, packed, origins), vectors["unpack_levels.none.merged"])
    assert torch.equal(ops.tile_unpack(base, packed, origins, keys), vectors["unpack_levels.override.merged"])
    blended = ops.tile_unpack(base, packed, origins, keys, "blend", alpha)
    assert_close(blended, vectors["unpack_levels.blend.merged"], 1e-6)


@MODULES
@pytest.mark.parametrize("prefix", ["fusion", "fusion.custom"])
def test_the_gate_mixes_both_maps(vectors: Vectors, ops: Any, prefix: str) -> None:
    gate = Gate(**vectors.cases["fusion_custom"]) if prefix == "fusion.custom" else Gate()
    inputs = [vectors[f"fusion.{name}"] for name in ("base", "heavy", "boundary", "uncertainty")]
    fused, alpha = ops.fusion_gate(*inputs, gate)
    assert_close(fused, vectors[f"{prefix}.fused"], 1e-6)
    assert_close(alpha, vectors[f"{prefix}.alpha"], 1e-6)
    assert_close(ops.gate_alpha(*inputs[2:], gate), vectors[f"{prefix}.alpha"], 1e-6)


@MODULES
@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("forward", {"direction": "forward"}),
        ("backward", {"direction": "backward"}),
        *((f"bidirectional.{m}", {"direction": "bidirectional", "merge": m}) for m in ("sum", "avg", "gated")),
    ],
)
def test_the_scan_goes_each_way(vectors: Vectors, ops: Any, case: str, options: dict[str, Any]) -> None:
    params = ScanParams(*(vectors[f"ssm.{name}"] for name in ScanParams._fields))
    start = vectors["ssm.init_state" + ("_bidirectional" if "merge" in options else "")]
    gate, clamp = vectors["ssm.merge_gate"], vectors.cases["ssm"]["clamp_value"]
    y, state = ops.tile_ssm(vectors["ssm.tokens"], params, start=start, clamp=clamp, merge_gate=gate, **options)
    assert_close(y, vectors[f"ssm.{case}.y"], 1e-5)
    assert_close(state, vectors[f"ssm.{case}.state"], 1e-5)


@MODULES
def test_the_fused_op_changes_its_tiles_only(vectors: Vectors, ops: Any) -> None:
    case = dict(vectors.cases["fused"])
    tile = case.pop("tile_size")
    merged = ops.fused_pack_op_unpack(vectors["pack.feature"], vectors["fused.indices"], tile, Affine(**case))
    assert_close(merged, vectors["fused.merged"], 1e-6)


def ff_inputs(vectors: Vectors) -> list[Any]:
    worth = [vectors[f"ff.{name}"].double().tolist() for name in ("utilities", "split_utilities")]
    weights = tuple(
        PathWeights.from_module(lambda name, path=path: vectors[f"ff.weights.{path}.{name}"])  # type: ignore[misc]
        for path in ("l0_path", "l1_path")
    )
    return [vectors["ff.dense"], *worth, vectors["ff.boundary"], vectors["ff.uncertainty"], weights]


def ff_config(vectors: Vectors) -> routing.Config:
    case = vectors.cases["ff"]
    edge = math.isqrt(vectors["ff.dense"][0, 0].numel() // vectors["ff.utilities"].shape[1])
    limits = {name: case[name] for name in ("kmax_l0", "kmax_l1", "budget_b1", "budget_b2")}
    return routing.Config(tile_size_l0=edge, tile_size_l1=edge // 2, **limits)


def test_tiles_are_chosen_under_the_budget(vectors: Vectors) -> None:
    dense, utilities, split_utilities, *_ = ff_inputs(vectors)
    config, case = ff_config(vectors), vectors.cases["ff"]
    rows, columns = dense.shape[2] // config.tile_size_l0, dense.shape[3] // config.tile_size_l0
    both = zip(utilities, split_utilities, strict=True)
    routes = [routing.choose(worth, split, config, rows, columns) for worth, split in both]
    assert [route.l0 for route in routes] == case["selected_l0"]
    assert [route.l1 for route in routes] == case["selected_l1"]
    assert [sum(route.spent[at] for route in routes) for at in (0, 1)] == pytest.approx(
        [case["spent_b1"], case["spent_b2"]]
    )


def test_the_fixed_profile_takes_20_and_32_tiles() -> None:
    route = routing.choose([1.0] * 64, [1.0] * 64, routing.Config(), 8, 8)
    assert (len(route.l0), len(route.l1)) == (20, 32)
    assert route.spent == (16.000000000000004, 8.0)


@pytest.mark.parametrize("name", ["torch", pytest.param("triton", marks=NEEDS_TRITON)])
def test_the_ff_path_is_reproduced(vectors: Vectors, name: str) -> None:
    kernels = torch_ops.EAGER if name == "torch" else triton_ops.path_kernels(launching.UNTUNED)
    arguments = [*ff_inputs(vectors), ff_config(vectors), kernels]
    heavy, detail, alpha, states = torch_ops.ff_path(*arguments)
    assert_close(heavy, vectors["ff.heavy"], 1e-5)
    assert_close(detail, vectors["ff.detail"], 1e-5)
    assert_close(alpha, vectors["ff.alpha"], 1e-5)
    assert states.shape == (2, 2, 2, heavy.shape[1])
    assert bool(states.isfinite().all())


@MODULES
def test_attention_by_the_vectors(vectors: Vectors, ops: Any) -> None:
    cases = vectors.children("attention.")
    assert cases
    for case in cases:
        q, k, v = (vectors[f"attention.{case}.{name}"] for name in "qkv")
        causal = vectors.cases[f"attention.{case}"]["causal"]
        want = vectors[f"attention.{case}.out"]
        assert_close(ops.attention(q.float(), k.float(), v.float(), causal), want, 1e-5)
        assert_close(ops.attention(q, k, v, causal).float(), want, 1e-3)


def random_tensor(*shape: int, seed: int = 1, dtype: Any = torch.float16) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype).to(DEVICE)


@NEEDS_TRITON
def test_rms_norm_of_rows_longer_than_a_block() -> None:
    for shape in ((3, 5000), (2, 3, 130), (1, 1)):
        x, weight = random_tensor(*shape), random_tensor(shape[-1], seed=2)
        want = torch_ops.rms_norm(x.double(), weight.double(), 1e-5)
        for ops in (torch_ops, triton_ops):
            assert_close(ops.rms_norm(x, weight, 1e-5).double(), want, 2e-3)


@pytest.mark.parametrize("block", [config["BLOCK_PIX"] for config in triton_ops.TILE_PACK.configs])
def test_every_block_size_covers_the_tiles(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuner ranks by time, and would prefer a block size with which part of the answer is not computed."""
    sizes: Callable[[int], dict[str, int]] = lambda pixels: {"BLOCK_PIX": block, "num_warps": 4}  # noqa: E731
    monkeypatch.setattr(triton_ops, "_pixel_block", sizes)
    feature = random_tensor(2, 3, 32, 48)
    ids = torch.tensor([[0, 5, 3], [2, 1, 4]], dtype=torch.int32, device=DEVICE)
    packed = torch_ops.tile_pack(feature, ids, 16)
    origins = torch_ops.tile_origins(ids, 48, 16)
    assert torch.equal(triton_ops.tile_pack(feature, ids, 16), packed)
    assert torch.equal(
        triton_ops.tile_unpack(feature, -packed, origins), torch_ops.tile_unpack(feature, -packed, origins)
    )
    assert_close(
        triton_ops.fused_pack_op_unpack(feature, ids, 16), torch_ops.fused_pack_op_unpack(feature, ids, 16), 1e-3
    )


def test_a_launch_is_recorded_as_it_was() -> None:
    launcher = launching.Launcher()
    feature = random_tensor(1, 4, 16, 16)
    ids = torch.tensor([[0, 3]], dtype=torch.int32, device=DEVICE)
    with launcher.recording():
        triton_ops.tile_pack(feature, ids, 8, launcher=launcher)
    info = launcher.kernel_info()
    assert info is not None
    assert (info["op_name"], info["kernel_name"]) == ("tilepack", "_tilepack_kernel")
    assert info["shape_bucket"] == "batch=1|channels=4|dtype=fp16|height=16|kmax=2|tile_size=8|width=16"
    assert info["selected_config"] == {"BLOCK_PIX": 64, "num_warps": 4}
    assert (info["backend"], info["selection_source"], info["launches_per_call"]) == ("triton", "heuristic", 1)


COMPILE = """
from holdpoint.ops import launching, torch_ops, triton_ops
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

NAMES = {torch.float16: "*fp16", torch.float32: "*fp32", torch.int32: "*i32"}

class Compiler(launching.Launcher):
    def launch(self, kernel, grid, block, bucket, *args, **meta):
        for config in kernel.configs:
            sizes = launching.block_sizes(config)
            given = {**dict(zip(kernel.kernel.arg_names, args)), **meta, **sizes}
            types, constants = {}, {}
            for at, parameter in enumerate(kernel.kernel.params):
                value = given[parameter.name]
                if parameter.is_constexpr:
                    types[parameter.name], constants[(at,)] = "constexpr", value
                else:
                    types[parameter.name] = NAMES[value.dtype] if isinstance(value, torch.Tensor) else (
                        "fp32" if isinstance(value, float) else "i32")
            source = ASTSource(kernel.kernel, types, constants)
            triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": config["num_warps"]})
            print(kernel.name)

compiler = Compiler()
half = dict(dtype=torch.float16)
feature, ids = torch.zeros(1, 16, 16, 16, **half), torch.zeros(1, 2, dtype=torch.int32)
packed, proxy = torch.zeros(1, 2, 16, 8, 8, **half), torch.zeros(1, 1, 16, 16, **half)
origins, vector = torch.zeros(1, 2, 2, dtype=torch.int32), torch.zeros(16, **half)
tokens, heads = torch.zeros(1, 32, 16, **half), torch.zeros(1, 1, 64, 32, **half)
params = torch_ops.ScanParams(vector, vector, vector, vector)
triton_ops.tile_pack(feature, ids, 8, launcher=compiler)
triton_ops.tile_unpack(feature, packed, origins, launcher=compiler)
triton_ops.tile_unpack(feature, packed[:, :1], origins[:, :1], None, "blend", launcher=compiler)
triton_ops.gate_alpha(proxy, proxy, launcher=compiler)
triton_ops.fusion_gate(feature, feature, proxy, proxy, launcher=compiler)
triton_ops.tile_ssm(tokens, params, direction="bidirectional", merge="gated", launcher=compiler)
triton_ops.fused_pack_op_unpack(feature, ids, 8, launcher=compiler)
triton_ops.attention(heads, heads, heads, True, launcher=compiler)
triton_ops.rms_norm(tokens, vector, launcher=compiler)
"""


def test_every_kernel_compiles_for_a_device_that_is_not_here(tmp_path: Path) -> None:
    """The interpreter takes code that the compiler refuses. In a process of its own, which does not interpret."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    # Triton reads a kernel's source from its file; the script only launches.
    ran = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(set(ran.stdout.split())) == len(KERNELS)


SMALL = {
    "MAP": (2, 3, 32, 48),
    "BATCH": 2,
    "CHANNELS": 3,
    "HEIGHT": 32,
    "WIDTH": 48,
    "KMAX": 5,
    "STEPS": 140,
    "ATTENTION": (1, 2, 70, 32),
    "NORM": (2, 3, 130),
}


@NEEDS_TRITON
def test_every_workload_of_the_suite_gives_the_right_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = workloads.Registry()
    monkeypatch.setattr(workloads, "REGISTRY", registry)
    monkeypatch.setenv("HOLDPOINT_OPS_DEVICE", DEVICE)
    suite = importlib.import_module("holdpoint.ops.suite")
    for name, value in SMALL.items():
        monkeypatch.setattr(suite, name, value)
    names = set(registry.workloads)
    assert {"tile_ops.tilepack.dispatch", "end_to_end_infer.torch_eager", "attention.sdpa_math"} <= names
    skipped = set()
    for workload in registry.workloads.values():
        try:
            arguments = workload.draw(7)
        except workloads.Skip:
            skipped.add(workload.name)
            continue
        assert workload.reference is not None
        answer = answers.compare(workload.function(*arguments), workload.reference(*arguments), workload.tolerance)
        assert answer.passed, f"{workload.name}: {answer.first_bad}"
        kernel = workload.describe_kernel()
        assert (kernel is not None) == workload.name.endswith(("dispatch", "fastpath", "triton")), workload.name
    # Only what PyTorch has for GPUs alone may be missing.
    assert skipped <= {"attention.sdpa_cudnn", "attention.sdpa_efficient", "attention.sdpa_flash"}
