"""Measure Python functions with holdpoint: declare workloads, serve them, compare two functions.

Importing it imports nothing but the standard library; torch, CuPy and NumPy are used where your code brings them.
"""

from .workloads import Skip, Workload, kernel, workload

__all__ = ["Skip", "Workload", "kernel", "workload"]
