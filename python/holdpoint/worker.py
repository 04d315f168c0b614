"""The worker: answers requests of the protocol (docs/worker-protocol.md) for the declared workloads."""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from .about import VERSION
from .answers import Answer, compare
from .clocks import Calls, HostCalls, clock_resolution_ns
from .workloads import Registry, Skip, Workload

PROTOCOL = 2
Message = dict[str, Any]


@dataclass
class Prepared:
    """A workload with the arguments of a seed."""

    workload: Workload
    calls: Calls
    seed: int
    # The right answer for that seed, once somebody has asked.
    want: object = None
    has_want: bool = False

    def load(self, seed: int) -> None:
        self.calls.load(self.workload.draw(seed))
        self.seed, self.want, self.has_want = seed, None, False

    def verify(self) -> Answer | None:
        if self.workload.reference is None:
            return None
        got = self.calls.answer()
        if not self.has_want:
            # Drawn again: a function that changes its arguments must not change those of the reference.
            self.want, self.has_want = self.workload.reference(*self.workload.draw(self.seed)), True
        return compare(got, self.want, self.workload.tolerance)


class Worker:
    """Answers requests, one by one. Subclasses add workloads of other kinds by overriding `start`."""

    def __init__(self, registry: Registry, *, name: str = "python", count_waits: bool = True) -> None:
        self.registry = registry
        self.name = name
        self.count_waits = count_waits
        self.prepared: dict[str, Prepared] = {}
        self.handlers: dict[str, Callable[[Message], Message]] = {
            "hello": self.hello,
            "list": self.list,
            "prepare": self.prepare,
            "run": self.run,
            "verify": self.verify,
            "release": self.release,
            "bye": lambda _: {"type": "bye"},
        }

    def start(self, workload: Workload) -> Calls:
        """Makes the workload's calls timeable, without arguments yet."""
        return HostCalls(workload.bind(workload.function), count_waits=self.count_waits)

    def environment_lock(self) -> dict[str, str]:
        """Settings that times depend on; runs in which they differ are not compared."""
        return {"python": f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"}

    def hello(self, request: Message) -> Message:
        if request.get("protocol") != PROTOCOL:
            raise ValueError(
                f"protocol {request.get('protocol')} is not spoken here, only {PROTOCOL}; update one of both"
            )
        return {
            "type": "hello",
            "protocol": PROTOCOL,
            "name": self.name,
            "version": VERSION,
            "timer": "host_monotonic",
            "clock_resolution_ns": clock_resolution_ns(),
            "environment_lock": self.environment_lock(),
        }

    def list(self, _: Message) -> Message:
        return {"type": "workloads", "workloads": [each.describe() for each in self.registry.workloads.values()]}

    def prepare(self, request: Message) -> Message:
        name = request["workload"]
        workload = self.find(name)
        self.drop(name)
        prepared = Prepared(workload, self.start(workload), request["seed"])
        prepared.load(request["seed"])
        self.prepared[name] = prepared
        # What exists by now lives on; the collections that the calls cause need not look at it.
        gc.collect()
        gc.freeze()
        answer: Message = {"type": "prepared", "workload": name}
        if workload.work is not None:
            answer["work"] = dict(workload.work)
        if (kernel := workload.describe_kernel()) is not None:
            answer["kernel"] = dict(kernel)
        return answer

    def run(self, request: Message) -> Message:
        prepared = self.find_prepared(request["workload"])
        if request["seed"] != prepared.seed or not prepared.calls.is_loaded():
            prepared.load(request["seed"])
        samples = prepared.calls.take(request["samples_count"], request["calls_per_sample"])
        counts = {"workload": request["workload"], "calls_per_sample": request["calls_per_sample"]}
        return {"type": "samples", **counts, **samples.to_json()}

    def verify(self, request: Message) -> Message:
        answer = self.find_prepared(request["workload"]).verify()
        verified = None if answer is None else answer.to_json()
        return {"type": "verified", "workload": request["workload"], "answer": verified}

    def release(self, request: Message) -> Message:
        self.drop(request["workload"])
        return {"type": "released", "workload": request["workload"]}

    def find(self, name: str) -> Workload:
        workload = self.registry.workloads.get(name)
        if workload is None:
            known = ", ".join(self.registry.workloads) or "none"
            raise KeyError(f"no workload {name!r} is declared here; declared: {known}")
        return workload

    def find_prepared(self, name: str) -> Prepared:
        if name not in self.prepared:
            raise KeyError(f"workload {name!r} has not been prepared")
        return self.prepared[name]

    def drop(self, name: str) -> None:
        if (old := self.prepared.pop(name, None)) is not None:
            old.calls.close()

    def answer(self, request: Message) -> Message:
        """The answer to a request; a failure is an answer as well."""
        handle = self.handlers.get(request.get("type", ""))
        if handle is None:
            return {"type": "error", "message": f"{request.get('type')!r} is not known here"}
        try:
            return handle(request)
        except Skip as skip:
            return {
                "type": "skipped",
                "workload": request.get("workload") or request.get("op", ""),
                "reason": str(skip),
            }
        except Exception as error:
            return self.describe_error(error)

    def describe_error(self, error: Exception) -> Message:
        traceback.print_exc(file=sys.stderr)
        return {"type": "error", "message": describe(error)}


class Broken:
    """Stands in for a worker whose files could not be imported: every answer says why."""

    def __init__(self, error: BaseException) -> None:
        self.message = describe(error)

    def answer(self, request: Message) -> Message:
        if request.get("type") == "bye":
            return {"type": "bye"}
        return {"type": "error", "message": self.message, "fatal": True}


def serve(worker: Worker | Broken, requests: Iterable[str], answers: IO[str]) -> None:
    """Answers line by line until `bye`, or until there are no more."""
    for line in requests:
        request: Mapping[str, Any] = json.loads(line)
        answer = worker.answer(dict(request))
        answers.write(json.dumps({"id": request.get("id", 0), **answer}, allow_nan=False) + "\n")
        answers.flush()
        if answer["type"] == "bye":
            return


@contextmanager
def protocol_output() -> Any:
    """Stdout for the protocol alone: whatever else is printed goes to stderr."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        yield answers


def describe(error: BaseException) -> str:
    """The error in one line, with the place in the user's code where it happened."""
    what = error.args[0] if isinstance(error, KeyError) and error.args else error
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_ours(frame.filename)]
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {what}{where}".replace("\n", " ")


def is_ours(filename: str) -> bool:
    return os.path.dirname(os.path.abspath(filename)).startswith(os.path.dirname(os.path.abspath(__file__)))
