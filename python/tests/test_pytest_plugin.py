"""The plug-in, in runs of pytest of its own: with pytest-benchmark switched off, and beside it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import holdpoint
from holdpoint.pytest_plugin import read_timer, show_seconds
from holdpoint.rounds import Options, Stats, calibrate, time_rounds

PLUGINS = ("-p", "holdpoint.pytest_plugin", "-p", "no:cacheprovider")
ALONE = (*PLUGINS, "-p", "no:benchmark")
QUICK = ("--benchmark-max-time=0", "--benchmark-min-rounds=3")

SUITE = """
import pytest

@pytest.fixture
def words():
    return ["b", "a"]

def test_sorted(benchmark, words):
    benchmark.extra_info["words"] = len(words)
    assert benchmark(sorted, words, reverse=True) == ["b", "a"]
    assert benchmark.stats.stats.rounds == len(benchmark.stats.stats.data)
    assert benchmark.stats["min"] <= benchmark.stats.stats.median <= benchmark.stats["max"]

@pytest.mark.benchmark(group="sums", min_rounds=7)
@pytest.mark.parametrize("n", [10, 20])
def test_sum(benchmark, n):
    assert benchmark(sum, range(n)) == n * (n - 1) // 2

def test_pedantic(benchmark):
    made, ended = [], []
    def setup():
        made.append(1)
        return (3,), {"scale": 2}
    def target(x, scale):
        return x * scale
    def teardown(x, scale):
        ended.append(x)
    answer = benchmark.pedantic(target, setup=setup, teardown=teardown, rounds=4, warmup_rounds=2)
    assert (answer, len(made), len(ended)) == (6, 6, 6)
    assert benchmark.stats.stats.rounds == 4

def test_plain():
    assert True
"""


@pytest.fixture(autouse=True)
def package_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of pytest find the package that is tested, not one that is installed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(holdpoint.__file__).parents[1]))


def run(pytester: pytest.Pytester, *arguments: str, suite: str = SUITE) -> pytest.RunResult:
    pytester.makepyfile(test_suite=suite)
    return pytester.runpytest_subprocess(*arguments)


def test_a_suite_of_pytest_benchmark_runs_unchanged(pytester: pytest.Pytester, tmp_path: Path) -> None:
    written = tmp_path / "out.json"
    result = run(pytester, *ALONE, *QUICK, f"--benchmark-json={written}")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["benchmark * median * spread * rounds * calls", "test_suite.py::test_sorted *"])
    rows = {row["fullname"]: row for row in json.loads(written.read_text())["benchmarks"]}
    assert set(rows) == {
        "test_suite.py::test_sorted",
        "test_suite.py::test_sum[10]",
        "test_suite.py::test_sum[20]",
        "test_suite.py::test_pedantic",
    }
    assert rows["test_suite.py::test_sorted"]["extra_info"] == {"words": 2}
    assert len(rows["test_suite.py::test_sorted"]["stats"]["data"]) == 3
    row = rows["test_suite.py::test_sum[20]"]
    assert (row["group"], row["params"], row["param"], row["stats"]["rounds"]) == ("sums", {"n": 20}, "20", 7)


def test_the_json_has_the_keys_of_pytest_benchmark(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    found: list[Any] = []
    for name, plugins in (("theirs", PLUGINS), ("ours", ALONE)):
        path = tmp_path / f"{name}.json"
        run(pytester, *plugins, *QUICK, f"--benchmark-json={path}").assert_outcomes(passed=5)
        found.append(json.loads(path.read_text()))
    theirs, ours = found
    assert "holdpoint" in ours["version"]
    assert "holdpoint" not in theirs["version"]
    assert set(theirs) == set(ours)
    row, own = theirs["benchmarks"][0], ours["benchmarks"][0]
    assert set(row) <= set(own)
    assert set(row["stats"]) <= set(own["stats"])


def test_beside_pytest_benchmark_there_is_only_the_fixture_holdpoint(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")
    suite = """
def test_it(holdpoint, benchmark):
    assert "pytest_benchmark" in type(benchmark).__module__
    assert "holdpoint" in type(holdpoint).__module__
    assert holdpoint(sum, [1]) == benchmark(sum, [1]) == 1
"""
    run(pytester, *PLUGINS, suite=suite).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        (["--benchmark-only"], {"passed": 4, "skipped": 1}),
        (["--benchmark-skip"], {"passed": 1, "skipped": 4}),
        (["--benchmark-warmup=off", "--benchmark-disable-gc", "--benchmark-timer=time.process_time"], {"passed": 5}),
        (["--benchmark-warmup", "--benchmark-warmup-iterations=3"], {"passed": 5}),
        (["--benchmark-sort=name", "--benchmark-columns=min", "--benchmark-verbose"], {"passed": 5}),
    ],
)
def test_the_options_of_pytest_benchmark_are_taken(
    pytester: pytest.Pytester, options: list[str], outcomes: dict[str, int]
) -> None:
    run(pytester, *ALONE, *QUICK, *options).assert_outcomes(**outcomes)


def test_disabled_benchmarks_are_called_once(pytester: pytest.Pytester, tmp_path: Path) -> None:
    suite = f"""
def test_it(benchmark):
    with open({str(tmp_path / "calls")!r}, "a") as file:
        benchmark(file.write, "x")
    assert benchmark.stats is None
"""
    run(pytester, *ALONE, "--benchmark-disable", suite=suite).assert_outcomes(passed=1)
    assert (tmp_path / "calls").read_text() == "x"


def test_what_holdpoint_does_otherwise_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, *ALONE, "--benchmark-compare")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--benchmark-compare: holdpoint's plug-in only times*gate --against*"])


def test_misuse_is_an_error_that_says_what_to_do(pytester: pytest.Pytester) -> None:
    suite = """
import pytest
def test_twice(benchmark):
    benchmark(sum, [1])
    with pytest.raises(RuntimeError, match="a test times one function"):
        benchmark(sum, [1])
def test_weave(benchmark):
    with pytest.raises(NotImplementedError, match="install pytest-benchmark"):
        benchmark.weave("a.b")
def test_iterations(benchmark):
    with pytest.raises(ValueError, match="iterations must be 1"):
        benchmark.pedantic(sum, setup=lambda: (([1],), {}), iterations=2)
def test_both(benchmark):
    with pytest.raises(TypeError, match="give one of both"):
        benchmark.pedantic(sum, args=([1],), setup=lambda: (([1],), {}))
"""
    run(pytester, *ALONE, *QUICK, suite=suite).assert_outcomes(passed=4)


def test_hooks_of_a_conftest_are_called(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makeconftest(
        "def pytest_benchmark_update_json(benchmarks, output_json):\n    output_json['mine'] = len(benchmarks)\n"
        "def pytest_benchmark_update_machine_info(config, machine_info):\n    machine_info['rack'] = 7\n"
    )
    path = tmp_path / "out.json"
    run(pytester, *ALONE, *QUICK, f"--benchmark-json={path}").assert_outcomes(passed=5)
    written = json.loads(path.read_text())
    assert (written["mine"], written["machine_info"]["rack"]) == (4, 7)


def test_a_test_fails_whose_head_is_slower_or_wrong(pytester: pytest.Pytester, binary: str) -> None:
    suite = """
def many(values):
    return max(sum(values) for _ in range(6))
def test_slower(holdpoint):
    holdpoint.compare(sum, many, inputs=(list(range(300)),))
def test_faster(holdpoint):
    assert holdpoint.compare(many, sum, inputs=(list(range(300)),)).verdict == "improved"
def test_wrong(holdpoint):
    holdpoint.compare(lambda: 1, lambda: 2)
"""
    result = run(pytester, *ALONE, suite=suite)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["regressed * many *", "*wrong_answer*got 2, want 1*"])


def test_the_harness_drives_the_plug_in(pytester: pytest.Pytester, binary: str) -> None:
    pytester.makepyfile(test_suite=SUITE)
    command = json.dumps([sys.executable, "-m", "pytest", *ALONE])
    (pytester.path / "perf.toml").write_text(
        f'schema_version = 1\nname = "mine"\n\n[harness]\nkind = "pytest-benchmark"\ncommand = {command}\n'
        'only = ["test_sum"]\n\n[measure]\nrounds_min = 1\nrounds_max = 1\n'
    )
    done = pytester.run(binary, "run", "--suite", "perf.toml")
    done.stdout.fnmatch_lines(["*test_sum*10*", "*test_sum*20*", "ok: 2 workloads measured*"])


class Clock:
    """A clock that moves by a microsecond at every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now


def test_calls_of_a_round_are_as_many_as_the_clock_needs() -> None:
    clock = Clock()

    def call() -> None:
        clock.now += 2e-6

    iterations, round_s = calibrate(call, (), {}, Options(min_time=1e-4, timer=clock))
    assert iterations * 2e-6 >= 1000e-6 * 0.9, "a thousand steps of the clock"
    assert round_s >= 1e-3


def test_a_slow_first_call_does_not_set_the_size_of_a_round() -> None:
    clock = Clock()
    costs = iter([0.005])

    def call() -> None:
        clock.now += next(costs, 2e-6)

    iterations, _ = calibrate(call, (), {}, Options(min_time=1e-4, timer=clock))
    assert iterations > 100


def test_rounds_fill_the_time_and_are_at_least_so_many() -> None:
    clock = Clock()

    def call() -> int:
        clock.now += 0.1
        return 4

    timed = time_rounds(call, (), {}, Options(max_time=1.0, timer=clock))
    assert (timed.answer, timed.iterations) == (4, 1)
    assert timed.stats.rounds in (9, 10)
    assert time_rounds(call, (), {}, Options(max_time=0.0, min_rounds=3, timer=clock)).stats.rounds == 3


def test_statistics_of_known_rounds() -> None:
    stats = Stats([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (stats.min, stats.max, stats.median, stats.mean, stats.total) == (1.0, 100.0, 3.0, 22.0, 110.0)
    assert (stats.q1, stats.q3, stats.iqr, stats.hd15iqr, stats.iqr_outliers) == (2.0, 4.0, 2.0, 4.0, 1)
    assert Stats([2.0]).to_json()["stddev"] == 0.0
    assert Stats([2.0]).iqr == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.500 s"), (0.0123, "12.30 ms"), (4.5e-7, "450.0 ns"), (2.5e-10, "0.250 ns"), (123, "123.0 s")],
)
def test_times_have_four_digits(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


def test_a_timer_is_a_function_or_its_name() -> None:
    assert read_timer("time.process_time") is time.process_time
    assert read_timer(time.monotonic) is time.monotonic
    with pytest.raises(pytest.UsageError, match="no such function"):
        read_timer("time.sundial")
