from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdpoint
from holdpoint.inputs import INPUTS
from holdpoint.worker import Worker, describe, serve
from holdpoint.workloads import Registry

PACKAGE = Path(holdpoint.__file__).parents[1]


@pytest.fixture
def worker(registry: Registry) -> Worker:
    def draw(seed: int, n: int) -> tuple[list[int]]:
        return ([seed + at for at in range(n)],)

    @holdpoint.workload(inputs=draw, params={"n": [3]}, shape=lambda n: (n,), dtype="i64", reference=sum)
    def total(values: list[int]) -> int:
        return sum(values)

    return Worker(registry)


def ask(worker: Worker, kind: str, **request: Any) -> dict[str, Any]:
    return worker.answer({"type": kind, **request})


def test_hello_names_clock_and_versions(worker: Worker) -> None:
    answer = ask(worker, "hello", protocol=2)
    assert (answer["type"], answer["protocol"], answer["timer"]) == ("hello", 2, "host_monotonic")
    assert answer["environment_lock"]["python"].startswith(sys.implementation.name)
    assert answer["clock_resolution_ns"] > 0
    assert "device" not in answer


def test_another_protocol_is_refused(worker: Worker) -> None:
    assert "protocol 3 is not spoken here" in ask(worker, "hello", protocol=3)["message"]


def test_declared_workloads_are_listed(worker: Worker) -> None:
    expected = {"name": "total.n_3", "op": "total", "shape": [3], "dtype": "i64"}
    assert ask(worker, "list")["workloads"] == [expected]


def test_a_session_measures_and_verifies(worker: Worker) -> None:
    assert ask(worker, "prepare", workload="total.n_3", seed=5) == {"type": "prepared", "workload": "total.n_3"}
    answer = ask(worker, "run", workload="total.n_3", seed=6, samples_count=2, calls_per_sample=4)
    assert (answer["type"], answer["calls_per_sample"], len(answer["elapsed_ns"])) == ("samples", 4, 2)
    assert answer["untimed_ns"] > 0, "drawing and warming up take time that is not in the samples"
    assert ask(worker, "verify", workload="total.n_3")["answer"]["passed"]
    assert ask(worker, "release", workload="total.n_3")["type"] == "released"
    assert "has not been prepared" in ask(worker, "verify", workload="total.n_3")["message"]


def test_an_answer_remembered_from_an_earlier_seed_is_wrong(registry: Registry) -> None:
    remembered: list[int] = []

    def cheat(x: int) -> int:
        remembered.append(x)
        return remembered[0]

    holdpoint.workload(name="f", inputs=lambda seed: (seed,), reference=lambda x: x)(cheat)
    worker = Worker(registry)
    ask(worker, "prepare", workload="f", seed=1)
    assert ask(worker, "verify", workload="f")["answer"]["passed"]
    ask(worker, "run", workload="f", seed=2, samples_count=1, calls_per_sample=1)
    assert ask(worker, "verify", workload="f")["answer"]["first_bad"].startswith("answer: got 1, want ")


def test_the_reference_sees_arguments_as_they_were_drawn(registry: Registry) -> None:
    def shuffle(values: list[int]) -> list[int]:
        values[0] += 1
        return list(values)

    holdpoint.workload(name="f", inputs=lambda seed: ([0],), reference=lambda values: [values[0] + 1])(shuffle)
    worker = Worker(registry)
    ask(worker, "prepare", workload="f", seed=1)
    ask(worker, "run", workload="f", seed=1, samples_count=1, calls_per_sample=INPUTS)
    answer = ask(worker, "verify", workload="f")["answer"]
    assert answer["first_bad"] == "answer[0]: got 2, want 1", "a later call saw what the first had changed"


def test_what_remembers_is_listed_as_such(registry: Registry) -> None:
    holdpoint.workload(name="f", remembers=True)(lambda: 1)
    (listed,) = ask(Worker(registry), "list")["workloads"]
    assert listed["remembers"] is True


def test_another_variant_must_answer_as_the_plain_function(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdpoint.worker.make_variant", lambda function, variant: lambda x: x + 1)
    holdpoint.workload(name="f", inputs=lambda seed: (seed,), variants=["compiled"])(lambda x: x)
    worker = Worker(registry)
    ask(worker, "prepare", workload="f.compiled", seed=1)
    assert ask(worker, "verify", workload="f.compiled")["answer"]["first_bad"] == "answer: got 2, want 1"


def test_without_a_reference_nothing_is_claimed(registry: Registry) -> None:
    holdpoint.workload(name="f")(lambda: 1)
    worker = Worker(registry)
    ask(worker, "prepare", workload="f", seed=1)
    assert ask(worker, "verify", workload="f")["answer"] is None


def test_a_workload_that_cannot_run_here_is_skipped(registry: Registry) -> None:
    def draw(seed: int) -> None:
        raise holdpoint.Skip("needs the data set")

    holdpoint.workload(name="f", inputs=draw)(lambda: 1)
    answer = ask(Worker(registry), "prepare", workload="f", seed=1)
    assert answer == {"type": "skipped", "workload": "f", "reason": "needs the data set"}


def test_an_error_says_where_and_the_worker_lives_on(worker: Worker, registry: Registry) -> None:
    holdpoint.workload(name="bad")(lambda: 1 // 0)
    ask(worker, "prepare", workload="bad", seed=1)
    answer = ask(worker, "run", workload="bad", seed=1, samples_count=1, calls_per_sample=1)
    assert answer["type"] == "error"
    assert "ZeroDivisionError" in answer["message"]
    assert "test_worker.py:" in answer["message"]
    assert ask(worker, "prepare", workload="total.n_3", seed=1)["type"] == "prepared"
    assert "declared: total.n_3, bad" in ask(worker, "prepare", workload="other", seed=1)["message"]
    assert "'dance' is not known here" in ask(worker, "dance")["message"]


def test_work_and_kernel_are_told_when_prepared(registry: Registry) -> None:
    kernel = {"op_name": "f", "kernel_name": "f", "shape_bucket": "", "selection_source": "heuristic"}
    holdpoint.workload(name="f", work={"flops": 2, "item": "rows"}, kernel=lambda: kernel)(lambda: 1)
    answer = ask(Worker(registry), "prepare", workload="f", seed=1)
    assert (answer["work"], answer["kernel"]) == ({"flops": 2, "item": "rows"}, kernel)


def test_answers_repeat_the_number_of_the_request(worker: Worker) -> None:
    requests = ['{"id":4,"type":"list"}\n', '{"id":5,"type":"bye"}\n', '{"id":6,"type":"list"}\n']
    answers = io.StringIO()
    serve(worker, requests, answers)
    lines = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert [(line["id"], line["type"]) for line in lines] == [(4, "workloads"), (5, "bye")]


def test_an_error_is_one_line() -> None:
    assert describe(ValueError("two\nlines")) == "ValueError: two lines"
    assert describe(KeyError("no workload")) == "KeyError: no workload"


def talk(source: Path, *requests: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "holdpoint", "serve", str(source)],
        input="".join(json.dumps({"id": at, **request}) + "\n" for at, request in enumerate(requests)),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin"},
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_what_a_function_prints_does_not_disturb_the_protocol(tmp_path: Path) -> None:
    source = tmp_path / "bench.py"
    source.write_text(
        "import os, holdpoint\nprint('on import')\n\n@holdpoint.workload\ndef loud():\n"
        "    print('from Python', flush=True)\n    os.write(1, b'from C')\n"
    )
    run = {"type": "run", "workload": "loud", "seed": 1, "samples_count": 1, "calls_per_sample": 1}
    prepare = {"type": "prepare", "workload": "loud", "seed": 1}
    answers, errors = talk(source, prepare, {"type": "verify", "workload": "loud"}, run)
    assert [answer["type"] for answer in answers] == ["prepared", "verified", "samples"]
    assert "on import" in errors
    assert "from Python" in errors
    assert "from C" in errors


def test_a_file_that_cannot_be_imported_is_an_answer(tmp_path: Path) -> None:
    source = tmp_path / "bench.py"
    source.write_text("import holdpoint\nimport a_module_that_is_not_there\n")
    answers, _ = talk(source, {"type": "hello", "protocol": 2}, {"type": "bye"})
    assert answers[0]["type"] == "error"
    assert "a_module_that_is_not_there" in answers[0]["message"]
    assert "bench.py:2" in answers[0]["message"]
    assert answers[1]["type"] == "bye"
