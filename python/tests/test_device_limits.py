"""What the driver and NVML state, without either."""

from __future__ import annotations

from typing import Any

import pytest

from holdpoint.device_limits import DRIVER, NVML, read_limits

H200 = {13: 1_980_000, 16: 132, 36: 3_201_000, 37: 6144, 38: 60 << 20}
LIMITS = {
    "multiprocessors": 132,
    "sm_mhz_max": 1980,
    "memory_mhz_max": 3201,
    "memory_bus_bits": 6144,
    "l2_bytes": 60 << 20,
}


class Driver:
    def __init__(self, attributes: dict[int, int]) -> None:
        self.attributes = attributes

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        device._obj.value = 40 + ordinal
        return 0 if ordinal < 8 else 101

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:  # noqa: N802
        assert device.value == 43
        value._obj.value = self.attributes.get(attribute, -1)
        return 0 if attribute in self.attributes else 1


class Nvml:
    def __init__(self, mhz: int) -> None:
        self.mhz, self.users = mhz, 0

    def nvmlInit_v2(self) -> int:  # noqa: N802
        self.users += 1
        return 0

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.users -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, device: Any) -> int:  # noqa: N802
        device._obj.value = 7
        return 0 if uuid == b"GPU-1" else 6

    def nvmlDeviceGetMaxClockInfo(self, device: Any, clock: int, mhz: Any) -> int:  # noqa: N802
        assert (device.value, clock) == (7, 1)
        mhz._obj.value = self.mhz
        return 0


def read(libraries: dict[str, Any], ordinal: int = 3, uuid: str = "GPU-1") -> dict[str, int]:
    def open_library(name: str) -> Any:
        if name not in libraries:
            raise OSError(name)
        return libraries[name]

    return read_limits(ordinal, uuid, open_library)


def test_the_keys_are_those_of_our_own_worker() -> None:
    assert read({DRIVER: Driver(H200)}) == LIMITS


@pytest.mark.parametrize(("mhz", "expected"), [(2100, 2100), (1500, 1980), (0, 1980)])
def test_the_higher_clock_counts(mhz: int, expected: int) -> None:
    nvml = Nvml(mhz)
    assert read({DRIVER: Driver(H200), NVML: nvml})["sm_mhz_max"] == expected
    assert nvml.users == 0
    assert read({DRIVER: Driver(H200), NVML: nvml}, uuid="GPU-2") == LIMITS


def test_what_cannot_be_read_is_left_out() -> None:
    assert read({}) == {}
    assert read({DRIVER: object()}) == {}
    assert read({DRIVER: Driver(H200)}, ordinal=8) == {}
    assert read({DRIVER: Driver({16: 132, 13: 0})}) == {"multiprocessors": 132}
