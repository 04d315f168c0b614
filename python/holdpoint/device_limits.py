"""What a CUDA device can do at most, as the driver and NVML state it; libraries for CUDA tell some of it at best."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import Any

DRIVER, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
# CUdevice_attribute, and the driver's unit in ours.
ATTRIBUTES = {
    "multiprocessors": (16, 1),
    "sm_mhz_max": (13, 1000),
    "memory_mhz_max": (36, 1000),
    "memory_bus_bits": (37, 1),
    "l2_bytes": (38, 1),
}
NVML_CLOCK_SM = 1

OpenLibrary = Callable[[str], Any]


def read_limits(ordinal: int, uuid: str, open_library: OpenLibrary = ctypes.CDLL) -> dict[str, int]:
    """The keys of `device` in the answer to `hello`, as far as they can be read."""
    limits: dict[str, int] = {}
    with suppress(OSError, AttributeError):
        limits = read_attributes(open_library(DRIVER), ordinal)
    with suppress(OSError, AttributeError):
        # Boost clocks go beyond the driver's figure.
        limits["sm_mhz_max"] = max(read_sm_mhz(open_library(NVML), uuid), limits.get("sm_mhz_max", 0))
    return {key: value for key, value in limits.items() if value > 0}


def read_attributes(driver: Any, ordinal: int) -> dict[str, int]:
    """A library for CUDA has initialised the driver."""
    device, value = ctypes.c_int(), ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
        return {}
    return {
        key: value.value // unit
        for key, (attribute, unit) in ATTRIBUTES.items()
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) == 0
    }


def read_sm_mhz(nvml: Any, uuid: str) -> int:
    """The highest clock of the multiprocessors; 0 where NVML does not tell."""
    if nvml.nvmlInit_v2() != 0:
        return 0
    try:
        device, mhz = ctypes.c_void_p(), ctypes.c_uint()
        is_found = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) == 0
        is_read = is_found and nvml.nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM, ctypes.byref(mhz)) == 0
        return mhz.value if is_read else 0
    finally:
        nvml.nvmlShutdown()
