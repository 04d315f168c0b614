from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from holdpoint.answers import compare, share_memory, spoil, spoil_free_memory

numpy = pytest.importorskip("numpy")
NAN = math.nan


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (1, 1),
        (1.0, 1),
        (0.1 + 0.2, 0.3),
        (math.inf, math.inf),
        (Fraction(1, 3), Fraction(1, 3)),
        ("text", "text"),
        (None, None),
        ({1, 2}, {2, 1}),
        ([1, (2.0, "x")], (1, [2.0, "x"])),
        ({"a": [1.0], "b": {}}, {"b": {}, "a": [1.0]}),
        ([], []),
        (1 + 2j, 1 + 2j),
        (numpy.array([1.0, math.inf]), [1.0, math.inf]),
        ([1.0, 2.0], numpy.array([1.0, 2.0])),
        (numpy.float32(0.1), 0.1),
        (numpy.zeros((0, 3)), numpy.zeros((0, 3))),
    ],
)
def test_equal_answers_pass(got: object, want: object) -> None:
    answer = compare(got, want)
    assert answer.passed, answer.first_bad


@pytest.mark.parametrize(
    ("got", "want", "first_bad"),
    [
        (2, 1, "answer: got 2, want 1"),
        (10**20 + 1, 10**20, "want 1000"),
        (1.001, 1.0, "answer: got 1.001, want 1.0"),
        (NAN, NAN, "answer: got nan, want nan"),
        (True, 1, "want the number 1"),
        ("1", 1, "got '1', want the number 1"),
        (None, 0, "got None"),
        ([1, 2], [1, 3], "answer[1]: got 2, want 3"),
        ([1], [1, 2], "want 2 values"),
        ("ab", ["a", "b"], "want 2 values"),
        ({"a": 1}, {"b": 1}, "the keys differ"),
        ({"a": [0]}, {"a": [1]}, "answer['a'][0]: got 0, want 1"),
        ([1, 2], {1, 2}, "answer: got [1, 2], want {1, 2}"),
        (numpy.array([1.0, NAN]), numpy.array([1.0, NAN]), "answer[1]: got nan, want nan"),
        (numpy.array([1.0, 2.0]), numpy.array([1.0, 2.1]), "answer[1]: got 2.0, want 2.1"),
        (numpy.zeros(2), numpy.zeros(3), "got shape [2], want [3]"),
        (numpy.array([-math.inf]), numpy.array([math.inf]), "got -inf, want inf"),
        (numpy.array([3]), numpy.array([4]), "got 3.0, want 4.0"),
    ],
)
def test_other_answers_fail_and_the_first_bad_value_is_named(got: object, want: object, first_bad: str) -> None:
    answer = compare(got, want)
    assert not answer.passed
    assert answer.first_bad is not None
    assert first_bad in answer.first_bad


def test_the_tolerance_is_absolute_plus_relative() -> None:
    assert compare(101.4, 100.0, (0.5, 0.01)).passed
    assert not compare(101.6, 100.0, (0.5, 0.01)).passed
    assert compare(numpy.array([101.4]), numpy.array([100.0]), (0.5, 0.01)).passed
    assert not compare(numpy.array([101.6]), numpy.array([100.0]), (0.5, 0.01)).passed


def test_errors_are_the_largest_and_every_value_counts() -> None:
    answer = compare([1.0, numpy.array([2.5, 4.0])], [1.25, numpy.array([2.0, 4.0])], (1.0, 0.0))
    assert (answer.passed, answer.values_count, answer.max_abs_err, answer.max_rel_err) == (True, 3, 0.5, 0.25)


def test_an_infinite_error_is_null_in_json() -> None:
    assert compare(NAN, 1.0).to_json() == {
        "passed": False,
        "values_count": 1,
        "max_abs_err": None,
        "max_rel_err": None,
        "first_bad": "answer: got nan, want 1.0",
    }


def test_the_element_type_gives_the_tolerance() -> None:
    off_by = {"float16": 5e-3, "float32": 5e-6, "float64": 5e-10}
    for dtype, error in off_by.items():
        want = numpy.ones(3, dtype=dtype)
        assert compare(numpy.full(3, 1 + error).astype(dtype), want).passed
        assert not compare(numpy.full(3, 1 + 10 * error).astype(dtype), want).passed


def test_spoiled_arrays_are_no_answer() -> None:
    kept: Any = {"a": [numpy.ones(2), numpy.ones(2, dtype="int32")], "b": "text"}
    spoil(kept)
    assert numpy.isnan(kept["a"][0]).all()
    assert (kept["a"][1] == numpy.iinfo("int32").min).all()


def test_an_answer_within_an_argument_is_noticed() -> None:
    x = numpy.ones(4)
    assert share_memory([x[1:]], (x,))
    assert not share_memory(x + 1, (x,))
    assert not share_memory("text", (x, 3))


def test_torch_tensors_compare_with_each_other_and_with_lists() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert compare(torch.tensor([1.0, 2.0]), [1.0, 2.0]).passed
    assert compare(torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([1.01])).passed
    assert not compare(torch.tensor([1.0]), torch.tensor([1.01])).passed
    assert not compare(torch.tensor([math.nan]), torch.tensor([math.nan])).passed
    tensor = torch.ones(2, requires_grad=True)
    spoil(tensor)
    assert bool(tensor.isnan().all())


def test_memory_for_the_next_answers_is_spoiled(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[Any] = []

    def empty_like(array: Any) -> Any:
        pieces.append(numpy.full(array.shape, 5.0))
        return pieces[-1]

    monkeypatch.setattr(numpy, "empty_like", empty_like)
    answer = numpy.ones(3)
    spoil_free_memory([answer, "text"])
    assert len(pieces) == 4
    assert all(numpy.isnan(piece).all() for piece in pieces)
    assert answer.tolist() == [1.0, 1.0, 1.0], "what is held stays"
