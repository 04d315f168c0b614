#!/usr/bin/env python3
"""Gates real projects by the benchmarks they already have: how often is a planted slowdown found, how often unchanged code blamed?

    campaigns/harness-projects.py target/release/holdpoint --clones DIR --out results.jsonl [--projects itoa,snappy]

DIR has a clone of each project, named as in PROJECTS below. Each gets three commits: one as it is, one that adds a comment, and one
in which a function is about 5 % slower. The last two are gated against the first, with a busy loop beside, and the harness's own
comparison is run on the same builds in between. Every result is a line of the file named by --out; a run that was cut short goes on
from there. Prints a table of all results in that file.

For a machine without compilers and clones: `--build DIR` builds the three commits of each project into DIR here, and `--built DIR` there
compares them by `ab --base-suite --head-suite`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness_built import build, built_suite, stand_ins  # noqa: E402
from harness_own import checkout, own_verdict  # noqa: E402
from harness_table import PROJECTS, Project  # noqa: E402

KINDS = ("slowed", "unchanged")
BUSY = ["sh", "-c", "while :; do :; done"]


def git(folder: Path, *words: str) -> str:
    line = ["git", "-c", "user.name=campaign", "-c", "user.email=campaign@example.org", *words]
    return subprocess.check_output(line, cwd=folder, text=True).strip()


def prepare(project: Project, clones: Path, work: Path) -> Path:
    """A repository with the branches base, unchanged and slowed."""
    folder = work / project.name
    if not folder.exists():
        subprocess.check_call(["git", "clone", "--quiet", str(clones / project.name), str(folder)])
        git(folder, "checkout", "--quiet", "-B", "base", project.commit)
        if project.without:
            git(folder, "rm", "-r", "--quiet", *project.without)
            git(folder, "commit", "--quiet", "--message", "base")
        source = folder / project.file
        text = source.read_text()
        if text.count(project.old) != 1:
            sys.exit(f"{source}: the text to be slowed down occurs {text.count(project.old)} times, not once")
        for kind, changed in [("unchanged", text + project.comment), ("slowed", text.replace(project.old, project.new))]:
            git(folder, "checkout", "--quiet", "-B", kind, "base")
            source.write_text(changed)
            git(folder, "commit", "--quiet", "--all", "--message", kind)
    (work / f"{project.name}.toml").write_text(project.suite)
    return folder


def gate(args: argparse.Namespace, project: Project, folder: Path, kind: str) -> dict:
    """Gates a branch against base, as a user would."""
    if args.built:
        base, head = (str(built_suite(project, args.built, branch)) for branch in ("base", kind))
        sides = ["ab", "--base-suite", base, "--head-suite", head]
    else:
        git(folder, "checkout", "--quiet", kind)
        sides = ["gate", "--suite", str(folder.parent / f"{project.name}.toml"), "--against", "base"]
    with tempfile.TemporaryDirectory() as artifacts:
        line = [args.holdpoint, *sides, "--quiet", "--measure-same-code", "--artifacts", artifacts]
        start = time.monotonic()
        done = subprocess.run(line, cwd=folder, env=project.environment(), capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start
        try:
            checks = json.loads((Path(artifacts) / "comparison.json").read_text())["checks"]
            units_s = json.loads((Path(artifacts) / "ab.json").read_text())["elapsed_s"]
        except (OSError, KeyError):
            sys.exit(f"{project.name}: the gate left no verdict:\n{done.stdout}{done.stderr}")
    verdicts = {check["workload"]: check["verdict"] for check in checks}
    evidence = {check["workload"]: (check.get("paired") or {}).get("evidence") or {} for check in checks}
    changes = {name: round(100 * (known["ratio"] - 1), 2) for name, known in evidence.items() if known}
    return {"verdicts": verdicts, "changes": changes, "seconds": seconds, "measured_s": units_s, "exit": done.returncode}


def results(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def of(found: list[dict], project: str, kind: str, tool: str) -> list[dict]:
    return [one for one in found if (one["project"], one["kind"], one["tool"]) == (project, kind, tool)]


def is_called(project: Project, kind: str, verdicts: dict[str, str]) -> bool:
    """Whether the slowed benchmark was called slower; of unchanged code, whether any was."""
    called = [name for name, verdict in verdicts.items() if verdict == "regressed"]
    return project.slowed in called if kind == "slowed" else bool(called)


def row(project: Project, found: list[dict]) -> str:
    cells = [project.name]
    for tool in ("holdpoint", "own"):
        for kind in KINDS:
            all_of = of(found, project.name, kind, tool)
            cells.append(f"{sum(is_called(project, kind, one['verdicts']) for one in all_of)} of {len(all_of)}")
    gates = [one for kind in KINDS for one in of(found, project.name, kind, "holdpoint")]
    verdicts = [verdict for one in gates for verdict in one["verdicts"].values()]
    seconds = sorted(one["measured_s"] for one in gates)
    benchmarks = max((len(one["verdicts"]) for one in gates), default=0)
    median = f"{seconds[len(seconds) // 2]:.0f}" if seconds else "-"
    undecided = f"{verdicts.count('inconclusive')} of {len(verdicts)}"
    return " | ".join([cells[0], str(benchmarks), cells[1], cells[2], undecided, median, project.rule, cells[3], cells[4]])


def table(projects: list[Project], found: list[dict]) -> None:
    print("project | benchmarks | slowed, called | unchanged, called | undecided rows | seconds a gate | own rule | slowed | unchanged")
    print("---|--:|--:|--:|--:|--:|---|--:|--:")
    for project in projects:
        print(row(project, found))


def next_step(project: Project, wanted: dict[tuple[str, str], int], found: list[dict]) -> tuple[str, str] | None:
    """The kind and tool that are furthest behind; none if all are done."""
    def share(step: tuple[str, str]) -> float:
        return len(of(found, project.name, *step)) / wanted[step]
    left = [step for step in wanted if wanted[step] > 0 and share(step) < 1]
    return min(left, key=share) if left else None


def campaign(project: Project, args: argparse.Namespace, deadline: float) -> None:
    folder = args.built / project.name if args.built else prepare(project, args.clones, args.work)
    wanted = {("slowed", "holdpoint"): args.slowed, ("unchanged", "holdpoint"): args.unchanged,
              ("slowed", "own"): args.own, ("unchanged", "own"): args.own}
    while time.monotonic() < deadline and (step := next_step(project, wanted, results(args.out))):
        kind, tool = step
        start = time.monotonic()
        def place(branch: str) -> Path:
            return args.built / project.name / branch if args.built else checkout(project, folder, branch)
        one = gate(args, project, folder, kind) if tool == "holdpoint" else own_verdict(project, place("base"), place(kind))
        line = {"project": project.name, "kind": kind, "tool": tool, "at": time.strftime("%FT%TZ", time.gmtime()),
                "load": round(os.getloadavg()[0], 1), **one}
        with args.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
        called = [name for name, verdict in one["verdicts"].items() if verdict == "regressed"]
        print(f"{project.name}, {kind}, {tool}: {time.monotonic() - start:.0f} s, called: {', '.join(called) or 'none'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdpoint", type=lambda name: str(Path(name).resolve()))
    parser.add_argument("--clones", type=Path, help="folder with a clone of each project")
    parser.add_argument("--build", type=Path, metavar="DIR", help="only build the projects, into this folder")
    parser.add_argument("--built", type=Path, metavar="DIR", help="measure what --build left here")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "harness-projects", help="where branches are made")
    parser.add_argument("--out", type=Path, help="file of results, one per line; continued if it exists")
    parser.add_argument("--projects", default=",".join(PROJECTS), help="which ones, by name")
    parser.add_argument("--slowed", type=int, default=10, help="gates of slowed code for each project")
    parser.add_argument("--unchanged", type=int, default=50, help="gates of unchanged code for each project")
    parser.add_argument("--own", type=int, default=10, help="verdicts of the harness itself, of each kind")
    parser.add_argument("--busy", type=int, default=1, help="busy loops beside it")
    parser.add_argument("--minutes", type=float, default=120.0, help="time limit for each project")
    args = parser.parse_args()
    if not (args.clones or args.built):
        parser.error("--clones names the projects' clones, or --built their builds")
    if not (args.out or args.build):
        parser.error("--out names the file of results")
    args.work.mkdir(parents=True, exist_ok=True)
    args.work = args.work.resolve()
    os.environ.setdefault("HOLDPOINT_CACHE", str(args.work / "cache"))
    chosen = [PROJECTS[name] for name in args.projects.split(",")]
    if args.build:
        for project in chosen:
            folder = prepare(project, args.clones, args.work)
            for branch in ("base", *KINDS):
                print(f"{project.name}: {branch}", flush=True)
                build(project, checkout(project, folder, branch), args.build.resolve() / project.name / branch)
        return
    if args.built:
        args.built = args.built.resolve()
        stand_ins(args.built / "bin")
    loops = [subprocess.Popen(BUSY) for _ in range(args.busy)]
    try:
        for project in chosen:
            campaign(project, args, time.monotonic() + 60 * args.minutes)
    finally:
        for loop in loops:
            loop.kill()
    table(chosen, results(args.out))


main()
