"""Runs a command beside a process that has imported torch and Triton and forks for each worker: preload.py COMMAND…

In the command's words, `{base}` becomes the command of a worker that serves holdpoint.ops.suite, `{slowed}` that of one
that serves slowed.py in this folder; the file of `--suite` is used with `{base}`. Every worker is a process of its own,
with a CUDA context of its own; only the seconds that the imports take are shared.
"""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdpoint import comparing, workloads
from holdpoint.ops import suite  # noqa: F401 (it declares the workloads)
from holdpoint.serving import Server
from holdpoint.worker import Worker

COMMAND = 'command = ["python3", "-m", "holdpoint", "serve", "holdpoint.ops.suite"]'


def load_slowed() -> workloads.Registry:
    """The workloads of slowed.py, which replaces some of those that are declared already."""
    plain = dict(workloads.REGISTRY.workloads)
    runpy.run_path(str(Path(__file__).with_name("slowed.py")))
    slowed = workloads.Registry(dict(workloads.REGISTRY.workloads))
    workloads.REGISTRY.workloads.update(plain)
    return slowed


def make_worker(registry: workloads.Registry) -> Worker:
    # holdpoint looks at the connector's waits, which are not those of the process that makes the calls.
    return Worker(registry, count_waits=False)


def main() -> int:
    sides = {"base": workloads.Registry(dict(workloads.REGISTRY.workloads)), "slowed": load_slowed()}
    with tempfile.TemporaryDirectory(prefix="holdpoint-") as folder:
        path = Path(folder) / "socket"
        workers: dict[str, Callable[[], Worker]] = {name: partial(make_worker, each) for name, each in sides.items()}
        server = Server(path, workers, is_forking=True)
        commands = {f"{{{name}}}": comparing.connector(path, name) for name in sides}
        words = [commands.get(word, word) for word in sys.argv[1:]]
        if "--suite" in words:
            at = words.index("--suite") + 1
            text = Path(words[at]).read_text()
            assert COMMAND in text, f"{words[at]} does not have {COMMAND}"
            words[at] = f"{folder}/suite.toml"
            quoted = ", ".join(f'"{word}"' for word in commands["{base}"].split())
            Path(words[at]).write_text(text.replace(COMMAND, f"command = [{quoted}]"))
        # An interrupt is for the command, which ends with what it has measured.
        signal.signal(signal.SIGINT, lambda *_: None)
        try:
            return subprocess.run(words, check=False).returncode
        finally:
            server.close()


if __name__ == "__main__":
    sys.exit(main())
