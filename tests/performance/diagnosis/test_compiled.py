"""Diagnoses of what Triton compiles, without a device."""

from pathlib import Path

import msgspec
import pytest

from pipeline.backends.triton import Triton
from pipeline.performance.diagnosis import diagnose
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.record import from_plain
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import Compiled
from tests.backends.triton.triton_jobs import ROOT, declared_job, kernel
from tests.performance.bound_results import result, task
from tests.performance.diagnosis.findings import declared


def compiled(folder: Path, name: str, **tunables: object) -> Result:
    """A variant on the declared H200, as the stages would leave it."""
    job = declared_job(name, "h200", **tunables)
    found = Triton().compile(job, ROOT, folder)
    assert isinstance(found, Compiled), found
    with composer(ROOT / "conf") as composed:
        hardware = from_plain(composed.option("hardware", "h200"), Hardware)
    limits = {limit: int(quantity.value) for limit, quantity in hardware.limits.items()}
    row = task(
        kernel=name, limits=limits, peaks=hardware.peaks, unit=kernel(name).cost.unit, flops=2.0**30,
        bytes=2.0**22,
    )  # fmt: skip
    made = result(row, found.facts, found.grid)
    variant = msgspec.structs.replace(made.variant, tunables=job.variant.tunables)
    return msgspec.structs.replace(made, variant=variant, id=variant.id)


def codes(made: Result, name: str) -> dict[str, tuple[str, ...]]:
    """Code -> tunables that are suggested, out of the declared space."""
    space = kernel(name).implementations["triton"].tunables
    found = diagnose(made, declared(columns=4096, space=space))
    return {str(each.code): tuple(entry.tunable for entry in each.suggestions) for each in found}


def test_too_many_stages(tmp_path: Path) -> None:
    """Ten steps in flight fill shared memory: one block resides, and fewer stages are what helps."""
    made = compiled(tmp_path, "matmul", BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_stages=10)
    found = codes(made, "matmul")
    assert "num_stages" in found["occupancy_shared_memory"]
    few = compiled(tmp_path, "matmul", BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_stages=3)
    assert "occupancy_shared_memory" not in codes(few, "matmul")


@pytest.mark.slow
def test_a_tile_that_registers_cannot_hold(tmp_path: Path) -> None:
    """128 x 256 sums in four warps are 256 a thread, which has 255 registers."""
    made = compiled(tmp_path, "matmul", BLOCK_M=128, BLOCK_N=256, BLOCK_K=32, num_warps=4)
    found = codes(made, "matmul")
    assert {"num_warps", "BLOCK_M"} <= set(found["spills"])
    few = compiled(tmp_path, "matmul", BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4)
    assert "spills" not in codes(few, "matmul")


def test_blocks_that_leave_a_thread_little(tmp_path: Path) -> None:
    """1,024 columns of 2 B over 512 threads are 32 bits each; over 128 threads they are 128."""
    wide, narrow = (
        codes(compiled(tmp_path, "softmax", BLOCK=1024, num_warps=warps), "softmax") for warps in (4, 16)
    )
    assert "narrow_loads" in narrow and "narrow_loads" not in wide
    assert "num_warps" in narrow["narrow_loads"]
