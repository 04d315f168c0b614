"""Writing a suite file for declared workloads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .workloads import Registry, Workload


def render(sources: Sequence[str], registry: Registry, *, single_threaded: bool = False) -> str:
    """A suite that serves the sources and measures all of their workloads."""
    command = ["python3", "-m", "holdpoint", "serve", *sources]
    name = Path(sources[0]).stem
    head = f"schema_version = 1\nname = {quote(name)}\n\n[workers.py]\ncommand = {quote(command)}\n"
    if single_threaded:
        head += "single_threaded = true\n"
    if any(workload.timer in ("cuda_graph", "cuda_events") for workload in registry.workloads.values()):
        # A process on a device takes long to start; buffers are allocated anew for each unit all the same.
        # Workloads timed by the host's clock get processes of their own whatever this says.
        head += "units_per_process = 8\n"
    return head + "".join(render_workload(workload) for workload in registry.workloads.values())


def render_workload(workload: Workload) -> str:
    keys = {
        "name": workload.name,
        "worker": "py",
        "op": workload.op,
        "shape": list(workload.shape),
        "dtype": workload.dtype,
    }
    lines = [f"{key} = {quote(value)}" for key, value in keys.items() if not (key == "shape" and not value)]
    plain = {key: value for key, value in workload.params.items() if isinstance(value, (bool, int, float, str))}
    if plain:
        pairs = ", ".join(f"{key} = {quote(value)}" for key, value in plain.items())
        lines.append(f"params = {{ {pairs} }}")
    return "\n[[workload]]\n" + "\n".join(lines) + "\n"


def quote(value: object) -> str:
    """TOML's strings, numbers and lists of them are written as JSON's."""
    return json.dumps(value, ensure_ascii=False)
