"""The object behind the fixtures `holdpoint` and `benchmark`: used like pytest-benchmark's, and compares functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from .rounds import Function, Options, Stats, garbage_collection, time_calls, time_rounds

if TYPE_CHECKING:
    from .comparing import Verdict


@dataclass
class Result:
    """A benchmark that has been timed; its statistics also by name, as in `result["mean"]`."""

    stats: Stats
    iterations: int

    def __getitem__(self, name: str) -> Any:
        return getattr(self.stats, name)


@dataclass
class Benchmark:
    """Times one function per test."""

    name: str
    fullname: str
    options: Options
    enabled: bool = True
    group: str | None = None
    param: str | None = None
    params: Mapping[str, Any] | None = None
    extra_info: dict[str, Any] = field(default_factory=dict)
    stats: Result | None = None
    used_as: str | None = None

    @property
    def disabled(self) -> bool:
        return not self.enabled

    def __call__(self, function_to_benchmark: Function, *args: Any, **kwargs: Any) -> Any:
        """Times calls of the function and returns its answer."""
        self.use("benchmark(...)")
        if not self.enabled:
            return function_to_benchmark(*args, **kwargs)
        timed = time_rounds(function_to_benchmark, args, kwargs, self.options)
        self.stats = Result(timed.stats, timed.iterations)
        return timed.answer

    def pedantic(
        self,
        target: Function,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], tuple[tuple[Any, ...], Mapping[str, Any]] | None] | None = None,
        teardown: Function | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """Times exactly so many rounds of so many calls; `setup` and `teardown` run around each round, untimed."""
        self.use("benchmark.pedantic(...)")
        if rounds < 1 or iterations < 1 or warmup_rounds < 0:
            raise ValueError("rounds and iterations must be at least 1, warmup_rounds at least 0")
        if setup is not None and iterations != 1:
            raise ValueError("with a setup, which prepares one call, iterations must be 1")
        if not self.enabled:
            rounds, warmup_rounds, iterations = 1, 0, 1
        stats, answer = Stats(), None
        with garbage_collection(is_off=self.options.disable_gc):
            for at in range(warmup_rounds + rounds):
                given = (args, kwargs or {}) if setup is None else read_setup(setup(), args, kwargs or {})
                elapsed_s, answer = time_calls(target, given[0], given[1], iterations, self.options.timer)
                if teardown is not None:
                    teardown(*given[0], **given[1])
                if at >= warmup_rounds:
                    stats.data.append(elapsed_s / iterations)
        if self.enabled:
            self.stats = Result(stats, iterations)
        return answer

    def compare(self, base: Function, head: Function, *, on_inconclusive: str = "skip", **options: Any) -> Verdict:
        """Fails the test if head is slower than base, or wrong; takes the options of `holdpoint.compare`.

        Where the evidence does not suffice, the test is skipped with the reason, or fails with on_inconclusive="fail".
        """
        if on_inconclusive not in ("skip", "fail"):
            raise ValueError(f'on_inconclusive={on_inconclusive!r} is not known; choose "skip" or "fail"')
        # Starting pytest takes most of a turn of the harness, so what only comparing needs is imported here.
        from .comparing import compare

        verdict = compare(base, head, **options)
        if verdict.verdict in ("inconclusive", "skipped") and on_inconclusive == "skip":
            pytest.skip(f"{verdict.verdict}: {verdict.reason}")
        if not verdict.passed:
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    def weave(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            "holdpoint's benchmark fixture cannot patch functions (weave, patch); call benchmark(function), "
            "or install pytest-benchmark"
        )

    patch = weave

    def use(self, how: str) -> None:
        if self.used_as is not None:
            raise RuntimeError(f"a test times one function; {self.used_as} was called before in {self.fullname}")
        self.used_as = how

    def to_json(self) -> dict[str, Any]:
        assert self.stats is not None, "only timed benchmarks are written"
        options = {**vars(self.options), "timer": getattr(self.options.timer, "__name__", repr(self.options.timer))}
        return {
            "group": self.group,
            "name": self.name,
            "fullname": self.fullname,
            "params": None if self.params is None else {key: plain(value) for key, value in self.params.items()},
            "param": self.param,
            "extra_info": self.extra_info,
            "options": options,
            "stats": {**self.stats.stats.to_json(), "iterations": self.stats.iterations},
        }


def open_benchmark(request: pytest.FixtureRequest) -> Iterator[Benchmark]:
    """The fixture's object for a test; what was timed is kept for the table and the JSON."""
    session: Any = request.config.pluginmanager.get_plugin("holdpoint-session")
    bench = session.open(request.node)
    yield bench
    if bench.stats is not None:
        session.benchmarks.append(bench)


def read_setup(
    returned: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """A setup may return the arguments of the call, if none were given otherwise."""
    if returned is None:
        return args, kwargs
    if args or kwargs:
        raise TypeError("the setup returns arguments, and args or kwargs were given as well; give one of both")
    return tuple(returned[0]), returned[1]


def plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
