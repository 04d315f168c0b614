"""Projects of `harness-projects.py` that were built elsewhere: their files, and stand-ins for the compilers that holdpoint asks."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from harness_own import bench_messages, run
from harness_table import Project

# Cargo's messages about executables, with this in place of the checkout's folder.
HERE = "@HERE@"
MESSAGES = "cargo-messages.json"
# They say what the real ones said, and copy what the real ones built.
STAND_INS = {
    "cargo": f'#!/bin/sh\nexec sed "s|{HERE}|$PWD|g" {MESSAGES}\n',
    "go": '#!/bin/sh\n[ "$1" = list ] && exec echo "built $PWD"\nmkdir -p "${4%/*}" && exec cp own.test "$4"\n',
}


def build(project: Project, checkout: Path, place: Path) -> None:
    """A copy of a built checkout, with the executables of its benchmarks alone."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(checkout, place, ignore=shutil.ignore_patterns(".git", "target", "build", "own.test"))
    if project.kind == "criterion":
        kept = [keep(project, checkout, place, message) for message in bench_messages(checkout)]
        (place / MESSAGES).write_text("".join(json.dumps(message) + "\n" for message in kept if message))
    for program in [place / "bench"] if project.kind == "google-benchmark" else []:
        subprocess.check_call(["strip", program])
    if project.kind == "go":
        shutil.copy(checkout / "own.test", place)


def keep(project: Project, checkout: Path, place: Path, message: dict) -> dict | None:
    """Copies an executable that has benchmarks of ours; returns the message about the copy."""
    program = message["executable"]
    if ": bench" not in run([program, "--bench", "--list", project.own_filter], checkout, project):
        return None
    copy = place / message["target"]["name"]
    subprocess.check_call(["strip", "-o", copy, program])
    manifest = message["manifest_path"].replace(str(checkout), HERE)
    return {**message, "executable": f"{HERE}/{copy.name}", "manifest_path": manifest}


def built_suite(project: Project, built: Path, branch: str) -> Path:
    suite = built / project.name / branch / "perf.toml"
    suite.write_text(project.suite)
    return suite


def stand_ins(folder: Path) -> None:
    """Puts the stand-ins before the real ones, if there are any."""
    folder.mkdir(exist_ok=True)
    for name, text in STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
