"""Launches on a device, against a cuda-core that records what it is asked for: no GPU takes part."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
from cuda.core._kernel_arg_handler import ParamHolder

from pipeline.backends.abi import Abi
from pipeline.backends.backend import LaunchError
from pipeline.backends.cuda import loading
from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import LaunchFormulas
from tests.backends.cuda.cuda_jobs import declared_job, written_job
from tests.paths import ROOT

STREAM = 4711
HARDWARE = {(8, 0): "a100", (8, 9): "rtx4090", (9, 0): "h200", (10, 0): "b200"}
KERNEL = SimpleNamespace(handle="the kernel")


class Driver:
    """Stands for cuda-core, the part of the driver that it lacks, and the GPU; keeps the calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.refuses: str | None = None
        self.code = 0

    def launch(self, stream, configuration, kernel, *values):
        """`cuda.core.launch`."""
        self._maybe_refuse("launch")
        self.calls.append(("launch", stream, configuration, kernel, values))

    def from_cubin(self, content):
        """`cuda.core.ObjectCode.from_cubin`."""
        self._maybe_refuse("load")
        self.calls.append(("load", content))
        return SimpleNamespace(get_kernel=self._kernel)

    def ask(self, *arguments):
        """`cuKernelSetAttribute`."""
        self.calls.append(("ask", *arguments))
        return (self.code,)

    def launches(self):
        """What was launched: stream, configuration, kernel, values."""
        return [call[1:] for call in self.calls if call[0] == "launch"]

    def _kernel(self, name):
        self.calls.append(("kernel", name))
        return KERNEL

    def _maybe_refuse(self, what):
        if self.refuses == what:
            raise RuntimeError(f"CUDA_ERROR_OF_{what.upper()}: not today\nmore of it")


@pytest.fixture
def driver(monkeypatch):
    """In place of cuda-core; tensors of the host count as the device's."""
    recorded = Driver()
    core = SimpleNamespace(
        Device=lambda number: SimpleNamespace(set_current=lambda: recorded.calls.append(("device", number))),
        ObjectCode=SimpleNamespace(from_cubin=recorded.from_cubin),
        Stream=SimpleNamespace(from_handle=lambda handle: ("stream", handle)),
        LaunchConfig=SimpleNamespace,
        launch=recorded.launch,
    )
    attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared memory")
    cu = SimpleNamespace(CUfunction_attribute=attribute, cuKernelSetAttribute=recorded.ask)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(core=core))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=cu))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=STREAM))
    monkeypatch.setattr(loading, "Abi", lambda problem, device: Abi(problem, device="cpu"))
    return recorded


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    """What compile left."""
    path = tmp_path / "kernel.cubin"
    path.write_bytes(b"machine code")
    return path


def test_load_and_launch(driver, cubin):
    """On torch's device and stream; pointers, dimensions and strides in the order of the ABI."""
    launch = loading.load_on_device(declared_job("softmax", dtype="float32", ROWS=4), cubin)
    assert driver.calls == [("device", 2), ("load", b"machine code"), ("kernel", "softmax")]
    x, y = torch.zeros(9, 40)[:, :33], torch.zeros(9, 33)
    launch({"x": x, "y": y})
    ((stream, configuration, kernel, values),) = driver.launches()
    assert (stream, kernel) == (("stream", STREAM), KERNEL)
    assert vars(configuration) == {"grid": (3, 1, 1), "block": (512, 1, 1), "shmem_size": 0, "cluster": None}
    assert values == (x.data_ptr(), y.data_ptr(), 9, 33, 40)


def test_arguments_as_cuda_core_takes_them():
    """The real one packs what a launch gives it: 8 bytes each, numbers with a fraction as doubles."""
    job = declared_job("softmax", dtype="float32")
    scaled = msgspec.structs.replace(job.problem, scalars={"eps": 0.5}, order=())
    x = torch.zeros(9, 40)[:, :33]
    values = Abi(scaled, device="cpu").values({"x": x, "y": torch.zeros(9, 33)})
    holder = ParamHolder(values)
    places = (ctypes.c_void_p * len(values)).from_address(holder.ptr)
    kinds = [*[ctypes.c_int64] * (len(values) - 1), ctypes.c_double]
    assert [kind.from_address(place).value for kind, place in zip(kinds, places, strict=True)] == list(values)
    assert values[-4:] == (9, 33, 40, 0.5)


def test_geometry_follows_the_call(driver, cubin):
    """Other shapes than the workload's have their own grid; an empty one launches nothing."""
    launch = loading.load_on_device(declared_job("matmul", dtype="float32"), cubin)
    for rows in (64, 65, 0):
        launch({"a": torch.zeros(rows, 8), "b": torch.zeros(8, 64), "c": torch.zeros(rows, 64)})
    assert [configuration.grid for _, configuration, _, _ in driver.launches()] == [(1, 1, 1), (2, 1, 1)]


def test_much_shared_memory_is_asked_for(driver, cubin):
    """Above 48 KB the driver wants to be asked; cuda-core has no way to."""
    job = declared_job("matmul", dtype="float16", BLOCK_M=128, BLOCK_N=128)
    launch = loading.load_on_device(job, cubin)
    tensors = {name: torch.zeros(8, 8, dtype=torch.float16) for name in "abc"}
    launch(tensors)
    size = 3 * (128 * (64 + 16) + 32 * (256 + 16))
    assert ("ask", "most shared memory", size, KERNEL.handle, 2) in driver.calls
    ((_, configuration, _, _),) = driver.launches()
    assert configuration.shmem_size == size
    driver.code = 1
    other = {name: torch.zeros(9, 9, dtype=torch.float16) for name in "abc"}
    with pytest.raises(LaunchError, match=rf"the driver refuses {size} bytes of dynamic shared memory: 1"):
        launch(other)


def test_clusters(driver, cubin, tmp_path):
    """Formulas count the grid in blocks, cuda-core in clusters."""
    formulas = LaunchFormulas(grid=("ceil_div(n, 16)",), block=(16,), cluster=(2,))
    launch = loading.load_on_device(written_job(tmp_path, "", launch=formulas), cubin)
    launch({"x": torch.zeros(64), "y": torch.zeros(64)})
    ((_, configuration, _, _),) = driver.launches()
    assert (configuration.grid, configuration.cluster) == ((2, 1, 1), (2, 1, 1))
    with pytest.raises(LaunchError, match=r"grid: got \(3, 1, 1\), expected whole clusters of \(2, 1, 1\)"):
        launch({"x": torch.zeros(48), "y": torch.zeros(48)})


@pytest.mark.parametrize("what", ["load", "launch"])
def test_errors_of_the_driver(driver, cubin, what):
    """They are the variant's outcome, in one line."""
    driver.refuses = what
    with pytest.raises(LaunchError, match=rf"^the driver refuses: CUDA_ERROR_OF_{what.upper()}: not today$"):
        launch = loading.load_on_device(declared_job("softmax"), cubin)
        x = torch.zeros(2, 2, dtype=torch.float16)
        launch({"x": x, "y": x.clone()})


def test_tensors_that_do_not_fit(driver, cubin):
    """Nothing is launched."""
    launch = loading.load_on_device(declared_job("softmax"), cubin)
    with pytest.raises(LaunchError, match=r"x: got torch.float32, expected torch.float16"):
        launch({"x": torch.zeros(2, 2), "y": torch.zeros(2, 2)})
    assert driver.launches() == []


def test_tensors_of_the_host(monkeypatch):
    """A kernel would read its own memory at their addresses."""
    abi = Abi(declared_job("softmax", dtype="float32").problem, device="cuda")
    with pytest.raises(LaunchError, match=r"x: got a tensor on cpu, expected one on the GPU"):
        abi.numbers({"x": torch.zeros(2, 2), "y": torch.zeros(2, 2)})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", ["softmax", "matmul"])
def test_on_a_device(tmp_path, name):
    """The compiled kernel against torch."""
    capability = torch.cuda.get_device_capability()
    if capability not in HARDWARE:
        pytest.skip(f"no target for compute capability {capability}")
    job = declared_job(name, HARDWARE[capability], "float32")
    root = ROOT
    compiled = backend("cuda").compile(job, root, tmp_path)
    launch = backend("cuda").load(job, compiled, root, tmp_path)
    x, y = torch.randn(70, 70, device="cuda"), torch.zeros(70, 70, device="cuda")
    launch({"x": x, "y": y} if name == "softmax" else {"a": x, "b": x, "c": y})
    expected = x.softmax(-1) if name == "softmax" else (x.double() @ x.double()).float()
    assert torch.allclose(y, expected, atol=1e-4)
