"""Measure Python functions with holdpoint: declare workloads, serve them, compare two functions.

Importing it imports nothing but the standard library; torch, CuPy and NumPy are used where your code brings them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .about import __version__
from .workloads import Skip, Workload, kernel, workload

__all__ = ["HoldpointError", "Skip", "Verdict", "Workload", "__version__", "compare", "kernel", "workload"]

# A worker does not compare: it need not wait for what only comparing imports.
LATER = ("HoldpointError", "Verdict", "compare")

if TYPE_CHECKING:
    from .comparing import HoldpointError, Verdict, compare


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(".comparing", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
