"""Ceilings of a GPU without one: figures on a made-up clock, and the kernels' code for a real target."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

triton = pytest.importorskip("triton")

from pipeline.backends.devices.cuda import ceilings as module  # noqa: E402
from pipeline.backends.devices.device_ceilings import PRODUCTS, Level, level_bandwidth  # noqa: E402

MB = 1 << 20
CALL_SECONDS = 1e-3


class FakeTimer:
    """Every call takes a millisecond."""

    def __init__(self, *, flush_cache: bool) -> None:
        assert not flush_cache

    def prepare(self) -> None:
        """Nothing to open."""

    def settle(self, call, seconds: float) -> None:
        """One call."""
        call()

    def batch(self, call, calls: int) -> float:
        """The calls are made, the time is made up."""
        call()
        return calls * CALL_SECONDS


class FakeKernel:
    """Records its grids."""

    def __init__(self) -> None:
        self.grids: list[tuple[int, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]):
        self.grids.append(grid)
        return lambda *arguments: None


class FakeGraph:
    """Replays nothing."""

    def replay(self) -> None:
        """As told."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeKernel]:
    """A device with four multiprocessors, 16 MB of L2 and 40 MB of free memory."""
    kernels = {name: FakeKernel() for name in ("_triad", "_multiply_add", "_nothing")}
    for name, kernel in kernels.items():
        monkeypatch.setattr(module, name, kernel)
    monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(module, "MATRIX_SIZE", 32)
    monkeypatch.setattr(module, "CudaTimer", FakeTimer)
    properties = SimpleNamespace(multi_processor_count=4, L2_cache_size=16 * MB)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (40 * MB, 80 * MB))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: contextlib.nullcontext())
    return kernels


def test_bytes_and_operations(gpu: dict[str, FakeKernel], tmp_path: Path) -> None:
    """Two arrays of a copy, one of a read, three of a triad; two operations per multiply-add."""
    found = module.measure(PRODUCTS, None)
    assert [point.working_set for point in found.copy] == [2 * MB, 4 * MB, 8 * MB, 16 * MB]
    assert [point.working_set for point in found.read] == [MB, 2 * MB, 4 * MB, 8 * MB]
    assert [point.working_set for point in found.triad] == [3 * MB, 6 * MB, 12 * MB, 24 * MB]
    assert found.copy[-1].bandwidth == pytest.approx(16 * MB / CALL_SECONDS)
    assert found.triad[-1].bandwidth == pytest.approx(24 * MB / CALL_SECONDS)
    assert found.triad_plain == ()
    assert found.matrix_flops["float16"] == pytest.approx(2 * 32**3 / CALL_SECONDS)
    blocks = 4 * module.BLOCKS_PER_MULTIPROCESSOR
    chains = blocks * module.BLOCK * module.ACCUMULATORS
    assert found.vector_flops["float64"] == pytest.approx(2 * chains * module.STEPS / CALL_SECONDS)
    assert set(gpu["_multiply_add"].grids) == {(blocks,)}
    assert max(gpu["_triad"].grids) == (8 * MB // 4 // module.TRIAD_BLOCK,)


def test_every_dtype(gpu: dict[str, FakeKernel], tmp_path: Path) -> None:
    """tf32 beside float32, and each product names its library."""
    found = module.measure(PRODUCTS, None)
    assert {"float32", "float64", "float16", "bfloat16", "tf32"} <= found.matrix_flops.keys()
    assert found.matrix_library == dict.fromkeys(found.matrix_flops, "torch")
    assert set(found.vector_flops) == {"float32", "float64", "float16", "bfloat16"}


def test_only_what_is_asked_for(gpu: dict[str, FakeKernel], tmp_path: Path) -> None:
    """tf32 comes with float32; to what is known only products are added."""
    found = module.measure(("float16",), None)
    assert found.matrix_flops.keys() == {"float16"}
    gpu["_triad"].grids.clear()
    more = module.measure(("float32",), found)
    assert more.matrix_flops.keys() == {"float16", "float32", "tf32"}
    assert more.copy == found.copy and gpu["_triad"].grids == []


def test_the_precision_of_products(gpu: dict[str, FakeKernel], monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 in full, tf32 where it is allowed, and afterwards what was set before."""
    seen = []

    def product(timer: object, dtype: torch.dtype) -> float:
        seen.append((dtype, torch.get_float32_matmul_precision()))
        return 1.0

    monkeypatch.setattr(module, "_matrix", product)
    before = torch.get_float32_matmul_precision()
    module._matrix_peaks(FakeTimer(flush_cache=False), PRODUCTS)  # type: ignore[arg-type]
    assert (torch.float32, "highest") in seen
    assert seen[-1] == (torch.float32, "high")
    assert torch.get_float32_matmul_precision() == before


def test_int8_where_torch_has_none(monkeypatch: pytest.MonkeyPatch, gpu: dict[str, FakeKernel]) -> None:
    """A release without it, or a device without a kernel for it: absent, not zero."""
    timer = FakeTimer(flush_cache=False)

    def refuses(a: torch.Tensor, b: torch.Tensor) -> None:
        raise RuntimeError("not implemented for this device")

    monkeypatch.setattr(torch, "_int_mm", refuses, raising=False)
    assert module._integers(timer) is None  # type: ignore[arg-type]
    monkeypatch.delattr(torch, "_int_mm")
    assert module._integers(timer) is None  # type: ignore[arg-type]
    assert "int8" not in module._matrix_peaks(timer, PRODUCTS)  # type: ignore[arg-type]


def test_long_calls_are_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not fifty times: float64 on a device with few units for it would take a minute."""
    calls: list[int] = []
    timer = FakeTimer(flush_cache=False)

    def batch(call, count: int) -> float:
        calls.append(count)
        return (1.0 if len(calls) == 1 else 0.9) * count

    monkeypatch.setattr(timer, "batch", batch)
    assert module._best(timer, lambda: None) == 0.9  # type: ignore[arg-type]
    assert calls == [1, 1]


def test_levels_and_launches(gpu: dict[str, FakeKernel], tmp_path: Path) -> None:
    """L2 and memory; a launch in a graph is its share of the replay."""
    found = module.measure(PRODUCTS, None)
    assert found.levels == (Level(name="L2", capacity=16 * MB), Level(name="DRAM"))
    assert level_bandwidth(found.triad, found.levels, found.levels[1]) == found.triad[-1].bandwidth
    assert found.launch_seconds["stream"] == pytest.approx(CALL_SECONDS)
    assert found.launch_seconds["graph"] == pytest.approx(CALL_SECONDS / module.LAUNCHES)
    assert found.launch() == found.launch_seconds["stream"]


@pytest.mark.parametrize(
    ("dtype", "instruction", "operations"),
    [
        ("fp32", "fma.rn.f32", 1),
        ("fp64", "fma.rn.f64", 1),
        ("fp16", "fma.rn.f16x2", 2),
        ("bf16", "fma.rn.bf16x2", 2),
    ],
)
def test_multiply_adds_are_fused_and_packed(dtype: str, instruction: str, operations: int) -> None:
    """Compiled for sm_90: nothing but fused multiply-adds in the loop, halves two at a time."""
    from triton.backends.compiler import GPUTarget

    signature = {"out": f"*{dtype}", "steps": "i32", "accumulators": "constexpr", "block": "constexpr"}
    constants = {(2,): module.ACCUMULATORS, (3,): module.BLOCK}
    source = triton.compiler.ASTSource(fn=module._multiply_add, signature=signature, constexprs=constants)
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    found = re.findall(r"\bfma\.\S+", built.asm["ptx"])
    threads = 32 * 4  # warps by default
    assert found == [instruction] * (module.ACCUMULATORS * module.BLOCK // threads // operations)
    assert not re.search(r"\bmul\.(rn\.)?(b?f16|f32|f64)", built.asm["ptx"])
