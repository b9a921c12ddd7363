"""A library that stands for NVML's, compiled for the test: what it answers is told it value by value."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pynvml
import pytest

SOURCE = Path(__file__).with_suffix(".cpp")
H200 = {
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetUUID": "GPU-11111111-2222-3333-4444-555555555555",
    "nvmlDeviceGetCudaComputeCapability": 90,
    "sm_clock": 1755,
    "highest_sm_clock": 1980,
    "memory_clock": 3201,
    "highest_memory_clock": 3202,
    "nvmlDeviceGetTemperature": 41,
    "nvmlDeviceGetPowerUsage": 312_400,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetTotalEnergyConsumption": 987_654_321_987,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetCurrentClocksEventReasons": 0,
    "processes": "4711",
}
RTX = H200 | {
    "nvmlDeviceGetName": "NVIDIA RTX",
    "nvmlDeviceGetUUID": "GPU-99999999-2222-3333-4444-555555555555",
    "nvmlDeviceGetCudaComputeCapability": 89,
}


def load(library: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nvidia-ml-py load this library, or find none."""

    def cdll(_: str) -> ctypes.CDLL:
        if library is None:
            raise OSError("libnvidia-ml.so.1: cannot open shared object file")
        return ctypes.CDLL(str(library))

    monkeypatch.setattr(pynvml, "CDLL", cdll)
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


@functools.cache
def _compiled(*options: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        subprocess.run(["g++", "-shared", "-fPIC", *options, "-o", library, SOURCE], check=True)
        return library.read_bytes()


class StandIn:
    """The library with its answers: two devices at first."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
        if shutil.which("g++") is None:
            pytest.skip("needs g++")
        self._answers = folder / "answers.txt"
        library = folder / "libnvidia-ml.so.1"
        library.write_bytes(_compiled(*options))
        load(library, monkeypatch)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        self._told: dict[tuple[str, int], object] = {("nvmlDeviceGetCount_v2", 0): 2}
        self.tell(H200)
        self.tell(RTX, device=1)

    def tell(self, answers: dict[str, object], device: int = 0) -> None:
        """Answers from now on; None is not supported."""
        self._told |= {(function, device): value for function, value in answers.items()}
        known = {key: value for key, value in self._told.items() if value is not None}
        text = "".join(f"{function} {device} {value}\n" for (function, device), value in known.items())
        temporary = self._answers.with_suffix(".new")  # a reader in a thread sees all or nothing
        temporary.write_text(text)
        temporary.rename(self._answers)
