"""The fixture `benchmark`, registered only where pytest-benchmark is not in use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .pytest_fixture import Benchmark, open_benchmark


@pytest.fixture
def benchmark(request: pytest.FixtureRequest) -> Iterator[Benchmark]:
    """Times a function: `benchmark(function, *arguments)`, as pytest-benchmark does."""
    yield from open_benchmark(request)
