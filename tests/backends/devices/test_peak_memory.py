"""Peak memory of one call: of the host for real, of a device as torch's allocator tells it."""

import ctypes
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.backends.devices import peak_memory
from pipeline.backends.devices.peak_memory import host_peak, torch_device_peak
from pipeline.records.results.profiled import Peak
from tests.measure.clean import call

MB = 1 << 20
# Each processor holds back up to 32 pages of the count (Linux 6.2 and later: percpu_counter, batches of 32 or
# twice the processors); and one huge page, where they cannot be turned off.
SLACK = 2 * MB + max(32, 2 * (os.cpu_count() or 1)) * (os.cpu_count() or 1) * 4096

needs_reset = pytest.mark.skipif(not peak_memory.CLEAR.exists(), reason="needs /proc/self/clear_refs")


@pytest.mark.slow
@needs_reset
def test_temporary_memory_of_each_call(tmp_path: Path):
    """What a call frees before it returns counts, also where an earlier call had the same memory already."""
    found = call("tests.measure.stand_ins:peaks", tmp_path / "log.txt")
    expected = [16 * MB, 16 * MB, 0, 8 * MB, 24 * MB]
    assert all(abs(got - want) <= SLACK for got, want in zip(found, expected, strict=True)), found


@needs_reset
def test_memory_that_a_call_keeps():
    """It counts in the call that takes it, and not in the next one."""
    kept: list[np.ndarray] = []
    first = host_peak(lambda: kept.append(np.full(32 * MB, 1, dtype=np.uint8))).host_bytes
    second = host_peak(kept[0].sum).host_bytes
    assert first is not None and second is not None
    assert abs(first - 32 * MB) <= SLACK
    assert second <= SLACK


def test_a_system_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The call is made all the same; the size is absent, not 0."""
    calls = []
    monkeypatch.setattr(peak_memory, "CLEAR", tmp_path / "none" / "clear_refs")
    assert host_peak(lambda: calls.append(1)) == Peak()
    monkeypatch.setattr(peak_memory, "CLEAR", tmp_path / "clear_refs")
    monkeypatch.setattr(peak_memory, "STATUS", tmp_path / "status")
    assert host_peak(lambda: calls.append(1)) == Peak()
    (tmp_path / "status").write_text("Name:\tpython\nVmRSS:\t  100 kB\n")
    assert host_peak(lambda: calls.append(1)) == Peak()
    assert len(calls) == 3
    assert (tmp_path / "clear_refs").read_text() == "5"


def test_another_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without malloc_trim nothing is given back, and nothing fails."""
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    assert host_peak(lambda: None).host_bytes is not None or not peak_memory.CLEAR.exists()


class Device:
    """torch.cuda as a call of 40 MB in its allocator and 7 MB beside it would leave it."""

    def __init__(self) -> None:
        self.allocated = 100 * MB
        self.peak = 500 * MB  # of something before
        self.reserved = 200 * MB
        self.free = 1000 * MB
        self.synchronized = 0

    def synchronize(self) -> None:
        """Counts."""
        self.synchronized += 1

    def reset_peak_memory_stats(self) -> None:
        """As torch does: to what is allocated."""
        self.peak = self.allocated

    def memory_allocated(self) -> int:
        """Now."""
        return self.allocated

    def max_memory_allocated(self) -> int:
        """Since the reset."""
        return self.peak

    def memory_reserved(self) -> int:
        """By the allocator, from the device."""
        return self.reserved

    def mem_get_info(self) -> tuple[int, int]:
        """Free and total."""
        return self.free, 2000 * MB

    def call(self) -> None:
        """The allocator takes 30 MB from the device for 40 MB, of which it still holds some."""
        self.peak = self.allocated + 40 * MB
        self.reserved += 30 * MB
        self.free -= 37 * MB


def test_memory_of_a_device(monkeypatch: pytest.MonkeyPatch):
    """The allocator's peak from the call on, and what else the device has less of; after the call is done."""
    device = Device()
    torch = SimpleNamespace(cuda=device)
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = torch_device_peak(device.call)
    assert (found.device_bytes, found.outside_bytes) == (40 * MB, 7 * MB)
    assert device.synchronized == 2
