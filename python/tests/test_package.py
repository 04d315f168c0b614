"""The package as it is shipped, and the examples that use it."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

import holdpoint

FOLDER = Path(__file__).parents[1]
ROOT = FOLDER.parent
SETTINGS = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))


def run_python(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )


def test_the_version_is_that_of_the_binary() -> None:
    found = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    assert holdpoint.__version__ == found[1]


def test_importing_it_imports_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import holdpoint, holdpoint.worker, holdpoint.comparing\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'holdpoint'}))"
    )
    done = run_python("-c", code)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_plug_in_that_pytest_loads_is_there() -> None:
    for value in SETTINGS["project"]["entry-points"]["pytest11"].values():
        assert hasattr(importlib.import_module(value), "pytest_addoption")


def test_names_that_are_offered_exist_and_others_do_not() -> None:
    for name in holdpoint.__all__:
        assert getattr(holdpoint, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'measure'"):
        holdpoint.measure  # noqa: B018


@pytest.mark.parametrize("name", ["python-function", "torch-module"])
def test_the_suite_of_an_example_names_what_it_declares(name: str) -> None:
    if name == "torch-module":
        pytest.importorskip("torch", reason="torch is not installed")
    done = run_python("-m", "holdpoint", "suite", "bench.py", folder=ROOT / "examples" / name)
    assert done.returncode == 0, done.stderr
    suite = tomllib.loads((ROOT / "examples" / name / "perf.toml").read_text(encoding="utf-8"))
    assert suite["workload"] == tomllib.loads(done.stdout)["workload"]


def test_the_example_of_a_function_is_measured_and_right(binary: str, tmp_path: Path) -> None:
    folder = ROOT / "examples" / "python-function"
    python = tmp_path / "bin"
    python.mkdir()
    (python / "python3").symlink_to(sys.executable)
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
    words = [binary, "run", "--suite", str(folder / "perf.toml"), "--output", str(tmp_path / "report.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "ok: 2 workloads measured" in done.stdout
    assert "the answer was not checked" not in done.stdout


def test_the_example_notebook_runs(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    monkeypatch.setenv("HOLDPOINT_BINARY", binary)
    notebook = nbformat.read(ROOT / "examples" / "notebook" / "compare.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    printed, _, shown = [cell.outputs[-1] for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert "by_index → by_generator" in printed["text"]
    assert "<iframe srcdoc=" in shown["data"]["text/html"]
