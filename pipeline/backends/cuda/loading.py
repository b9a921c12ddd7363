"""Launch a cubin on the device through cuda-core, on torch's current stream. In: a job and its cubin."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pipeline.backends.abi import Abi
from pipeline.backends.backend import CompileJob, LaunchError
from pipeline.backends.cuda.launch_geometry import LaunchGeometry, geometry_of

if TYPE_CHECKING:
    from pipeline.backends.backend import Launch

_WITHOUT_ASKING = 48 << 10  # bytes of dynamic shared memory; above, a kernel must ask for it


def load_on_device(job: CompileJob, cubin: Path) -> "Launch":
    """The kernel as a function of tensors.

    Raises
    ------
    LaunchError
        There is no NVIDIA GPU here, or the driver refuses the binary.
    """
    if not torch.cuda.is_available():
        raise LaunchError(f"no {job.target.kind} device here")
    return DeviceLaunch(job, cubin)


class DeviceLaunch:
    """`launch(tensors)`: every tensor by name; writes the outputs in place, raises LaunchError."""

    def __init__(self, job: CompileJob, cubin: Path) -> None:
        from cuda import core
        from cuda.bindings import driver

        self._core = core
        self._driver = driver
        self._job = job
        self._abi = Abi(job.problem, device="cuda")
        self._device = torch.cuda.current_device()
        try:
            torch.cuda.synchronize()  # makes torch's context, which is the device's primary one
            core.Device(self._device).set_current()
            self._code = core.ObjectCode.from_cubin(cubin.read_bytes())
            self._kernel = self._code.get_kernel(job.implementation.entry)
        except Exception as error:
            raise _refused(error) from error
        self._numbers: tuple[float, ...] = ()
        self._configuration: Any = None
        self._last: tuple[int, Any] | None = None

    def __call__(self, tensors: dict[str, torch.Tensor]) -> None:
        """The geometry is computed anew where the dimensions differ from those of the call before."""
        numbers = self._abi.numbers(tensors)
        if numbers is not self._numbers:
            self._configuration = self._configure(geometry_of(self._job, self._abi.dimensions))
            self._numbers = numbers
        if self._configuration is None:
            return
        # cuda-core passes an int as 64 bits and a float as a double: the types of the ABI.
        values = self._abi.values(tensors)
        try:
            self._core.launch(self._stream(), self._configuration, self._kernel, *values)
        except Exception as error:
            raise _refused(error) from error

    def _stream(self) -> Any:
        """torch's current one, as cuda-core wants it; mostly the same as in the call before."""
        handle = torch.cuda.current_stream().cuda_stream
        if self._last is None or self._last[0] != handle:
            self._last = (handle, self._core.Stream.from_handle(handle))
        return self._last[1]

    def _configure(self, geometry: LaunchGeometry) -> Any:
        """cuda-core's configuration, None where there is nothing to do; it counts the grid in clusters."""
        if geometry.is_empty:
            return None
        grid = geometry.grid
        if geometry.cluster is not None:
            if any(blocks % size for blocks, size in zip(grid, geometry.cluster, strict=True)):
                raise LaunchError(f"grid: got {grid}, expected whole clusters of {geometry.cluster} blocks")
            grid = tuple(blocks // size for blocks, size in zip(grid, geometry.cluster, strict=True))
        if geometry.shared_memory > _WITHOUT_ASKING:
            self._ask_for_shared_memory(geometry.shared_memory)
        return self._core.LaunchConfig(
            grid=grid, block=geometry.block, shmem_size=geometry.shared_memory, cluster=geometry.cluster
        )

    def _ask_for_shared_memory(self, size: int) -> None:
        """cuda-core has no method for it."""
        attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (code,) = self._driver.cuKernelSetAttribute(attribute, size, self._kernel.handle, self._device)
        if int(code) != 0:
            raise LaunchError(f"the driver refuses {size} bytes of dynamic shared memory: {code}")


def _refused(error: Exception) -> LaunchError:
    lines = str(error).strip().splitlines()
    return LaunchError(f"the driver refuses: {lines[0] if lines else type(error).__name__}")
