#!/usr/bin/env python3
"""Seconds that a comparison of two large revisions takes: made, with their inventories, and cached, where these are checked.

    campaigns/large-checkouts.py target/release/holdpoint [FILES [BYTES_PER_FILE]]

Makes a repository in a temporary folder; its suite builds nothing and calls `true`. Prints CPU time of git and holdpoint too, which other
processes disturb less, and the same for two commands without revisions.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUITE = """
name = "large"
[build]
command = ["true"]
[[workload]]
name = "nothing"
command = ["true"]
"""


def git(repository: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", repository, *who, *arguments], check=True, stdout=subprocess.DEVNULL)


def make(repository: Path, files_count: int, file_bytes: int) -> None:
    git(repository, "init", "--quiet")
    for number in range(files_count):
        path = repository / f"d{number // 100}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(file_bytes))
    (repository / "perf.toml").write_text(SUITE)
    for text in ("one", "two"):
        (repository / "a").write_text(text)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "-m", text)


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    holdpoint = Path(sys.argv[1]).resolve()
    files_count, file_bytes = (int(text) for text in (*sys.argv[2:], "50000", "20000")[:2])
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "repository")
        repository.mkdir()
        make(repository, files_count, file_bytes)
        environment = {**os.environ, "HOLDPOINT_CACHE": f"{folder}/cache"}
        revisions = ["--suite", "perf.toml", "--base-rev", "HEAD~1", "--head-rev", "HEAD"]
        commands = ["--base", "true", "--head", "true"]
        print(f"{files_count} files, {files_count * file_bytes / 1e9:.1f} GB in each of two revisions")
        for what, sides in (("both are checked out", revisions), ("both are cached", revisions), ("commands", commands)):
            begin, cpu_s = time.monotonic(), children_cpu_s()
            arguments = [holdpoint, "ab", *sides, "--units-max", "2", "--seed", "1"]
            subprocess.run(arguments, cwd=repository, env=environment, capture_output=True, check=False)
            elapsed_s = time.monotonic() - begin
            print(f"{what:<22}{elapsed_s:6.1f} s, CPU {children_cpu_s() - cpu_s:4.1f} s")


main()
