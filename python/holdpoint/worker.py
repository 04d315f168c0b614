"""The worker: answers requests of the protocol (docs/worker-protocol.md) for the declared workloads."""

from __future__ import annotations

import gc
import json
import mmap
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

from . import devices, tensors
from .about import __version__
from .answers import Answer, arrays_in, compare_copies, is_array, spoil
from .audits import RANDOM, Auditor
from .clocks import NO_ANSWER, Calls, HostCalls, Samples, clock_resolution_ns
from .device_audits import BadTimeError
from .device_calls import DeviceCalls, WaitedCalls
from .inputs import count_inputs, other_seeds
from .plain import copy_out
from .variants import make_variant
from .workloads import Function, Kernel, Registry, Skip, Workload

PROTOCOL = 2
Message = dict[str, Any]


@dataclass
class Prepared:
    """A workload with the arguments of a seed."""

    workload: Workload
    calls: Calls
    seed: int
    # Copies of the right answers for the inputs of a seed, once somebody has asked.
    wants: list[object] | None = None
    wanted_seed: int | None = None
    # How many inputs the calls of a request take in turn.
    inputs_count: int = 1
    # A copy of the answer that the last timed call left.
    got: object = NO_ANSWER
    auditor: Auditor = field(init=False)

    def __post_init__(self) -> None:
        self.auditor = Auditor(self.calls, self.load_other)
        # Other kinds of calls have buffers for one; where a cache is measured, it is the cache of one.
        if type(self.calls) is HostCalls and self.workload.inputs is not None and not self.workload.remembers:
            self.inputs_count = count_inputs(self.draw, self.seed)

    def draw(self, seed: int) -> tuple[object, ...]:
        arguments = self.workload.draw(seed)
        if self.workload.timer is None and any(map(devices.is_on_device, arrays_in(arguments))):
            raise ValueError(
                f"{self.workload.name}: its arguments are on a GPU, where a call returns before its work is done; "
                'declare timer="cuda_graph", "cuda_events" or "host_monotonic"'
            )
        return arguments

    def draw_inputs(self, seed: int) -> tuple[tuple[object, ...], list[tuple[object, ...]]]:
        """The arguments of a seed, and those that calls take in turn with them."""
        self.seed, self.wants, self.got = seed, None, NO_ANSWER
        others = [self.draw(other) for other in other_seeds(seed, self.inputs_count)]
        # Last, so that the global generators are as drawing these leaves them.
        return self.draw(seed), others

    def load(self, seed: int) -> float | None:
        """Loads the arguments of a seed; the time of the first call with them, if it was taken."""
        return self.auditor.load(*self.draw_inputs(seed))

    def load_other(self) -> float | None:
        """The same for a seed that nobody can foresee; small enough for every generator."""
        return self.auditor.load_timed(*self.draw_inputs(RANDOM.getrandbits(31)))

    @property
    def answered_seed(self) -> int:
        """The seed of the inputs that the last answer is for."""
        at = self.calls.answered if isinstance(self.calls, HostCalls) else 0
        return [self.seed, *other_seeds(self.seed, self.inputs_count)][at]

    def run(self, seed: int, samples_count: int, calls_per_sample: int) -> Samples:
        begin_ns, first_ns = time.perf_counter_ns(), None
        if seed != self.seed or not self.calls.is_loaded():
            first_ns = self.load(seed)
        self.auditor.audit_device()
        self.got = NO_ANSWER
        samples = self.calls.take(samples_count, calls_per_sample)
        self.keep_answer()
        request_ns = time.perf_counter_ns() - begin_ns
        self.auditor.note(samples, calls_per_sample, request_ns)
        if not self.workload.remembers:
            samples.first_ns = None if first_ns is None else max(1, round(first_ns))
            self.auditor.judge(first_ns, samples, calls_per_sample)
        # How long drawing takes varies, on a busy machine by more than the samples take: told, it is not mistaken for
        # time that the clock did not see.
        samples.untimed_ns = max(0, time.perf_counter_ns() - begin_ns - sum(samples.elapsed_ns))
        return samples

    def keep_answer(self) -> None:
        """Copies the last answer at once, before it can change; on a device, the copy would show in the peak."""
        if self.oracles() and not isinstance(self.calls, (DeviceCalls, WaitedCalls)):
            self.got = copy_out(self.calls.answer())

    def verify(self) -> Answer | None:
        oracles = self.oracles()
        if not oracles:
            return None
        got = copy_out(self.calls.answer()) if self.got is NO_ANSWER else self.got
        if self.wants is None or self.wanted_seed != self.answered_seed:
            self.wanted_seed = self.answered_seed
            # Drawn again: a function that changes its arguments must not change those of the reference.
            wants = (oracle(*self.workload.draw(self.wanted_seed)) for oracle in oracles)
            self.wants = [copy_out(want, "the right answer") for want in wants]
        answers = [compare_copies(got, want, self.workload.tolerance) for want in self.wants]
        first = getattr(self.calls, "first", NO_ANSWER)
        if first is not NO_ANSWER:
            answers += [self.compare_first(first, want) for want in self.wants]
        return next((answer for answer in answers if not answer.passed), answers[0])

    def compare_first(self, first: object, want: object) -> Answer:
        """The answer as the timed stream had it right after the first call on these inputs."""
        answer = compare_copies(first, want, self.workload.tolerance)
        if answer.first_bad is not None:
            answer.first_bad += " (right after its call, on the timed stream; is the work launched on another one?)"
        return answer

    def oracles(self) -> list[Function]:
        """The reference, and for another way of calling the function the plain one."""
        workload, found = self.workload, []
        if workload.reference is not None:
            found.append(workload.reference)
        if workload.variant not in (None, "eager"):
            found.append(workload.bind(workload.function))
        return found


class Worker:
    """Answers requests, one by one. Subclasses add workloads of other kinds by overriding `start`."""

    def __init__(self, registry: Registry, *, name: str = "python") -> None:
        self.registry = registry
        self.name = name
        self.prepared: dict[str, Prepared] = {}
        self.handlers: dict[str, Callable[[Message], Message]] = {
            "hello": self.hello,
            "list": self.list,
            "prepare": self.prepare,
            "run": self.run,
            "verify": self.verify,
            "release": self.release,
            "evaluate": self.evaluate,
            "bye": lambda _: {"type": "bye"},
        }

    def start(self, workload: Workload) -> Calls:
        """Makes the workload's calls timeable, without arguments yet."""
        function = workload.bind(make_variant(workload.function, workload.variant))
        if workload.timer is None:
            return HostCalls(function)
        if workload.timer == "host_monotonic":
            return WaitedCalls(function)
        return DeviceCalls(function, as_graph=workload.timer == "cuda_graph", is_cold=workload.cache == "cold")

    def environment_lock(self) -> dict[str, str]:
        """Settings that times depend on; runs in which they differ are not compared."""
        version = ".".join(map(str, sys.version_info[:3]))
        return {"python": f"{sys.implementation.name} {version}", **devices.environment_lock()}

    def hello(self, request: Message) -> Message:
        if request.get("protocol") != PROTOCOL:
            raise ValueError(
                f"protocol {request.get('protocol')} is not spoken here, only {PROTOCOL}; update one of both"
            )
        answer: Message = {
            "type": "hello",
            "protocol": PROTOCOL,
            "name": self.name,
            "version": __version__,
            "timer": "host_monotonic",
            "clock_resolution_ns": clock_resolution_ns(),
            "process_id": os.getpid(),
            "environment_lock": self.environment_lock(),
        }
        timers = {workload.timer for workload in self.registry.workloads.values()} - {None}
        if timers:
            answer["clock_resolution_ns"] = max(answer["clock_resolution_ns"], devices.EVENT_RESOLUTION_NS)
            with suppress(Skip):
                answer["device"] = devices.open_device().describe()
        return answer

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
        samples = prepared.run(request["seed"], request["samples_count"], request["calls_per_sample"])
        counts = {"workload": request["workload"], "calls_per_sample": request["calls_per_sample"]}
        return {"type": "samples", **counts, **samples.to_json()}

    def verify(self, request: Message) -> Message:
        answer = self.find_prepared(request["workload"]).verify()
        verified = None if answer is None else answer.to_json()
        return {"type": "verified", "workload": request["workload"], "answer": verified}

    def release(self, request: Message) -> Message:
        self.drop(request["workload"])
        return {"type": "released", "workload": request["workload"]}

    def evaluate(self, request: Message) -> Message:
        """Makes the calls on the tensors of a file and writes their outputs there."""
        kernel = self.registry.kernels.get(request["op"])
        if kernel is None:
            raise Skip(f"no kernel for {request['op']} is declared here")
        if request["dtype"] not in (kernel.dtypes or tensors.BYTES):
            raise Skip(f"no kernel for {request['op']} in {request['dtype']}")
        with open(request["file"], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            return {"type": "computed", "elapsed_ns": evaluate(kernel, request, memory)}

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
        answer: Message = {"type": "error", "message": describe(error)}
        if type(error).__name__ == "OutOfMemoryError":
            answer["cause"] = "out_of_memory"
        elif isinstance(error, BadTimeError):
            answer["cause"] = "bad_time"
        elif isinstance(error, devices.CaptureError):
            # The device is as it was, whatever its words.
            pass
        elif "CUDA error" in str(error) or "CUDARuntimeError" in type(error).__name__:
            # After a fault, nothing can be done in this process any more.
            answer |= {"cause": "device_fault", "fatal": True}
        return answer


class Answering(Protocol):
    """Anything that answers requests."""

    def answer(self, request: Message) -> Message: ...


class Broken:
    """Stands in for a worker whose files could not be imported: every answer says why."""

    def __init__(self, error: BaseException) -> None:
        self.message = describe(error)

    def answer(self, request: Message) -> Message:
        if request.get("type") == "bye":
            return {"type": "bye"}
        return {"type": "error", "message": self.message, "fatal": True}


def evaluate(kernel: Kernel, request: Message, memory: mmap.mmap) -> int:
    """The time of all calls, each made as often as was asked for."""
    form, dtype, calls = tensors.open_form(kernel.tensors), request["dtype"], request["calls"]
    inputs = [[tensors.read(memory, place, dtype, form) for place in call["inputs"]] for call in calls]
    outputs: list[object] = []
    form.synchronize()
    start_ns = time.perf_counter_ns()
    for _ in range(request["repeats"]):
        outputs = [kernel.function(request["shape"], request["params"], *each) for each in inputs]
    form.synchronize()
    elapsed_ns = time.perf_counter_ns() - start_ns
    # At once: an output that computes when it is read, or later, is not what was timed.
    copies = [list_outputs(copy_out(returned, "an output")) for returned in outputs]
    for call, given, answers in zip(calls, inputs, copies, strict=True):
        # A kernel that has written into its inputs is found by what is in the file then.
        for place, tensor in zip(call["inputs"], given, strict=True):
            tensors.write(memory, place, dtype, form, tensor)
        if len(answers) != len(call["outputs"]):
            names = ", ".join(place["name"] for place in call["outputs"])
            raise ValueError(f"the kernel for {kernel.op} returned {len(answers)} outputs, not {names}")
        for place, tensor in zip(call["outputs"], answers, strict=True):
            tensors.write(memory, place, dtype, form, tensor)
    # Memory that the next call's outputs may get must not hold this call's answers.
    spoil(outputs)
    return elapsed_ns


def list_outputs(returned: Any) -> list[Any]:
    """A kernel with one output may return it as it is."""
    if is_array(returned) or not isinstance(returned, (list, tuple)):
        return [returned]
    is_flat = len(returned) > 0 and all(isinstance(each, (int, float)) for each in returned)
    return [returned] if is_flat else list(returned)


def serve(worker: Answering, requests: Iterable[str], answers: IO[str]) -> None:
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
