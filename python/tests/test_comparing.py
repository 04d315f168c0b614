from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import holdpoint
from holdpoint import comparing
from holdpoint.comparing import HoldpointError, Verdict, read_verdict


def few(values: list[int]) -> int:
    return sum(values)


def many(values: list[int]) -> int:
    return max(sum(values) for _ in range(50))


def test_a_function_with_fifty_times_the_work_is_slower(binary: str) -> None:
    verdict = holdpoint.compare(few, many, inputs=(list(range(300)),))
    assert verdict.verdict == "regressed"
    assert not verdict.passed
    assert verdict.ratio is not None
    assert verdict.interval is not None
    assert verdict.interval[0] <= verdict.ratio <= verdict.interval[1]
    assert verdict.comparison["kind"] == "comparison"
    assert "few → many" in str(verdict)
    assert "<li>few → many</li>" in verdict.page
    assert sys.executable not in verdict.page
    assert "&lt;svg" in verdict._repr_html_()


def test_local_functions_and_drawn_inputs_are_compared(binary: str, tmp_path: Path) -> None:
    size = 200
    seeds: list[int] = []

    def draw(seed: int) -> tuple[list[int]]:
        seeds.append(seed)
        return ([seed] * size,)

    verdict = holdpoint.compare(
        lambda values: [sum(values) for _ in range(5)],
        lambda values: [sum(values)] * 5,
        inputs=draw,
        artifacts=tmp_path / "kept",
    )
    assert verdict.verdict == "improved"
    assert verdict.passed
    assert (tmp_path / "kept" / "ab.json").is_file()
    assert seeds == [], "the calls are made in other processes"


def test_another_answer_is_broken_unless_nobody_checks(binary: str) -> None:
    verdict = holdpoint.compare(lambda: [1.0], lambda: [2.0])
    assert verdict.verdict == "broken"
    assert "answer[0]: got 2.0, want 1.0" in verdict.reason
    unchecked = holdpoint.compare(lambda: [1.0], lambda: [2.0], check=False, budget=0.5)
    assert unchecked.verdict != "broken"


def test_a_failing_function_is_broken_with_its_error(binary: str) -> None:
    verdict = holdpoint.compare(lambda: 1, lambda: 1 // 0)
    assert verdict.verdict == "broken"
    assert "ZeroDivisionError" in verdict.reason


def test_where_forking_is_not_possible_this_process_serves(binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "can_fork", lambda: False)
    processes = set()

    def note(values: list[int]) -> int:
        processes.add(os.getpid())
        return sum(values)

    verdict = holdpoint.compare(note, many, inputs=(list(range(300)),))
    assert verdict.verdict == "regressed"
    assert processes == {os.getpid()}


def test_bad_options_are_an_error_with_holdpoints_words(binary: str) -> None:
    with pytest.raises(HoldpointError, match="abc"):
        holdpoint.compare(few, many, inputs=([1],), tolerance="abc")
    with pytest.raises(ValueError, match="inputs must be the tuple"):
        holdpoint.compare(few, many, inputs=[1])  # type: ignore[arg-type]


def test_the_binary_is_looked_for_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "holdpoint"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    monkeypatch.delenv("HOLDPOINT_BINARY", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setenv("PATH", str(program.parent))
    assert comparing.find_binary() == str(program)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HoldpointError, match=r"neither as .*elsewhere/holdpoint nor on the PATH"):
        comparing.find_binary()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    assert comparing.find_binary() == str(program)
    monkeypatch.setenv("HOLDPOINT_BINARY", str(tmp_path / "none"))
    with pytest.raises(HoldpointError, match="HOLDPOINT_BINARY names"):
        comparing.find_binary()


def test_a_verdict_without_units_has_no_ratio() -> None:
    comparison = {"verdict": "skipped", "checks": []}
    assert read_verdict(comparison, "text", "") == Verdict("skipped", "", None, None, 0.0, comparison, "text", "")


def test_sides_without_names_of_their_own_are_base_and_head() -> None:
    assert comparing.name_sides(few, many) == ("few", "many")
    assert comparing.name_sides(few, few) == ("base", "head")
    assert comparing.name_sides(few, lambda: 1) == ("base", "head")
