"""Findings from machine code and launch: each fires on its case, and not on its neighbour."""

import pytest

from pipeline.records.configuration.kernel import Tunable
from tests.performance.bound_results import GPU_LIMITS, GPU_PEAKS, LATENCY, facts, result, task
from tests.performance.diagnosis.findings import found, numbers, suggested

MIX = {"matrix": 16, "load_global_128": 4, "store_global_128": 2}


def test_a_good_variant_has_nothing_to_tell_but_its_bound() -> None:
    """Full device, wide accesses, matrix instructions, no spills."""
    (finding,) = found(result()).values()
    assert (finding.code, finding.basis) == ("compute_bound", "estimate")
    assert finding.sentence == (
        "Estimate: compute-bound at best. By the declared peaks its bytes take 100 µs, its operations "
        "1.00 ms."
    )


def test_spills() -> None:
    """Bytes and registers, and what would free registers, the nearest value first."""
    finding = found(result(found=facts(spills=96, registers=255)))["spills"]
    assert finding.sentence == (
        "Spills 96 B per thread at 255 registers: values travel through local memory."
    )
    assert numbers(finding) == {"spills": 96, "registers": 255}
    assert suggested(finding) == {
        "num_warps": ("increase", (8,)),
        "BLOCK_M": ("decrease", (32,)),
        "num_stages": ("decrease", (1,)),
    }
    assert finding.suggestions[2].technique == "software_pipelining"
    assert "spills" not in found(result(found=facts(spills=0)))
    assert "spills" not in found(result(found=facts(spills=None)))


def test_local_arrays_are_not_spills() -> None:
    """Local memory without spills comes from arrays that are indexed at run time."""
    assert "local_arrays" in found(result(found=facts(spills=0, local_memory=256)))
    assert "local_arrays" not in found(result(found=facts(spills=64, local_memory=64)))
    assert "local_arrays" not in found(result(found=facts(spills=None, local_memory=256)))


def narrow(mix: dict[str, int], columns: int = 1024) -> set[str]:
    """Which of the two directions is called narrow."""
    codes = found(result(found=facts(instructions={"matrix": 1, **mix})), columns=columns)
    return codes.keys() & {"narrow_loads", "narrow_stores"}


def test_narrow_accesses() -> None:
    """More than half of 32 bits or less, where rows of a multiple of 16 B allow 128."""
    assert narrow({"load_global_16": 5, "load_global_128": 4}) == {"narrow_loads"}
    assert narrow({"load_global_16": 4, "load_global_128": 4}) == set()
    assert narrow({"load_global_64": 9}) == set()
    assert narrow({"store_global_32": 1}) == {"narrow_stores"}
    assert narrow({"load_global_16": 5}, columns=1023) == set()


def test_narrow_loads_beside_asynchronous_copies_do_not_matter() -> None:
    """Where copies to shared memory do the loading, a few plain loads are for something else."""
    assert narrow({"load_global_16": 4, "async_copy": 8}) == set()
    assert narrow({"load_global_16": 4, "tma": 2}) == {"narrow_loads"}
    edges = {"load_global_16": 32, "async_copy": 4, "load_shared": 20, "matrix": 16}
    assert narrow(edges) == set()
    assert narrow(edges | {"load_global_16": 33}) == {"narrow_loads"}


@pytest.mark.parametrize("limiter", ["registers", "shared_memory", "blocks"])
def test_limited_occupancy(limiter: str) -> None:
    """Below half of the warps without matrix instructions; the sentence names what sets it."""
    mix = {"fma": 8, "load_global_128": 4}
    low = facts(occupancy_bound=0.25, occupancy_limiter=limiter, instructions=mix, shared_memory=49152)
    finding = found(result(found=low))[f"occupancy_{limiter}"]
    assert finding.basis == "estimate"
    assert (
        finding.sentence
        == {
            "registers": "Occupancy 25 % at most: 100 registers a thread let 4 blocks reside at once.",
            "shared_memory": "Occupancy 25 % at most: shared memory of 49,152 B a block of 233,472 lets "
            "4 blocks reside at once.",
            "blocks": "Occupancy 25 % at most: blocks of 128 threads reach the most blocks that a "
            "multiprocessor takes.",
        }[limiter]
    )
    enough = facts(occupancy_bound=0.5, occupancy_limiter=limiter, instructions=mix)
    assert f"occupancy_{limiter}" not in found(result(found=enough))


def test_occupancy_that_threads_limit_is_full() -> None:
    """Nothing to mend; and code on matrix units needs few warps."""
    assert not any("occupancy" in code for code in found(result(found=facts(occupancy_limiter="threads"))))
    assert "occupancy_registers" not in found(result(found=facts(occupancy_bound=0.13)))
    assert "occupancy_registers" in found(result(found=facts(occupancy_bound=0.06)))


def test_too_few_blocks() -> None:
    """Half of the multiprocessors idle: the operations take twice as long."""
    finding = found(result(grid=(66,)))["idle_multiprocessors"]
    assert finding.sentence == "66 blocks on 132 multiprocessors: 66 of them get no work."
    assert finding.gain_at_most == pytest.approx(2.0)
    assert suggested(finding) == {"BLOCK_M": ("decrease", (32,))}
    assert "idle_multiprocessors" not in found(result(grid=(128,)))


def test_wave_tail() -> None:
    """One block too many: the last wave is as good as empty."""
    single = facts(resident_blocks=1)
    finding = found(result(found=single, grid=(133,)))["wave_tail"]
    assert finding.sentence == (
        "133 blocks on 132 multiprocessors, 1 at once on each: wave 2 of 2 is 0.8 % full, and 50 % of all "
        "places stay empty."
    )
    assert finding.gain_at_most == pytest.approx(264 / 133)
    assert numbers(finding)["waves"] == 2
    assert "wave_tail" not in found(result(found=single, grid=(132,)))
    assert "wave_tail" not in found(result(found=single, grid=(1319,)))


def test_uneven_blocks_that_all_reside() -> None:
    """No second wave, but one multiprocessor with two blocks."""
    finding = found(result(grid=(133,)))["wave_tail"]
    assert finding.sentence == (
        "133 blocks on 132 multiprocessors: the busiest gets 2, the mean one 1.01, so that 50 % of the "
        "arithmetic lies idle."
    )
    assert "wave_tail" not in found(result(grid=(264,)))


def test_a_tail_gains_nothing_where_bytes_take_the_time() -> None:
    """What the bound cannot derive is absent."""
    finding = found(result(task(flops=1.0), grid=(133,)))["wave_tail"]
    assert finding.gain_at_most is None


def test_idle_lanes() -> None:
    """Blocks that are no multiple of a warp."""
    finding = found(result(found=facts(threads_per_block=16), grid=(528,)))["idle_lanes"]
    assert finding.sentence == "Blocks of 16 threads fill 50 % of the lanes of their warps of 32."
    assert finding.gain_at_most == pytest.approx(2.0)
    assert "idle_lanes" not in found(result(found=facts(threads_per_block=64)))


def test_few_loads_in_flight() -> None:
    """Only with a latency that a source gives, and only where it takes longer than the bytes."""
    row = task(peaks=GPU_PEAKS | LATENCY, flops=1.0)
    finding = found(result(row, grid=(16,)))["few_loads_in_flight"]
    assert (
        "At most 144 KiB of loads are in flight, which sustain 15 % of the memory's bandwidth"
        in finding.sentence
    )
    assert finding.gain_at_most == pytest.approx((2e8 * 2.5e-7 / 147456) / (4e8 / 4e12))
    assert "few_loads_in_flight" not in found(result(row, grid=(528,)))
    assert "few_loads_in_flight" not in found(result(task(flops=1.0), grid=(16,)))


def test_no_matrix_instructions() -> None:
    """A product of float16 in multiply-adds; the peaks say what that costs."""
    mix = {"fma": 512, "load_global_128": 4}
    finding = found(result(found=facts(instructions=mix)))["no_matrix_instructions"]
    assert finding.sentence == (
        "A matrix product without matrix instructions, in 512 multiply-adds: the declared peak of the matrix "
        "units is 20.0 times as high."
    )
    assert finding.gain_at_most == pytest.approx(20.0)


@pytest.mark.parametrize("change", [{"unit": "vector"}, {"dtype": "float32"}, {"peaks": {}}])
def test_no_matrix_instructions_where_none_are_meant(change: dict[str, object]) -> None:
    """Not for a reduction, not for a dtype that the units do not know, not without peaks."""
    assert "no_matrix_instructions" not in found(result(task(**change), facts(instructions={"fma": 512})))


@pytest.mark.parametrize(
    ("names", "older"),
    [({"HMMA": 32}, True), ({"HGMMA": 2}, False), ({"HMMA": 4, "HGMMA": 2}, False), ({}, False)],
)
def test_older_matrix_instructions(names: dict[str, int], older: bool) -> None:
    """On sm_90 the peak is HGMMA's; without the names nothing is said."""
    findings = found(result(found=facts(matrix=names)))
    assert ("older_matrix_instructions" in findings) == older
    if older:
        assert findings["older_matrix_instructions"].sentence == (
            "The matrix units run through 32 HMMA: sm_90 reaches its peak only with HGMMA (wgmma)."
        )


def test_special_functions() -> None:
    """8 multiply-adds in the time of one exponential, where arithmetic is what bounds."""
    row = task(unit="vector", bytes=1.0)
    mix = {"special": 16, "fma": 64, "float": 63, "load_global_128": 4}
    assert "special_functions" in found(result(row, facts(instructions=mix)))
    assert "special_functions" not in found(result(row, facts(instructions=mix | {"float": 64})))
    assert "special_functions" not in found(result(task(unit="vector", flops=1.0), facts(instructions=mix)))


def test_reciprocals_of_integer_divisions_are_no_special_functions() -> None:
    """Of a product without any float32 instruction; one that computes with them keeps the finding."""
    row = task(unit="vector", bytes=1.0)
    mix = {"special": 3, "matrix": 16, "integer": 885}
    assert "special_functions" not in found(result(row, facts(instructions=mix)))
    assert "special_functions" in found(result(row, facts(instructions=mix | {"float": 1})))


def test_barriers() -> None:
    """More than one among ten instructions of work."""
    assert "barriers" in found(result(found=facts(instructions={"barrier": 3, **MIX})))
    assert "barriers" not in found(result(found=facts(instructions={"barrier": 2, **MIX})))


def test_suggestions_come_from_the_declared_space() -> None:
    """No further value, a name, a truth value, an unknown tunable."""
    spilling = result(found=facts(spills=8))
    space = {
        "num_warps": Tunable(values=(2, 4), default=4),
        "BLOCK_M": Tunable(values=("a", "b"), default="a"),
    }
    assert suggested(found(spilling, space=space)["spills"]) == {}
    space = {"other": Tunable(values=(1, 2), default=1)}
    assert suggested(found(spilling, space=space)["spills"]) == {}


def test_nothing_of_a_launch_without_limits() -> None:
    """A target that declares none."""
    codes = found(result(task(limits={}), grid=(1,)))
    assert codes.keys() == {"compute_bound"}
    assert GPU_LIMITS["sm_count"] == 132
