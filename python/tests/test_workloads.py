from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import holdpoint
from holdpoint import suites, workloads
from holdpoint.workloads import Registry


def test_a_declared_function_can_be_called_as_before(registry: Registry) -> None:
    @holdpoint.workload
    def double(x: int = 4) -> int:
        return 2 * x

    assert double(3) == 6
    assert registry.workloads["double"].function is double


def test_every_combination_of_params_is_a_workload(registry: Registry) -> None:
    @holdpoint.workload(
        params={"n": [10, 20], "mode": ["fast", "a b"]},
        inputs=lambda seed, n, mode: (n, mode),
        shape=lambda n, mode: (n,),
        work=lambda n, mode: {"flops": 2 * n},
    )
    def f(n: int, mode: str) -> None: ...

    assert list(registry.workloads) == ["f.n_10.mode_fast", "f.n_10.mode_a-b", "f.n_20.mode_fast", "f.n_20.mode_a-b"]
    last = registry.workloads["f.n_20.mode_a-b"]
    assert (last.shape, last.work, last.draw(1)) == ((20,), {"flops": 40}, (20, "a b"))


def test_without_inputs_the_params_are_the_arguments(registry: Registry) -> None:
    @holdpoint.workload(params={"n": [3]})
    def triple(n: int) -> int:
        return 3 * n

    workload = registry.workloads["triple.n_3"]
    assert workload.bind(workload.function)() == 9


def test_inputs_may_draw_from_the_global_generator(registry: Registry) -> None:
    holdpoint.workload(name="f", inputs=lambda seed: random.random())(lambda x: x)
    draw = registry.workloads["f"].draw
    assert draw(1) == draw(1) != draw(2)


def test_each_variant_is_a_workload(registry: Registry) -> None:
    holdpoint.workload(name="net", variants=["eager", "compiled"])(lambda: None)
    assert {name: each.variant for name, each in registry.workloads.items()} == {
        "net.eager": "eager",
        "net.compiled": "compiled",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timer": "sundial"}, "timer='sundial' is not known"),
        ({"cache": "cold"}, "needs a timer on the device"),
        ({"variants": ["slow"]}, "variants='slow' is not known"),
        ({"params": {"n": 3}}, "'n' needs a list of values"),
        ({"params": {"n": "abc"}}, "'n' needs a list of values"),
        ({"shape": (1, -1)}, "not a tuple of sizes"),
        ({"work": {"joules": 1}}, "not a dict with some of"),
        ({"tolerance": (1e-9,)}, r"not \(atol, rtol\)"),
        ({"dtype": 32}, "dtype: 32 is not a str"),
        ({"name": "x" * 201}, "no usable workload name"),
    ],
)
def test_a_bad_declaration_is_refused(registry: Registry, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        holdpoint.workload(**options)(lambda: None)
    assert registry.workloads == {}


def test_a_function_whose_call_does_no_work_is_refused(registry: Registry) -> None:
    async def coroutine() -> None: ...

    def generator() -> Any:
        yield 1

    for function in (coroutine, generator):
        with pytest.raises(ValueError, match="calling it does no work yet"):
            holdpoint.workload(function)


def test_a_name_is_declared_once(registry: Registry) -> None:
    holdpoint.workload(name="f")(lambda: None)
    with pytest.raises(ValueError, match="'f' is declared twice"):
        holdpoint.workload(name="f")(lambda: None)
    holdpoint.kernel("attention")(lambda: None)
    with pytest.raises(ValueError, match="'attention' is declared twice"):
        holdpoint.kernel("attention")(lambda: None)


def test_a_file_can_import_its_neighbours(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    (tmp_path / "neighbour_of_bench.py").write_text("SIZE = 7\n")
    (tmp_path / "bench_with_neighbour.py").write_text(
        "import holdpoint\nfrom neighbour_of_bench import SIZE\n"
        "holdpoint.workload(name='f', shape=SIZE)(lambda: None)\n"
    )
    assert workloads.load([str(tmp_path / "bench_with_neighbour.py")]).workloads["f"].shape == (7,)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.py: no such file"):
        workloads.load(["nowhere.py"])


def test_a_suite_has_all_workloads(registry: Registry) -> None:
    holdpoint.workload(name="f", params={"n": [1]}, shape=(2, 3), dtype="f32", timer="cuda_graph")(lambda n: None)
    assert suites.render(["bench.py"], registry) == (
        'schema_version = 1\nname = "bench"\n\n[workers.py]\n'
        'command = ["python3", "-m", "holdpoint", "serve", "bench.py"]\nunits_per_process = 8\n\n'
        '[[workload]]\nname = "f.n_1"\nworker = "py"\nop = "f"\nshape = [2, 3]\ndtype = "f32"\nparams = { n = 1 }\n'
    )
