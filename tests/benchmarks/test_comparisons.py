"""How the benchmarks judge agreement, and how they read another tool."""

import subprocess
from pathlib import Path

import pytest

from pipeline.measure.member import Batch
from pipeline.measure.rounds import Round
from pipeline.records.profiled import Interval
from tests.benchmarks import likwid
from tests.benchmarks.agreement import FEWEST, Row, _paired, kernels_in_cpp, verdict
from tests.benchmarks.ceilings import Quantity, _sampled, _working_sets
from tests.measure.stand_ins import DEVICE, MB

TEXT = """\
Number of Flops:	503316480000
MFlops/s:		469882.71
Data volume (Byte):	67108864000
MByte/s:		62651.03
"""


def ratio(low: float, high: float) -> Interval:
    """Ours over theirs."""
    return Interval(value=(low + high) / 2, low=low, high=high, confidence=0.95)


def test_agreement() -> None:
    """What leaves room for less than 1 % agrees; 2 % that are known do not."""
    assert verdict(ratio(0.97, 1.02)) == "agrees"
    assert verdict(ratio(1.009, 1.03)) == "agrees"
    assert verdict(ratio(1.02, 1.03)) == "differs"
    assert verdict(ratio(0.9, 0.95)) == "differs"


def test_scatter_is_no_agreement() -> None:
    """An interval from a half to two leaves room for 1, and for everything else."""
    assert verdict(ratio(0.5, 2.0)) == "undecided"
    assert verdict(ratio(1.5, 2.0)) == "undecided"


def test_few_pairs_are_no_agreement() -> None:
    """One equal pair has an interval of no width."""
    fewer, enough = (
        Row(kernel="softmax", callable="cpp", harness="x", ours=(1.0,) * count, theirs=(1.0,) * count)
        for count in (FEWEST - 1, FEWEST)
    )
    assert fewer.verdict == "undecided"
    assert enough.verdict == "agrees"


def test_pairs_of_rounds(tmp_path: Path) -> None:
    """Rounds in which threads waited are left out, and the last one, where theirs is missing."""
    samples = tmp_path / "cpp.jsonl"
    samples.write_text(
        "".join(f'{{"torch.utils.benchmark": [{each}], "pytest-benchmark": [1, 2, 9]}}\n' for each in (4, 5))
    )
    batches = [
        Batch(calls=2, seconds=8.0, unseen=0.0, computed=0.0, waited=waited) for waited in (0.0, 4.0, 0.0)
    ]
    rows = _paired("softmax", samples, [Round(batches={"candidate": batch}) for batch in batches])
    assert [(row.harness, row.ours, row.theirs) for row in rows] == [
        ("torch.utils.benchmark", (4.0,), (4.0,)),
        ("pytest-benchmark", (4.0,), (2.0,)),
    ]


def test_every_kernel_in_cpp() -> None:
    """Inherited implementations count."""
    assert {"softmax", "matmul", "matmul_bias_gelu", "rms_norm_backward"} <= set(kernels_in_cpp())
    assert "liger_softmax" not in kernels_in_cpp()


def test_reading_likwid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its MByte are 1e6; peaks are operations, streams are bytes."""
    seen: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=TEXT)

    monkeypatch.setattr(likwid.subprocess, "run", run)
    assert likwid.rate("copy_avx512", size=2 * MB, cores=2, iterations=10) == pytest.approx(62651.03e6)
    assert likwid.rate("peakflops_sp", size=16_000, cores=2) == pytest.approx(469882.71e6)
    assert seen[0][1:] == ["-t", "copy_avx512", "-W", "S0:2097kB:2", "-i", "10"]


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are left out, with the reason."""
    monkeypatch.setattr(likwid, "PROGRAM", "no-such-program")
    assert likwid.missing() == "no no-such-program on the PATH (Debian: apt-get install likwid)"


def test_both_sides_have_the_same_working_set() -> None:
    """Half of a cache, the largest beyond the caches."""
    sets = _working_sets(DEVICE)
    assert sets[("copy", "L2")] == MB and sets[("read", "L3")] == 16 * MB
    assert sets[("triad", "DRAM")] == 256 * MB
    assert ("triad_plain", "L2") not in sets


def test_rounds_are_compared() -> None:
    """Ours with theirs of the same round, whoever begins; the median of the ratios counts."""
    ours, theirs = iter((1.0, 3.0, 2.0)), iter((4.0, 2.0, 1.0))
    quantity = Quantity("x", "y", ours=lambda: next(ours), theirs=lambda: next(theirs), pipeline=1.0)
    row = _sampled(quantity, rounds=3)
    assert (row.ours, row.theirs) == ((1.0, 3.0, 2.0), (4.0, 2.0, 1.0))
    assert row.ratio.value == 1.5
