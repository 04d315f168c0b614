"""The verdict of a benchmark harness itself on two builds, as its own tools give it, with its default times."""

import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

from harness_table import Project

# Google Benchmark's compare.py wants at least nine, benchstat ten.
REPETITIONS = 10
P_VALUE = 0.05


def own_verdict(project: Project, base: Path, head: Path) -> dict:
    """Runs base, then the branch, and asks the harness whether the branch is slower."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        verdicts = RULES[project.kind](project, base, head, Path(scratch))
    return {"verdicts": verdicts, "seconds": time.monotonic() - start}


def checkout(project: Project, folder: Path, branch: str) -> Path:
    """A checkout of a branch beside the repository, built once."""
    place = folder.parent / "own" / project.name / branch
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.check_call(["git", "clone", "--quiet", "--branch", branch, str(folder), str(place)])
        if project.build:
            subprocess.check_call(["sh", "-c", project.build], cwd=place, stdout=subprocess.DEVNULL)
        if project.kind == "go":
            subprocess.check_call(["go", "test", "-c", "-o", "own.test"], cwd=place)
    return place


def run(line: list[str], folder: Path, project: Project, **variables: str) -> str:
    environment = {**project.environment(), **variables}
    done = subprocess.run(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def bench_messages(folder: Path) -> list[dict]:
    """Cargo's messages about the executables of a checkout's benchmarks, built if need be."""
    line = ["cargo", "bench", "--no-run", "--message-format=json"]
    printed = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout
    messages = [json.loads(text) for text in printed.splitlines() if text.startswith("{")]
    return [message for message in messages if message.get("executable") and "bench" in message["target"]["kind"]]


def by_criterion(project: Project, base: Path, head: Path, scratch: Path) -> dict[str, str]:
    """Its "Performance has regressed." for the head, with the base's results as its baseline."""
    verdicts = {}
    for folder, flag in ((base, "--save-baseline"), (head, "--baseline-lenient")):
        for program in (message["executable"] for message in bench_messages(folder)):
            listed = run([program, "--bench", "--list", project.own_filter], folder, project)
            if ": bench" not in listed:
                continue
            line = [program, "--bench", "--noplot", flag, "base", project.own_filter]
            printed = run(line, folder, project, CRITERION_HOME=str(scratch))
            if folder == head:
                verdicts.update(criterion_lines(printed))
    return verdicts


def criterion_lines(printed: str) -> dict[str, str]:
    """The verdict below each benchmark's times. A long name has a line of its own."""
    verdicts, name, before = {}, "", ""
    for line in printed.splitlines():
        if " time: " in line:
            name = line.split(" time: ")[0].strip() or before
            verdicts[workload(name)] = "pass"
        elif "Performance has regressed." in line:
            verdicts[workload(name)] = "regressed"
        before = line.strip() or before
    return verdicts


def by_google(project: Project, base: Path, head: Path, scratch: Path) -> dict[str, str]:
    def times(folder: Path) -> dict[str, list[float]]:
        out = scratch / "out.json"
        run([*project.command, f"--benchmark_filter={project.own_filter}", f"--benchmark_repetitions={REPETITIONS}",
             f"--benchmark_out={out}", "--benchmark_out_format=json"], folder, project)
        found: dict[str, list[float]] = {}
        for one in json.loads(out.read_text())["benchmarks"]:
            if one["run_type"] == "iteration":
                found.setdefault(one["run_name"], []).append(one["real_time"])
        return found
    return by_ranks(times(base), times(head))


def by_go(project: Project, base: Path, head: Path, scratch: Path) -> dict[str, str]:
    def times(folder: Path) -> dict[str, list[float]]:
        line = ["./own.test", "-test.run=^$", f"-test.bench={project.own_filter}", f"-test.count={REPETITIONS}"]
        found: dict[str, list[float]] = {}
        for words in (text.split() for text in run(line, folder, project).splitlines()):
            if "ns/op" in words:
                name = words[0].rsplit("-", 1)[0]
                found.setdefault(name, []).append(float(words[words.index("ns/op") - 1]))
        return found
    return by_ranks(times(base), times(head))


def by_pytest(project: Project, base: Path, head: Path, scratch: Path) -> dict[str, str]:
    """Its own comparison with a saved run."""
    line = [*project.command, "-q", "-p", "no:cacheprovider", "--benchmark-only", "-k", project.own_filter, "--benchmark-name=long",
            f"--benchmark-storage={scratch}"]
    run([*line, "--benchmark-save=base"], base, project)
    shown = run([*line, "--benchmark-compare", "--benchmark-compare-fail=min:2%"], head, project)
    verdicts = {}
    for text in shown.splitlines():
        words = text.split()
        if words and "::" in words[0] and "(NOW)" in words:
            verdicts.setdefault(workload(words[0]), "pass")
        elif words and "has failed PercentageRegressionCheck" in text:
            verdicts[workload(words[0])] = "regressed"
    return verdicts


def by_ranks(base: dict[str, list[float]], head: dict[str, list[float]]) -> dict[str, str]:
    """Slower where a Mann-Whitney test says so, as benchstat and Google Benchmark's compare.py do."""
    def verdict(name: str) -> str:
        was, now = sorted(base[name]), sorted(head[name])
        is_slower = now[len(now) // 2] > was[len(was) // 2]
        return "regressed" if is_slower and p_value(was, now) < P_VALUE else "pass"
    return {workload(name): verdict(name) for name in base if name in head}


def p_value(a: list[float], b: list[float]) -> float:
    """Two-sided p of the Mann-Whitney U test, by the normal approximation with ties and continuity corrected."""
    both = sorted(a + b)
    count = len(both)
    ranks = {value: both.index(value) + (both.count(value) + 1) / 2 for value in set(both)}
    u = sum(ranks[value] for value in a) - len(a) * (len(a) + 1) / 2
    ties = sum(both.count(value) ** 3 - both.count(value) for value in set(both))
    variance = len(a) * len(b) / 12 * (count + 1 - ties / (count * (count - 1)))
    if variance == 0:
        return 1.0
    z = max(0.0, abs(u - len(a) * len(b) / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def workload(name: str) -> str:
    """The name that holdpoint gives a benchmark."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "_" for c in name)


RULES = {"criterion": by_criterion, "google-benchmark": by_google, "go": by_go, "pytest-benchmark": by_pytest}
