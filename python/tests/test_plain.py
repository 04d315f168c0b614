"""Answers are compared as copies: nothing that an answer's own methods do changes what was answered."""

from __future__ import annotations

import enum
from collections import UserDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from datetime import datetime, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import pytest

import holdpoint
from holdpoint.answers import compare
from holdpoint.plain import AnswerError, copy_out
from holdpoint.worker import Worker
from holdpoint.workloads import Registry

numpy = pytest.importorskip("numpy")
CALLED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_called() -> Iterator[None]:
    CALLED.clear()
    yield
    assert CALLED == [], "a method of an answer was called"


def note(name: str) -> Any:
    def method(self: Any, *arguments: Any) -> Any:
        CALLED.append(name)
        return True

    return method


EAGER_TO_PLEASE: dict[str, Any] = {
    name: note(name)
    for name in ("__eq__", "__ne__", "__iter__", "__len__", "__getitem__", "__contains__", "__float__", "__abs__")
} | {"__hash__": lambda self: 1}


def eager_to_please(base: type) -> Any:
    """A subclass whose values are equal to anything."""
    return type("Eager", (base,), EAGER_TO_PLEASE)


class Point(NamedTuple):
    x: int
    y: float


@dataclass
class Box:
    corner: Point
    sizes: list[float]


@dataclass
class Slotted:
    __slots__ = ("size",)
    size: int


@dataclass
class Counted:
    size: int
    unit: ClassVar[str] = "m"
    scale: InitVar[int] = 2

    def __post_init__(self, scale: int) -> None:
        self.size *= scale


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (eager_to_please(int)(1), 2),
        (eager_to_please(float)(1.0), 2.0),
        (eager_to_please(str)("a"), "b"),
        (eager_to_please(list)([1]), [2]),
        (eager_to_please(tuple)((1,)), (2,)),
        (eager_to_please(dict)({"a": 1}), {"a": 2}),
        (eager_to_please(set)({1}), {2}),
        ([eager_to_please(int)(1)], [2]),
        ({"a": eager_to_please(int)(1)}, {"a": 2}),
        (numpy.ones(2).view(eager_to_please(numpy.ndarray)), numpy.zeros(2)),
        (numpy.array([eager_to_please(int)(1)], dtype=object), numpy.array([2], dtype=object)),
        (eager_to_please(numpy.float64)(1.0), 2.0),
    ],
)
def test_an_answer_that_is_equal_to_anything_is_wrong(got: object, want: object) -> None:
    assert not compare(got, want).passed
    # Nor may the right answer's class be the one that agrees.
    assert not compare(want, got).passed


def test_a_list_that_computes_when_it_is_asked_holds_nothing() -> None:
    class Lazy(list[int]):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.size = size

        def __iter__(self) -> Iterator[int]:
            CALLED.append("__iter__")
            return iter(range(self.size))

        def __len__(self) -> int:
            CALLED.append("__len__")
            return self.size

    assert compare(Lazy(3), [0, 1, 2]).first_bad == "answer: got [], want 3 values"


def test_work_that_is_left_for_later_is_refused() -> None:
    for later in ((i for i in range(3)), map(str, [1]), iter([1])):
        with pytest.raises(AnswerError, match=r"not computed yet; return list\(\.\.\.\) of it"):
            copy_out(later)


def test_an_answer_that_is_changed_later_stays_as_it_was() -> None:
    values, array, nested = [3, 1, 2], numpy.array([3, 1, 2]), {"a": [3, 1]}
    copies = copy_out((values, array, nested))
    values.sort()
    array.sort()
    nested["a"].sort()
    assert copies[0] == [3, 1, 2]
    assert copies[1].tolist() == [3, 1, 2]
    assert copies[2] == {"a": [3, 1]}


def test_what_the_timed_call_returned_is_compared_though_it_is_sorted_afterwards(registry: Registry) -> None:
    returned: list[list[int]] = []

    def sort_later(values: list[int]) -> list[int]:
        returned.append(list(values))
        return returned[-1]

    def right(values: list[int]) -> list[int]:
        for each in returned:
            each.sort()
        return sorted(values)

    holdpoint.workload(name="f", inputs=lambda seed: ([seed, 2, 1],), reference=right)(sort_later)
    worker = Worker(registry)
    worker.answer({"type": "prepare", "workload": "f", "seed": 3})
    first_bad = "answer[0]: got 3, want 1"
    assert worker.answer({"type": "verify", "workload": "f"})["answer"]["first_bad"] == first_bad
    worker.answer({"type": "run", "workload": "f", "seed": 3, "samples_count": 1, "calls_per_sample": 2})
    returned[-1].sort()
    bad = worker.answer({"type": "verify", "workload": "f"})["answer"]["first_bad"]
    assert bad.startswith("answer[0]: got ")
    assert bad.endswith(", want 1")


def test_plain_answers_of_many_types_are_copied() -> None:
    zoned = datetime(2020, 1, 1, tzinfo=timezone.utc)
    answers = [
        (Box(Point(1, 2.0), [3.0]), {"corner": (1, 2.0), "sizes": [3.0]}),
        (Slotted(4), {"size": 4}),
        (Colour.RED, "RED"),
        (Level.LOW, 1),
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        (deque([1, 2]), [1, 2]),
        (bytearray(b"ab"), b"ab"),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), {"a"}),
        (frozenset({1}), frozenset({1})),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("1.5"), Decimal("1.5")),
        (zoned, zoned),
        (numpy.array(["a", "b"]), ["a", "b"]),
    ]
    for answer, copied in answers:
        assert copy_out(answer) == copied
        assert type(copy_out(answer)) is type(copied)


def test_other_objects_are_refused_with_what_to_return_instead() -> None:
    class Zone(tzinfo):
        def utcoffset(self, _: Any) -> Any:
            CALLED.append("utcoffset")

        dst = tzname = utcoffset

    class Lazy(Box):
        @property
        def sizes(self) -> list[float]:
            CALLED.append("sizes")
            return [1.0]

        @sizes.setter
        def sizes(self, value: list[float]) -> None: ...

    refused: list[tuple[object, str]] = [
        (object(), "answer is a object, which cannot be compared; return numbers, strings"),
        ({"a": [object()]}, r"answer\['a'\]\[0\] is a object"),
        (UserDict(a=1), "answer is a collections.UserDict"),
        (datetime(2020, 1, 1, tzinfo=Zone()), "time in a zone of .*Zone"),
        (Lazy(Point(1, 2.0), [1.0]), "answer.sizes is no stored field"),
        (print, "builtin_function_or_method"),
    ]
    for answer, message in refused:
        with pytest.raises(AnswerError, match=message):
            copy_out(answer)
    with pytest.raises(AnswerError, match="the right answer is a object"):
        compare(1, object())


def test_an_error_of_a_type_reaches_the_user(registry: Registry) -> None:
    holdpoint.workload(name="f", reference=lambda: 1)(lambda: object())
    holdpoint.workload(name="unchecked")(lambda: object())
    worker = Worker(registry)
    for name in ("f", "unchecked"):
        worker.answer({"type": "prepare", "workload": name, "seed": 1})
    assert "which cannot be compared" in worker.answer({"type": "verify", "workload": "f"})["message"]
    run = {"type": "run", "workload": "unchecked", "seed": 1, "samples_count": 1, "calls_per_sample": 1}
    assert worker.answer(run)["type"] == "samples", "what nobody compares may be of any type"


def test_tensors_are_copied_without_methods_of_their_own() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")

    class Eager(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, *arguments: Any, **options: Any) -> Any:
            CALLED.append("__torch_function__")
            return torch.tensor(True)

    class Lazy(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, *arguments: Any, **options: Any) -> Any:
            CALLED.append("__torch_dispatch__")
            return torch.ones(2)

    with torch._C.DisableTorchFunctionSubclass():
        eager = torch.zeros(2).as_subclass(Eager)
        lazy = torch.zeros(2).as_subclass(Lazy)
    assert not compare(eager, torch.ones(2)).passed
    tensor = torch.ones(2, requires_grad=True)
    tensor.clone = note("clone")
    copied = copy_out(tensor)
    with torch.no_grad():
        tensor.fill_(5)
    assert copied.tolist() == [1.0, 1.0]
    assert type(copy_out(torch.nn.Parameter(torch.ones(1)))) is torch.Tensor
    for answer in (lazy, torch.ones(2, device="meta")):
        with pytest.raises(AnswerError, match=r"without values of its own; return a torch\.Tensor"):
            copy_out(answer)
    CALLED.clear()


def test_a_dataclass_is_what_its_objects_store() -> None:
    assert copy_out(Counted(2, 3)) == {"size": 6}
