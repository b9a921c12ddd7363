"""Findings from measurements and on CPUs: each fires on its case, and not on its neighbour."""

import pytest

from pipeline.records.configuration.kernel import Tunable
from pipeline.records.results.profiled import Conditions, Memory, Peak
from tests.performance.bound_results import cpu_task, facts, profiled, result, task
from tests.performance.diagnosis.findings import found, numbers, suggested

WIDE = {"vector_512": 20, "load": 30, "store": 10}


def cpu(seconds: float = 0.04, mix: dict[str, int] = WIDE, bytes_: float = 1e9, **changes: object) -> dict:
    """Findings of a variant that took so long: its bytes need 20 ms, its operations 10."""
    row = cpu_task(bytes=bytes_)
    return found(result(row, facts(instructions=mix), measured=profiled(row, seconds, **changes)))


def test_memory_bound() -> None:
    """At 93 % of the measured bandwidth: what is left is 1 / 0.93."""
    finding = cpu(0.02 / 0.93)["memory_bound"]
    assert finding.sentence == (
        "Memory-bound: 46.5 GB/s, 93 % of the bandwidth measured for this working set."
    )
    assert finding.basis == "measured"
    assert finding.gain_at_most == pytest.approx(1 / 0.93)
    assert numbers(finding)["roofline_share"] == pytest.approx(0.93)


def test_compute_bound() -> None:
    """Operations are the nearer ceiling."""
    finding = cpu(0.0125, bytes_=1.0)["compute_bound"]
    assert finding.sentence == "Compute-bound: 160 GFLOP/s, 80 % of the arithmetic rate that was measured."


def test_launch_bound() -> None:
    """A bound that is neither bytes nor operations is the start of the call."""
    finding = cpu(0.05, bound="latency")["launch_bound"]
    assert finding.sentence == (
        "Bound by the start of a call: half of its 50.0 ms or more is what a call takes that does nothing."
    )
    assert finding.gain_at_most == 2.0
    assert "launch_bound" not in cpu(0.05)


def test_far_from_every_ceiling() -> None:
    """Below half of the nearer one, and only then."""
    finding = cpu(0.05)["far_from_ceilings"]
    assert "20.0 GB/s, 40 % of the bandwidth measured" in finding.sentence
    assert finding.gain_at_most == pytest.approx(2.5)
    assert "far_from_ceilings" not in cpu(0.04)
    assert "memory_bound" not in cpu(0.0401)


def test_what_was_measured_replaces_the_estimate() -> None:
    """No variant has both."""
    row = task()
    findings = found(result(row, measured=profiled(row, 5.5)))
    assert [finding.basis for code, finding in findings.items() if code.endswith("_bound")] == ["measured"]


def test_single_floats() -> None:
    """More scalar than vector instructions; the gain is absent where bytes take the time."""
    finding = cpu(mix={"scalar_float": 20, "vector_128": 2})["no_vectors"]
    assert finding.sentence == (
        "20 instructions on single floats, 2 on vectors: the processor computes 16 floats at once."
    )
    assert finding.gain_at_most is None
    assert cpu(0.09, mix={"scalar_float": 20}, bytes_=1.0)["no_vectors"].gain_at_most == 16
    assert "no_vectors" not in cpu(mix={"scalar_float": 20, "vector_512": 20})


def test_narrow_vectors() -> None:
    """The widest that the code has against the widest that the processor has."""
    finding = cpu(mix={"vector_256": 20})["narrow_vectors"]
    assert finding.sentence == "Computes on vectors of 256 bit at most where the processor has 512."
    assert "narrow_vectors" not in cpu(mix={"vector_256": 20, "vector_512": 1})
    assert "narrow_vectors" not in cpu(mix={"vector_scalable": 20, "vector_128": 3})


def test_stack_traffic() -> None:
    """More than a tenth of the accesses."""
    assert "stack_traffic" in cpu(mix=WIDE | {"vector_stack": 5})
    assert "stack_traffic" not in cpu(mix=WIDE | {"vector_stack": 4})


def test_vector_findings_are_for_cpus_alone() -> None:
    """A GPU's code has no such classes."""
    codes = found(result(found=facts(instructions={"scalar_float": 3, "vector_stack": 5, "load": 5})))
    assert not codes.keys() & {"no_vectors", "narrow_vectors", "stack_traffic"}


def test_workspace() -> None:
    """A call that takes more than a tenth of its tensors' size on the device."""
    much, little = (
        Memory(first=Peak(), steady=Peak(device_bytes=2_000_000), formula_bytes=1e7),
        Memory(first=Peak(), steady=Peak(device_bytes=10), formula_bytes=1e7),
    )
    assert cpu(memory=much)["workspace"].sentence == (
        "Takes 2.0 MB on the device in addition to its tensors of 10.0 MB: "
        "traffic that the kernel's formula does "
        "not know."
    )
    assert "workspace" not in cpu(memory=little)
    assert "workspace" not in cpu(
        memory=Memory(first=Peak(), steady=Peak(host_bytes=10**9), formula_bytes=1e7)
    )


def test_a_slowed_clock_and_notes() -> None:
    """Reasons as the driver names them, notes without the word that their finding has."""
    hot = Conditions(throttled=("thermal",), clock_mhz_low=900.0, clock_mhz_high=1980.0)
    finding = cpu(conditions=hot)["throttled"]
    assert finding.sentence == "The device slowed its clock while measuring: thermal."
    assert numbers(finding) == {"clock_low": 900.0, "clock_high": 1980.0}
    assert "throttled" not in cpu(conditions=Conditions(clock_mhz_low=900.0))
    assert cpu(notes=("disturbed: 3 rounds repeated",))["disturbed"].sentence == "3 rounds repeated"


def test_techniques_are_levers_whatever_the_tunable_is_called() -> None:
    """`vectorization` in the kernel's yaml; a truth value is switched."""
    row = cpu_task()
    space = {"num_warps": Tunable(values=(2, 4, 8), default=4, technique="vectorization")}
    variant = result(row, facts(instructions={"vector_128": 1}), measured=profiled(row, 0.1))
    assert suggested(found(variant, space=space)["narrow_vectors"]) == {"num_warps": ("increase", (8,))}
