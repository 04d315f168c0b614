"""Fixtures that tests share."""

from __future__ import annotations

import math

import pytest

from holdpoint import audits, comparing, workloads
from holdpoint.workloads import Registry


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """An empty registry, in which workloads are declared during the test."""
    own = Registry()
    monkeypatch.setattr(workloads, "REGISTRY", own)
    return own


@pytest.fixture
def binary() -> str:
    """holdpoint's own program."""
    try:
        return comparing.find_binary()
    except comparing.HoldpointError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture(autouse=True)
def no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits come at random; tests that are about them ask for them."""
    monkeypatch.setattr(audits, "chance", lambda: math.inf)
