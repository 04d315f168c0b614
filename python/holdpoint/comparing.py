"""Comparing two functions from Python: `holdpoint.compare(base, head)`."""

from __future__ import annotations

import copy
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from . import connect, devices, suites
from .answers import arrays_in
from .serving import Server
from .worker import Worker
from .workloads import Function, Registry, Workload, check_function, name_combination

# The exit codes with which `ab` has written its documents: passed, failed, skipped, inconclusive, broken.
JUDGED = range(5)
# Both command lines in the first line of the output.
SIDES = re.compile(r" · ([^·\n]*/[^·\n]*) → ([^·\n]*/[^·\n]*) · ")
# The same among the facts of a page, where they are shortened.
PAGE_SIDES = re.compile(r"<li>[^<]*/[^<]* → [^<]*/[^<]*</li>")


class HoldpointError(Exception):
    """holdpoint could not compare; the message is what it printed."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison. `ratio` is head's time over base's: above 1, head is slower."""

    verdict: str
    reason: str
    ratio: float | None
    interval: tuple[float, float] | None
    seconds: float
    comparison: Mapping[str, Any] = field(repr=False)
    text: str = field(repr=False)
    page: str = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether head is as fast as base, within the tolerance, and its answers are right."""
        return self.verdict in ("pass", "improved")

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The report page that `holdpoint report --html` writes, in a frame of its own."""
        frame = "width:100%;height:36rem;border:1px solid #8888"
        return f'<iframe srcdoc="{html.escape(self.page)}" style="{frame}" sandbox title="holdpoint"></iframe>'


def compare(
    base: Function,
    head: Function,
    *,
    inputs: tuple[object, ...] | Callable[[int], object] | None = None,
    tolerance: str = "2%",
    budget: float | None = None,
    name: str | None = None,
    check: bool = True,
    answer_tolerance: tuple[float, float] | None = None,
    timer: str | None = None,
    cache: str = "warm",
    single_threaded: bool = True,
    options: Sequence[str] = (),
    artifacts: str | os.PathLike[str] | None = None,
) -> Verdict:
    """Measures two functions side by side and decides whether head is slower than base by more than the tolerance.

    `inputs` are the arguments of a call: a tuple, or a function of a seed. Unless `check` is False, head's answers must
    be those of base, within `answer_tolerance` (atol, rtol). `budget` is in seconds. `options` are further flags of
    `holdpoint ab`; with `artifacts`, the evidence is kept in that folder.
    """
    for function in (base, head):
        check_function(function)
    binary = find_binary()
    names = name_sides(base, head)
    draw = make_draw(inputs)
    make = partial(
        Workload,
        name=name_combination(name or names[1], {}, None),
        op="compare",
        inputs=draw,
        reference=base if check else None,
        tolerance=answer_tolerance,
        timer=timer,
        cache=cache,
    )
    workloads = {"base": make(function=base), "head": make(function=head)}
    is_forking = timer is None and can_fork()
    with tempfile.TemporaryDirectory(prefix="holdpoint-") as folder:
        place = Path(folder)
        only = Registry({"only": workloads["head"]})
        suite = suites.render([workloads["head"].name], only, single_threaded=single_threaded and is_forking)
        (place / "suite.toml").write_text(suite, encoding="utf-8")
        workers = {side: partial(make_worker, workload) for side, workload in workloads.items()}
        server = Server(place / "socket", workers, is_forking=is_forking)
        try:
            return run_ab(binary, place, names, [*flags(tolerance, budget, is_forking), *options], artifacts)
        finally:
            server.close()


def run_ab(
    binary: str,
    place: Path,
    names: tuple[str, str],
    flags: Sequence[str],
    artifacts: str | os.PathLike[str] | None,
) -> Verdict:
    folder = Path(artifacts) if artifacts is not None else place / "artifacts"
    commands = [connector(place / "socket", side) for side in ("base", "head")]
    words = [binary, "ab", "--suite", str(place / "suite.toml"), "--artifacts", str(folder), *flags]
    words += ["--base-worker", commands[0], "--head-worker", commands[1]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in JUDGED or not (folder / "comparison.json").is_file():
        raise HoldpointError((done.stderr or done.stdout).strip() or f"holdpoint ended with {done.returncode}")
    page = place / "page.html"
    subprocess.run([binary, "report", str(folder / "ab.json"), "--html", str(page)], capture_output=True, check=False)
    text, markup = done.stdout.strip(), page.read_text(encoding="utf-8") if page.is_file() else ""
    # The sides are functions; that they came through a connector is of no interest.
    if shown := SIDES.search(text):
        for side, name in zip(shown.groups(), names, strict=True):
            text = text.replace(side, name)
    for command, name in zip(commands, names, strict=True):
        markup = markup.replace(html.escape(command), html.escape(name))
    functions = " → ".join(map(html.escape, names))
    markup = PAGE_SIDES.sub(lambda _: f"<li>{functions}</li>", markup)
    return read_verdict(json.loads((folder / "comparison.json").read_text(encoding="utf-8")), text, markup)


def read_verdict(comparison: Mapping[str, Any], text: str, page: str) -> Verdict:
    check = comparison["checks"][0] if comparison["checks"] else {}
    paired = check.get("paired") or {}
    evidence = paired.get("evidence") or {}
    interval = evidence.get("ratio_interval")
    return Verdict(
        verdict=comparison["verdict"],
        reason=check.get("reason", ""),
        ratio=evidence.get("ratio"),
        interval=(interval[0], interval[1]) if interval else None,
        seconds=paired.get("spent_s", 0.0),
        comparison=comparison,
        text=text,
        page=page,
    )


def make_worker(workload: Workload) -> Worker:
    return Worker(Registry({workload.name: workload}))


def make_draw(inputs: tuple[object, ...] | Callable[[int], object] | None) -> Function | None:
    """A function of the seed. Fixed arguments are copied, since a call may change them."""
    if inputs is None or callable(inputs):
        return inputs
    if not isinstance(inputs, tuple):
        raise ValueError(f"inputs must be the tuple of a call's arguments, or a function of a seed, not {inputs!r:.80}")
    if any(map(devices.is_on_device, arrays_in(inputs))):
        return lambda seed: inputs
    return lambda seed: copy.deepcopy(inputs)


def name_sides(base: Function, head: Function) -> tuple[str, str]:
    names = [getattr(function, "__name__", type(function).__name__) for function in (base, head)]
    if names[0] == names[1] or "<lambda>" in names:
        return "base", "head"
    return names[0], names[1]


def can_fork() -> bool:
    """A CUDA context does not survive a fork."""
    torch: Any = sys.modules.get("torch")
    uses_torch = torch is not None and torch.cuda.is_initialized()
    return hasattr(os, "fork") and not uses_torch and "cupy" not in sys.modules


def flags(tolerance: str, budget: float | None, is_forking: bool) -> list[str]:
    words = ["--tolerance", tolerance]
    if budget is not None:
        words += ["--budget", str(budget)]
    # Two pairs in one process would wait for each other.
    return words if is_forking else [*words, "--at-once", "1"]


def connector(path: Path, side: str) -> str:
    """The command line of a worker that hands its pipes over."""
    return shlex.join([sys.executable, "-I", "-S", str(Path(connect.__file__)), str(path), side])


def find_binary() -> str:
    """holdpoint's own program: named by HOLDPOINT_BINARY, next to Python as the wheel installs it, or on the PATH."""
    named = os.environ.get("HOLDPOINT_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise HoldpointError(f"HOLDPOINT_BINARY names {named}, which is no program")
        return named
    beside = Path(sys.executable).with_name("holdpoint")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("holdpoint")
    if found is None:
        raise HoldpointError(
            f"the program holdpoint was found neither as {beside} nor on the PATH; install the wheel, or name it in "
            "HOLDPOINT_BINARY"
        )
    return found
