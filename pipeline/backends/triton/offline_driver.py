"""A Triton driver without a device: it stands for the target, and records launches instead of making them.

It is made active as Triton's own drivers are, so that any module's launch works; what the compiler made is
reported to `knobs.compilation.listener`.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import triton

from pipeline.backends.backend import LaunchError
from pipeline.backends.triton.simulated_device import is_left_on_host
from pipeline.backends.triton.triton_internals import active_driver, gpu_target
from pipeline.records.configuration.hardware import Target
from pipeline.records.record import Record

# Kernels keep compiled code per device number for the life of the process. A number of its own for every
# driver keeps targets, and the limits that they are checked against, apart.
_numbers = itertools.count()


MOST_BLOCKS = (2**31 - 1, 65535)
"""Of a grid on a CUDA device: along the first axis, along each other one (CUDA C++ Programming Guide,
"Compute Capabilities", Technical Specifications)."""


class BuiltKernel(Record, frozen=True, kw_only=True):
    """One kernel as the compiler left it in the private cache."""

    name: str
    key: str
    """Triton's own hash of everything that went into it."""
    files: dict[str, Path]
    """Stage (`ttgir`, `ptx`, `cubin`, `amdgcn`, `json`, …) -> file."""
    printed: str
    """What the assembler printed: NVIDIA's registers, stack and spills."""
    shared_memory: int
    warps: int
    warp_size: int
    grid: tuple[int, ...]
    """Blocks of its first launch."""

    @property
    def binary(self) -> Path:
        """The machine code."""
        return self.files.get("cubin") or self.files["hsaco"]


class Recorder:
    """What was compiled and what was launched."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._built: dict[str, tuple[str, dict[str, Path], str]] = {}
        self._launched: dict[str, tuple[Any, tuple[int, ...]]] = {}

    def listen(self, *, metadata: dict[str, Any], metadata_group: dict[str, str], **_: object) -> None:
        """Called by Triton when a kernel is compiled."""
        name = next(file for file in metadata_group if file.endswith(".json")).removesuffix(".json")
        files = {Path(file).suffix[1:]: Path(path) for file, path in metadata_group.items()}
        self._built[metadata["hash"]] = (name, files, self._printed())

    def launch(self, metadata: Any, grid: tuple[int, ...]) -> None:
        """Called by the driver where a device would start."""
        self._launched.setdefault(metadata.hash, (metadata, grid))

    def kernels(self) -> tuple[BuiltKernel, ...]:
        """The kernels that were launched, in order of their first launch."""
        kernels = []
        for key, (metadata, grid) in self._launched.items():
            name, files, printed = self._built[key]
            kernels.append(
                BuiltKernel(
                    name=name,
                    key=key,
                    files=files,
                    printed=printed,
                    shared_memory=metadata.shared,
                    warps=metadata.num_warps,
                    warp_size=metadata.target.warp_size,
                    grid=grid,
                )
            )
        return tuple(kernels)

    def _printed(self) -> str:
        """What came to the log since the last kernel."""
        with self._log.open("rb") as stream:
            stream.seek(self._read)
            text = stream.read()
        self._read += len(text)
        return text.decode(errors="replace")


@contextlib.contextmanager
def recording(target: Target, log: Path) -> Iterator[Recorder]:
    """Inside, every launch of a Triton kernel compiles for `target` and is recorded."""
    recorder = Recorder(log)
    listener = triton.knobs.compilation.listener
    triton.knobs.compilation.listener = recorder.listen
    try:
        with active_driver(_OfflineDriver(target, recorder)):
            yield recorder
    finally:
        triton.knobs.compilation.listener = listener


class _OfflineDriver:
    """What Triton asks of a device, answered from the target's limits (interface: triton.backends.driver)."""

    def __init__(self, target: Target, recorder: Recorder) -> None:
        self.utils = _OfflineUtils(target.limits)
        self._recorder = recorder
        self._number = next(_numbers)
        arch = int(target.architecture.removeprefix("sm_")) if target.kind == "cuda" else target.architecture
        self._target = gpu_target(target.kind, arch, target.limits["warp_size"])

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return self._number

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("meta")

    def get_device_interface(self) -> Any:
        """What benchmarks wait for the device with."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """An autotuner sees equal times: it takes the first of its configurations and compiles no other."""
        return lambda _call, *, quantiles, **_: [1.0 for _ in quantiles]

    def launcher_cls(self, _source: object, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, *arguments: Any) -> None:
            refused = self._refused((x, y, z), arguments)
            if refused is not None:
                raise LaunchError(f"kernel '{metadata.name}': {refused}")
            self._recorder.launch(metadata, (x, y, z))

        return launch

    def _refused(self, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> str | None:
        """Why a device would not launch it; None where it would."""
        if self._target.backend == "cuda" and (grid[0] > MOST_BLOCKS[0] or max(grid[1:]) > MOST_BLOCKS[1]):
            most = (MOST_BLOCKS[0], MOST_BLOCKS[1], MOST_BLOCKS[1])
            return f"a grid of {grid} blocks, a device takes at most {most}"
        for argument in arguments:
            if is_left_on_host(argument):
                shape = " x ".join(map(str, argument.shape)) or "one element"
                return (
                    f"a tensor ({shape}, {argument.dtype}) lies on the host, where no kernel can access it:"
                    " make it with `device=` of an input"
                )
        return None


class _OfflineUtils:
    """Device properties, and the loader that loads nothing."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits

    def get_device_properties(self, _device: int) -> dict[str, int]:
        return {
            "max_shared_mem": self._limits["shared_memory_per_block"],
            "max_num_regs": self._limits["registers_per_sm"],
            "multiprocessor_count": self._limits["sm_count"],
            "warpSize": self._limits["warp_size"],
        }

    def load_binary(self, *_: object) -> tuple[object, ...]:
        """Module (none, so none is unloaded), function, registers, spills, most threads a block may have."""
        return (None, None, 0, 0, self._limits["threads_per_block"])
