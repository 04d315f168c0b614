"""The pytest plug-in: a fixture `holdpoint`, and where pytest-benchmark is not in use, a fixture `benchmark`.

Options, markers and JSON are those of pytest-benchmark, as far as timing goes, so its suites run unchanged and
`[harness] kind = "pytest-benchmark"` drives them. Storing and comparing results is left to holdpoint.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from . import pytest_drop_in
from .about import __version__
from .pytest_fixture import Benchmark, open_benchmark
from .rounds import Options

FIXTURES = ("benchmark", "holdpoint")
# pytest-benchmark's options about timing: name, its type, and its help.
TIMING: tuple[tuple[str, Any, str], ...] = (
    ("min-rounds", int, "fewest rounds of each benchmark (5)"),
    ("min-time", float, "shortest round in seconds (0.000005)"),
    ("max-time", float, "seconds for each benchmark, unless min-rounds need more (1.0)"),
    ("warmup-iterations", int, "most calls of a warm-up (100000)"),
    ("timer", str, "clock, as MODULE.FUNCTION (time.perf_counter)"),
)
SWITCHES = (
    ("disable-gc", "switch garbage collection off while timing"),
    ("skip", "skip tests with a benchmark"),
    ("only", "run only tests with a benchmark"),
    ("disable", "call each function once, untimed"),
    ("enable", "undo --benchmark-disable of the settings"),
)
# Looks of pytest-benchmark's tables and details of its storage, which have no meaning here.
IGNORED = ("sort", "group-by", "columns", "name", "time-unit", "calibration-precision", "storage", "netrc")
IGNORED_SWITCHES = ("verbose", "quiet", "save-data")
# What holdpoint does in another way.
REPLACED = ("save", "autosave", "compare", "compare-fail", "histogram", "cprofile", "cprofile-loops", "cprofile-dump")


class HookSpecs:
    """pytest-benchmark's hooks, which a conftest.py may implement. Those about its storage are never called."""

    def pytest_benchmark_generate_machine_info(self, config: Any) -> Any: ...
    def pytest_benchmark_update_machine_info(self, config: Any, machine_info: Any) -> Any: ...
    def pytest_benchmark_generate_commit_info(self, config: Any) -> Any: ...
    def pytest_benchmark_update_commit_info(self, config: Any, commit_info: Any) -> Any: ...
    def pytest_benchmark_group_stats(self, config: Any, benchmarks: Any, group_by: Any) -> Any: ...
    def pytest_benchmark_generate_json(
        self, config: Any, benchmarks: Any, include_data: Any, machine_info: Any, commit_info: Any
    ) -> Any: ...
    def pytest_benchmark_update_json(self, config: Any, benchmarks: Any, output_json: Any) -> Any: ...
    def pytest_benchmark_compare_machine_info(
        self, config: Any, benchmarksession: Any, machine_info: Any, compared_benchmark: Any
    ) -> Any: ...
    def pytest_benchmark_scale_unit(
        self, config: Any, unit: Any, benchmarks: Any, best: Any, worst: Any, sort: Any
    ) -> Any: ...


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not replaces_benchmark(pluginmanager):
        return
    group = parser.getgroup("benchmark", "benchmarks (by holdpoint, with the options of pytest-benchmark)")
    for name, kind, text in TIMING:
        group.addoption(f"--benchmark-{name}", type=kind, default=None, help=text)
    for name, text in SWITCHES:
        group.addoption(f"--benchmark-{name}", action="store_true", default=False, help=text)
    text = "warm up before timing: on, off or auto (off)"
    group.addoption("--benchmark-warmup", nargs="?", const="on", default="auto", help=text)
    group.addoption("--benchmark-json", default=None, metavar="PATH", help="write all rounds as JSON")
    for name in IGNORED:
        group.addoption(f"--benchmark-{name}", default=None, help="accepted; has no effect")
    for name in IGNORED_SWITCHES:
        group.addoption(f"--benchmark-{name}", action="store_true", default=False, help="accepted; has no effect")
    for name in REPLACED:
        group.addoption(f"--benchmark-{name}", nargs="?", const=True, default=None, help="refused; use holdpoint")


def replaces_benchmark(pluginmanager: pytest.PytestPluginManager) -> bool:
    """Whether pytest-benchmark is missing or switched off (`-p no:benchmark`)."""
    if importlib.util.find_spec("pytest_benchmark") is None or pluginmanager.is_blocked("benchmark"):
        return True
    is_alone = bool(os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"))
    return is_alone and not pluginmanager.hasplugin("pytest_benchmark.plugin")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    if replaces_benchmark(pluginmanager):
        pluginmanager.add_hookspecs(HookSpecs)


def pytest_configure(config: pytest.Config) -> None:
    session = Session(config)
    config.pluginmanager.register(session, "holdpoint-session")
    if session.replaces:
        session.check_options()
        line = "benchmark(group=None, min_rounds=5, …): how the benchmark of this test is timed and grouped"
        config.addinivalue_line("markers", line)
        config.pluginmanager.register(pytest_drop_in, "holdpoint-drop-in")


@pytest.fixture
def holdpoint(request: pytest.FixtureRequest) -> Iterator[Benchmark]:
    """Times a function, `holdpoint(function, *arguments)`, or compares two, `holdpoint.compare(base, head)`."""
    yield from open_benchmark(request)


class Session:
    """The benchmarks of a run of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.replaces = replaces_benchmark(config.pluginmanager)
        self.benchmarks: list[Benchmark] = []

    def option(self, name: str) -> Any:
        return self.config.getoption(f"benchmark_{name}", None) if self.replaces else None

    def check_options(self) -> None:
        for name in REPLACED:
            if self.option(name.replace("-", "_")) is not None:
                raise pytest.UsageError(
                    f"--benchmark-{name}: holdpoint's plug-in only times; compare revisions with "
                    "`holdpoint gate --against`, or install pytest-benchmark"
                )
        if self.option("only") and self.option("skip"):
            raise pytest.UsageError("--benchmark-only and --benchmark-skip leave no test; give one of both")
        if self.option("only") and self.option("disable") and not self.option("enable"):
            raise pytest.UsageError("--benchmark-only and --benchmark-disable time nothing; give one of both")

    def is_enabled(self) -> bool:
        """Processes of pytest-xdist run side by side and disturb each other's times."""
        is_off = self.option("disable") and not self.option("enable")
        return not is_off and not hasattr(self.config, "workerinput")

    def open(self, node: Any) -> Benchmark:
        marker = node.get_closest_marker("benchmark")
        given = dict(marker.kwargs) if marker is not None else {}
        spec = getattr(node, "callspec", None)
        return Benchmark(
            name=node.name,
            fullname=node.nodeid,
            options=self.read_options(given),
            enabled=self.is_enabled(),
            group=given.get("group"),
            param=spec.id if spec is not None else None,
            params=spec.params if spec is not None else None,
        )

    def read_options(self, given: dict[str, Any]) -> Options:
        """Those of the marker, else of the command line."""
        options = Options(warmup=self.option("warmup") in ("on", "true", "yes", "1", True))
        for name in ("min_rounds", "min_time", "max_time", "warmup_iterations", "timer"):
            value = given.get(name, self.option(name))
            if value is not None:
                setattr(options, name, read_timer(value) if name == "timer" else value)
        options.disable_gc = bool(given.get("disable_gc", self.option("disable_gc")))
        if "warmup" in given:
            options.warmup = given["warmup"] not in (False, "off")
        return options

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        is_benchmark = any(name in FIXTURES for name in getattr(item, "fixturenames", ()))
        if self.option("only") and not is_benchmark:
            pytest.skip("no benchmark (--benchmark-only)")
        if self.option("skip") and is_benchmark:
            pytest.skip("a benchmark (--benchmark-skip)")

    def pytest_sessionfinish(self) -> None:
        path = self.option("json")
        if path is None or hasattr(self.config, "workerinput"):
            return
        machine, commit = describe_machine(), describe_commit(str(self.config.rootpath))
        hook = self.config.hook
        hook.pytest_benchmark_update_machine_info(config=self.config, machine_info=machine)
        hook.pytest_benchmark_update_commit_info(config=self.config, commit_info=commit)
        output = {
            "machine_info": machine,
            "commit_info": commit,
            "benchmarks": [bench.to_json() for bench in self.benchmarks],
            "datetime": datetime.now(timezone.utc).isoformat(),
            "version": f"holdpoint {__version__}",
        }
        hook.pytest_benchmark_update_json(config=self.config, benchmarks=self.benchmarks, output_json=output)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(output, file, default=repr)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.benchmarks:
            return
        terminalreporter.section("benchmarks")
        for line in render_table(self.benchmarks):
            terminalreporter.write_line(line)


def render_table(benchmarks: list[Benchmark]) -> list[str]:
    """A line for each benchmark: median, the spread of the middle half, and how much was measured."""
    rows = [("benchmark", "median", "spread", "rounds", "calls")]
    for bench in benchmarks:
        result = bench.stats
        assert result is not None, "only timed benchmarks are kept"
        stats = result.stats
        spread = f"±{50 * stats.iqr / stats.median:.1f} %" if stats.median > 0 else "–"
        row = (bench.fullname, show_seconds(stats.median), spread, str(stats.rounds), str(result.iterations))
        rows.append(row)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def show_seconds(seconds: float) -> str:
    """Four digits, in the unit that fits."""
    unit, scale = next((each for each in UNITS if seconds >= each[1]), UNITS[-1])
    value = seconds / scale
    return f"{value:.{max(0, 4 - len(str(int(value))))}f} {unit}"


def read_timer(value: Any) -> Callable[[], float]:
    """A clock, or its name such as time.process_time."""
    if callable(value):
        clock: Callable[[], float] = value
        return clock
    module, _, name = str(value).rpartition(".")
    try:
        found: Callable[[], float] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"--benchmark-timer={value}: no such function ({error})") from error
    return found


def describe_machine() -> dict[str, Any]:
    return {
        "node": platform.node(),
        "machine": platform.machine(),
        "system": platform.system(),
        "release": platform.release(),
        "python_implementation": platform.python_implementation(),
        "python_version": platform.python_version(),
        "python_compiler": platform.python_compiler(),
        "python_build": list(platform.python_build()),
        "cpu": {"count": os.cpu_count(), "arch": platform.machine()},
        "executable": sys.executable,
    }


def describe_commit(folder: str) -> dict[str, Any]:
    """The commit of the folder's repository; empty where git does not know one."""
    commit = ask_git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    return {
        "id": commit,
        "branch": ask_git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        "time": ask_git(folder, "log", "-1", "--format=%cI"),
        "author_time": ask_git(folder, "log", "-1", "--format=%aI"),
        "dirty": bool(ask_git(folder, "status", "--porcelain", "--untracked-files=no")),
        "project": os.path.basename(folder),
    }


def ask_git(folder: str, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
