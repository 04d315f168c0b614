"""CUDA devices, through torch or CuPy, whichever a workload's arguments come from."""

from __future__ import annotations

import gc
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from .answers import arrays_in
from .device_limits import read_limits
from .plain import array_module
from .workloads import Function, Skip

# The step of CUDA's events, by its documentation. holdpoint makes samples a thousand times as long.
EVENT_RESOLUTION_NS = 500
# A flush reads so many times the size of the L2 cache.
FLUSH_FACTOR = 3


class CaptureError(Exception):
    """A function that cannot become a graph."""


class Device(Protocol):
    """The few things that timing needs from a library for CUDA."""

    def stream(self) -> AbstractContextManager[object]:
        """Work in this context is queued on a stream of its own, which a capture needs."""

    def event(self) -> Any: ...
    def record(self, event: Any) -> None:
        """Queues the event on that stream."""

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
        # Two GHz where the driver does not tell. Reading it takes more than half a millisecond with CUDA 13.
        self.clock_khz = getattr(self.properties, "clock_rate", 0) or 2_000_000
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

    def record(self, event: Any) -> None:
        # Named, because looking for the current stream takes longer than recording.
        event.record(self.side)

    def elapsed_ms(self, start: Any, stop: Any) -> float:
        return float(start.elapsed_time(stop))

    def is_past(self, event: Any) -> bool:
        return bool(event.query())

    def block(self, ns: int) -> None:
        # The caller sees whether it was long enough.
        self.torch.cuda._sleep(ns * self.clock_khz // 1_000_000)

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
        about, ordinal = self.properties, self.torch.cuda.current_device()
        uuid = f"GPU-{about.uuid}"
        return {
            "ordinal": ordinal,
            "name": about.name,
            "uuid": uuid,
            **read_limits(ordinal, uuid),
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
        # The most memory that a graph has for itself.
        self.captured_bytes = 0

    @contextmanager
    def stream(self) -> Iterator[None]:
        # What was queued elsewhere, such as drawing the arguments, must have happened.
        self.synchronize()
        with self.side:
            yield
        self.side.synchronize()

    def event(self) -> Any:
        return self.cupy.cuda.Event()

    def record(self, event: Any) -> None:
        event.record(self.side)

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
        # Of its own: a replay writes to whatever the calls had for a while, and nobody else may have got that by then.
        pool = self.cupy.cuda.MemoryPool()
        with self.cupy.cuda.using_allocator(pool.malloc):
            stream.begin_capture()
            answer = finish_capture(function, lambda: graphs.append(stream.end_capture()))
        self.captured_bytes = max(self.captured_bytes, int(pool.total_bytes()))

        def replay(graph: Any = graphs[0], pool: Any = pool) -> None:
            graph.launch()

        return replay, answer

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
        return int(self.cupy.get_default_memory_pool().total_bytes()) + self.captured_bytes

    def reset_peak(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()

    def describe(self) -> dict[str, object]:
        device = self.cupy.cuda.Device()
        about = self.cupy.cuda.runtime.getDeviceProperties(device.id)
        number, uuid = self.cupy.cuda.runtime.driverGetVersion(), format_uuid(bytes(about["uuid"]))
        return {
            "ordinal": device.id,
            "name": about["name"].decode(),
            "uuid": uuid,
            **read_limits(device.id, uuid),
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
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The CUDA Graph is empty")
        try:
            end()
        except UserWarning:
            raise CaptureError("the calls do nothing on the device; are their arguments there?") from None
    return answer


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
