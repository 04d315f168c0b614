"""Timing calls on a CUDA device, through torch or CuPy, whichever the workload's arguments come from.

Everything that is timed by events is queued while the device is kept busy, so that the pace of the host is not in the
interval. docs/gpu.md describes the same timers for holdpoint's own kernels.
"""

from __future__ import annotations

import gc
import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from .answers import array_module, arrays_in, share_memory, spoil, spoil_free_memory
from .clocks import NO_ANSWER, HostCalls, Samples, peak_rss_bytes
from .workloads import Function, Skip

# The step of CUDA's events, by its documentation. holdpoint makes samples a thousand times as long.
EVENT_RESOLUTION_NS = 500
# Most calls in one graph: capturing takes the host some microseconds for each.
GRAPH_CALLS_MAX = 1000
# Most calls that are queued at a time: the driver's queue has about a thousand entries, and a call may take several.
QUEUED_CALLS_MAX = 32
# How long the device is kept busy while calls are queued: at first, and at most.
BLOCK_NS_FIRST = 200_000
BLOCK_NS_MAX = 400_000_000
# A flush reads so many times the size of the L2 cache.
FLUSH_FACTOR = 3


class BadTimeError(Exception):
    """A time that cannot be trusted."""


class CaptureError(Exception):
    """A function that cannot become a graph."""


class Device(Protocol):
    """The few things that timing needs from a library for CUDA."""

    def stream(self) -> AbstractContextManager[object]:
        """Work in this context is queued on a stream of its own, which a capture needs."""

    def event(self) -> Any: ...
    def elapsed_ms(self, start: Any, stop: Any) -> float: ...
    def is_past(self, event: Any) -> bool: ...
    def block(self, ns: int) -> None:
        """Keeps the device busy for about that long."""

    def synchronize(self) -> None: ...
    def capture(self, function: Callable[[], object]) -> tuple[Callable[[], None], object]:
        """A graph of what the function queues: how to replay it, and what the function returned."""

    def flush(self) -> None:
        """Empties the L2 cache."""

    def copy(self, target: Any, source: Any) -> None: ...
    def peak_bytes(self) -> int | None: ...
    def reset_peak(self) -> None: ...
    def describe(self) -> dict[str, object]: ...


class TorchDevice:
    """CUDA through torch."""

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.side = self.torch.cuda.Stream()
        self.properties = self.torch.cuda.get_device_properties(self.torch.cuda.current_device())
        self.flushed: Any = None

    @contextmanager
    def stream(self) -> Iterator[None]:
        cuda = self.torch.cuda
        self.side.wait_stream(cuda.current_stream())
        with cuda.stream(self.side):
            yield
        cuda.current_stream().wait_stream(self.side)

    def event(self) -> Any:
        return self.torch.cuda.Event(enable_timing=True)

    def elapsed_ms(self, start: Any, stop: Any) -> float:
        return float(start.elapsed_time(stop))

    def is_past(self, event: Any) -> bool:
        return bool(event.query())

    def block(self, ns: int) -> None:
        # In kHz; two GHz where the driver does not tell. The caller sees whether it was long enough.
        khz = getattr(self.properties, "clock_rate", 0) or 2_000_000
        self.torch.cuda._sleep(ns * khz // 1_000_000)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def capture(self, function: Callable[[], object]) -> tuple[Callable[[], None], object]:
        graph = self.torch.cuda.CUDAGraph()
        # torch.cuda.graph would also empty the allocator's cache, which takes longer than a unit of `ab`.
        graph.capture_begin(capture_error_mode="thread_local")
        return graph.replay, finish_capture(function, graph.capture_end)

    def flush(self) -> None:
        if self.flushed is None:
            words = FLUSH_FACTOR * max(self.properties.L2_cache_size, 1 << 20) // 4
            options = {"dtype": self.torch.int32, "device": "cuda"}
            self.flushed = self.torch.ones(words, **options), self.torch.empty((), **options)
        words, most = self.flushed
        self.torch.amax(words, dim=0, out=most)

    def copy(self, target: Any, source: Any) -> None:
        with self.torch.no_grad():
            target.copy_(source)

    def peak_bytes(self) -> int | None:
        return int(self.torch.cuda.max_memory_allocated())

    def reset_peak(self) -> None:
        self.torch.cuda.reset_peak_memory_stats()

    def describe(self) -> dict[str, object]:
        about = self.properties
        return {
            "ordinal": self.torch.cuda.current_device(),
            "name": about.name,
            "uuid": f"GPU-{about.uuid}",
            "compute_capability": f"{about.major}.{about.minor}",
            "versions": {"driver": driver_version(), "cuda": self.torch.version.cuda or ""},
        }


class CupyDevice:
    """CUDA through CuPy."""

    SPIN = r"""
    extern "C" __global__ void spin(long long ns) {
        unsigned long long start, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - start < ns);
    }
    """

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.side = self.cupy.cuda.Stream(non_blocking=True)
        self.spin = self.cupy.RawKernel(self.SPIN, "spin")
        self.flushed: Any = None

    @contextmanager
    def stream(self) -> Iterator[None]:
        # What was queued elsewhere, such as drawing the arguments, must have happened.
        self.synchronize()
        with self.side:
            yield
        self.side.synchronize()

    def event(self) -> Any:
        return self.cupy.cuda.Event()

    def elapsed_ms(self, start: Any, stop: Any) -> float:
        return float(self.cupy.cuda.get_elapsed_time(start, stop))

    def is_past(self, event: Any) -> bool:
        return bool(event.done)

    def block(self, ns: int) -> None:
        self.spin((1,), (1,), (self.cupy.int64(ns),))

    def synchronize(self) -> None:
        self.cupy.cuda.Device().synchronize()

    def capture(self, function: Callable[[], object]) -> tuple[Callable[[], None], object]:
        stream, graphs = self.cupy.cuda.get_current_stream(), []
        stream.begin_capture()
        answer = finish_capture(function, lambda: graphs.append(stream.end_capture()))
        return graphs[0].launch, answer

    def flush(self) -> None:
        if self.flushed is None:
            bytes_l2 = self.cupy.cuda.Device().attributes["L2CacheSize"]
            words = FLUSH_FACTOR * max(bytes_l2, 1 << 20) // 4
            self.flushed = self.cupy.ones(words, dtype="int32"), self.cupy.empty((), dtype="int32")
        words, most = self.flushed
        self.cupy.amax(words, out=most)

    def copy(self, target: Any, source: Any) -> None:
        self.cupy.copyto(target, source)

    def peak_bytes(self) -> int | None:
        # The pool keeps what was ever in use at a time.
        return int(self.cupy.get_default_memory_pool().total_bytes())

    def reset_peak(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()

    def describe(self) -> dict[str, object]:
        device = self.cupy.cuda.Device()
        about = self.cupy.cuda.runtime.getDeviceProperties(device.id)
        number = self.cupy.cuda.runtime.driverGetVersion()
        return {
            "ordinal": device.id,
            "name": about["name"].decode(),
            "uuid": format_uuid(bytes(about["uuid"])),
            "compute_capability": f"{about['major']}.{about['minor']}",
            "versions": {"driver": driver_version(), "cuda": f"{number // 1000}.{number % 1000 // 10}"},
        }


DEVICES: dict[str, Callable[[], Device]] = {"torch": TorchDevice, "cupy": CupyDevice}
OPENED: dict[str, Device] = {}


def open_device(arguments: object = ()) -> Device:
    """The device, by the library whose arrays are the arguments, else by one that is loaded; skips without one."""
    names = [module.__name__ for array in arrays_in(arguments) if (module := array_module(array)) is not None]
    names = [name for name in names if name in DEVICES] or [name for name in DEVICES if name in sys.modules]
    name = names[0] if names else "torch"
    if name not in OPENED:
        reason = why_unavailable(name)
        if reason is not None:
            raise Skip(reason)
        OPENED[name] = DEVICES[name]()
    return OPENED[name]


def why_unavailable(name: str) -> str | None:
    """The reason code, where the library cannot be used here."""
    try:
        module: Any = importlib.import_module(name)
    except ImportError:
        return f"{name}_not_installed"
    return None if is_available(name, module) else "cuda_unavailable"


def is_available(name: str, module: Any) -> bool:
    if name == "torch":
        return bool(module.cuda.is_available())
    try:
        return bool(module.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # CuPy's own kind of error, which cannot be named without CuPy.
        return False


def is_on_device(array: Any) -> bool:
    module = array_module(array)
    if module is None:
        return False
    return bool(array.is_cuda) if module.__name__ == "torch" else module.__name__ == "cupy"


class Arguments:
    """Arguments in buffers that stay where they are: graphs read from there."""

    def __init__(self) -> None:
        self.values: tuple[object, ...] | None = None

    def load(self, device: Device, fresh: tuple[object, ...]) -> bool:
        """Copies new values into the buffers; where they do not fit, they become the buffers, and this is False."""
        old = self.values
        if old is None or not fits(old, fresh):
            self.values = fresh
            return False
        for target, source in zip(arrays_in(old), arrays_in(fresh), strict=True):
            device.copy(target, source)
        return True


def fits(old: object, new: object) -> bool:
    """Whether arrays are of the same kind and everything else is equal: only then may a graph be replayed on it."""
    module = array_module(old)
    if module is not None:
        return array_module(new) is module and layout(old) == layout(new)
    if isinstance(old, (list, tuple)):
        return type(new) is type(old) and len(new) == len(old) and all(map(fits, old, new))
    if isinstance(old, Mapping):
        return type(new) is type(old) and old.keys() == new.keys() and all(fits(old[key], new[key]) for key in old)
    try:
        return bool(old == new)
    except Exception:
        return False


def layout(array: Any) -> tuple[object, ...]:
    strides = array.stride() if hasattr(array, "stride") else array.strides
    return tuple(array.shape), tuple(strides), array.dtype, str(getattr(array, "device", ""))


class DeviceCalls:
    """Calls timed by CUDA's events, each call by itself or in a graph."""

    def __init__(self, function: Function, *, as_graph: bool, is_cold: bool) -> None:
        self.function, self.as_graph, self.is_cold = function, as_graph, is_cold
        self.device = open_device()
        self.arguments = Arguments()
        self.last: object = NO_ANSWER
        # By the number of calls: how to replay the graph, and the answer that its last call leaves.
        self.graphs: dict[int, tuple[Callable[[], None], object]] = {}
        self.events: list[tuple[Any, Any]] = []
        self.block_ns = BLOCK_NS_FIRST
        self.is_warm = False
        self.is_spoiling = True

    def load(self, arguments: tuple[object, ...]) -> None:
        if self.arguments.values is None:
            self.device = open_device(arguments)
            self.device.reset_peak()
        self.forget()
        if not self.arguments.load(self.device, arguments):
            self.graphs.clear()
            self.is_warm = False
        self.device.synchronize()

    def is_loaded(self) -> bool:
        return not share_memory(self.last, self.arguments.values)

    def call(self) -> object:
        return self.function(*(self.arguments.values or ()))

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        samples = Samples()
        with self.device.stream():
            self.forget()
            self.warm_up()
            if self.as_graph and not self.is_cold:
                # The first replay after other work was seen to take a tenth longer than the next ones.
                self.take_one(calls_per_sample)
            for _ in range(samples_count):
                samples.elapsed_ns.append(self.take_one(calls_per_sample))
        samples.peak_rss_bytes, samples.peak_device_bytes = peak_rss_bytes(), self.device.peak_bytes()
        return samples

    def warm_up(self) -> None:
        """Lets libraries compile, tune and allocate, which cannot be captured; twice, since the first call may tune."""
        for _ in range(1 if self.is_warm else 3):
            self.last = self.call()
        self.device.synchronize()
        self.is_warm = True
        # An answer in an argument is drawn anew with it for each run, and must stay until then.
        self.is_spoiling = self.is_loaded()
        if self.is_spoiling:
            spoil_free_memory(self.last)
            self.forget()

    def take_one(self, calls: int) -> int:
        """The time of one sample."""
        if not self.as_graph:
            return self.take_each(calls, self.call_kept)
        if self.is_cold:
            # A flush between the calls keeps them from being in one graph.
            replay, answer = self.graph(1)
            return self.take_each(calls, lambda: self.replay(replay, answer))
        full, rest = divmod(calls, GRAPH_CALLS_MAX)
        total_ns = 0
        for size in [GRAPH_CALLS_MAX] * full + [rest] * (rest > 0):
            total_ns += self.take_graph(size)
        return total_ns

    def take_graph(self, calls: int) -> int:
        """One replay of a graph of so many calls."""
        replay, answer = self.graph(calls)
        self.spoil(answer)
        return sum(self.measure(1, lambda: self.replay(replay, answer)))

    def take_each(self, calls: int, call: Callable[[], None]) -> int:
        """Calls timed one by one."""
        total_ns = 0
        for first in range(0, calls, QUEUED_CALLS_MAX):
            self.spoil(self.last)
            total_ns += sum(self.measure(min(QUEUED_CALLS_MAX, calls - first), call))
        return total_ns

    def spoil(self, answer: object) -> None:
        if self.is_spoiling:
            spoil(answer)

    def call_kept(self) -> None:
        self.last = self.call()

    def replay(self, replay: Callable[[], None], answer: object) -> None:
        replay()
        self.last = answer

    def graph(self, calls: int) -> tuple[Callable[[], None], object]:
        if calls not in self.graphs:
            if len(self.graphs) > 1:
                # Two sizes are in use at a time; others were tried while the size of a sample was looked for.
                self.graphs.pop(next(iter(self.graphs)))
            self.last = NO_ANSWER
            self.graphs[calls] = self.device.capture(lambda: repeat_call(self.call, calls))
            self.graphs[calls][0]()
            self.device.synchronize()
        return self.graphs[calls]

    def measure(self, count: int, call: Callable[[], None]) -> list[int]:
        """The times of so many intervals, queued while the device is busy; again, if it was not for long enough."""
        while len(self.events) < count + 1:
            self.events.append((self.device.event(), self.device.event()))
        (unblocked, _), *pairs = self.events[: count + 1]
        while True:
            begin_ns = time.perf_counter_ns()
            self.device.block(self.block_ns)
            unblocked.record()
            for start, stop in pairs:
                if self.is_cold:
                    self.device.flush()
                start.record()
                call()
                stop.record()
            was_blocked = not self.device.is_past(unblocked)
            queued_ns = time.perf_counter_ns() - begin_ns
            pairs[-1][1].synchronize()
            if was_blocked:
                # Twice what queueing took, so that a slower host is no reason to begin again.
                self.block_ns = max(BLOCK_NS_FIRST, min(2 * queued_ns, BLOCK_NS_MAX))
                return [positive_ns(self.device.elapsed_ms(start, stop)) for start, stop in pairs]
            if self.block_ns >= BLOCK_NS_MAX:
                raise BadTimeError(
                    f"{count} calls could not be queued within {BLOCK_NS_MAX // 1_000_000} ms: does a call wait for "
                    'the device, by .item(), .cpu() or print? Avoid that, or declare timer="host_monotonic"'
                )
            self.block_ns = min(4 * self.block_ns, BLOCK_NS_MAX)

    def answer(self) -> object:
        if self.last is NO_ANSWER:
            with self.device.stream():
                self.warm_up()
                if self.last is NO_ANSWER:
                    self.last = self.call()
        return self.last

    def forget(self) -> None:
        spoil(self.last)
        self.last = NO_ANSWER

    def close(self) -> None:
        self.forget()
        self.graphs.clear()
        self.arguments = Arguments()


class WaitedCalls(HostCalls):
    """Calls by the host's clock, each with the wait for its results: the latency that a caller sees."""

    def __init__(self, function: Function, *, count_waits: bool) -> None:
        self.device = open_device()
        self.buffers = Arguments()
        super().__init__(self.wait_for(function), count_waits=count_waits)

    def wait_for(self, function: Function) -> Function:
        def call(*arguments: object) -> object:
            answer = function(*arguments)
            synchronize()
            return answer

        synchronize = self.device.synchronize
        return call

    def load(self, arguments: tuple[object, ...]) -> None:
        if self.buffers.values is None:
            self.device = open_device(arguments)
            self.device.reset_peak()
        self.forget()
        self.buffers.load(self.device, arguments)
        super().load(self.buffers.values or ())
        self.device.synchronize()

    def take(self, samples_count: int, calls_per_sample: int) -> Samples:
        samples = super().take(samples_count, calls_per_sample)
        samples.peak_device_bytes = self.device.peak_bytes()
        return samples


def finish_capture(function: Function, end: Callable[[], object]) -> object:
    """Calls the function between the begin and the end of a capture."""
    # Freeing what a collection finds could be an operation that a capture does not allow.
    gc.disable()
    try:
        answer = function()
    except Exception as error:
        with suppress(Exception):
            end()
        raise CaptureError(
            f"the calls cannot be captured in a graph ({type(error).__name__}: {error}); does one wait for the "
            'device, or use the host? Declare timer="cuda_events" or "host_monotonic"'
        ) from error
    finally:
        gc.enable()
    end()
    return answer


def repeat_call(call: Callable[[], object], calls: int) -> object:
    answer = None
    for _ in range(calls):
        answer = call()
    return answer


def positive_ns(ms: float) -> int:
    """Events can be wrong: on virtual machines they have been seen to give negative times."""
    if math.isfinite(ms) and ms > 0:
        return round(ms * 1e6)
    raise BadTimeError(f"the events are {ms} ms apart; their clock cannot be trusted here")


def environment_lock() -> dict[str, str]:
    """Versions and modes of torch and CuPy that times depend on, where they are loaded."""
    lock: dict[str, str] = {}
    for name in ("numpy", "torch", "triton", "cupy"):
        if (module := sys.modules.get(name)) is not None:
            lock[name] = str(getattr(module, "__version__", "unknown"))
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        lock["torch_threads"] = str(torch.get_num_threads())
        lock["deterministic"] = switch(torch.are_deterministic_algorithms_enabled())
        lock["float32_matmul_precision"] = str(read_mode(torch.get_float32_matmul_precision))
        if torch.cuda.is_available():
            lock["tf32"] = switch(read_mode(lambda: torch.backends.cuda.matmul.allow_tf32))
            lock["cudnn_tf32"] = switch(read_mode(lambda: torch.backends.cudnn.allow_tf32))
            lock["cudnn_benchmark"] = switch(torch.backends.cudnn.benchmark)
    return lock


def switch(value: object) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def read_mode(read: Callable[[], object]) -> object:
    """torch refuses to tell a mode that was set by both its old and its new names."""
    try:
        return read()
    except RuntimeError:
        return "mixed"


def driver_version() -> str:
    """Such as 580.159.04; empty where there is none."""
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        return ""
    return next((word for word in words if word.count(".") >= 1 and word[0].isdigit()), "")


def format_uuid(raw: bytes) -> str:
    digits = raw[:16].hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
