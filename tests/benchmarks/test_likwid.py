"""How the benchmarks run and read likwid-bench, and how ceilings are compared with it."""

import sys
from pathlib import Path

import pytest

from tests.benchmarks import ceilings_rounds, likwid
from tests.benchmarks.ceilings import traversals, working_sets
from tests.benchmarks.ceilings_page import Row, gains, table, verdict
from tests.benchmarks.ceilings_rounds import FEWEST, Quantity, fastest, sampled
from tests.benchmarks.test_comparisons import ratio
from tests.measure.stand_ins import DEVICE, MB

TEXT = """\
Number of Flops:	503316480000
MFlops/s:		469882.71
Data volume (Byte):	67108864000
MByte/s:		62651.03
"""


def program(folder: Path, source: str) -> str:
    """A stand-in for likwid-bench."""
    path = folder / "likwid-bench"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{source}")
    path.chmod(0o755)
    return str(path)


def test_reading_likwid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its MByte are 1e6; peaks are operations, streams are bytes; what it was asked."""
    text = TEXT.replace("\t", "\\t").replace("\n", "\\n")
    source = f"open({str(tmp_path / 'seen')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n'); print('{text}')"
    monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path, source))
    assert likwid.Run("copy_avx512", size=2 * MB, cores=2, iterations=10)() == pytest.approx(62651.03e6)
    assert likwid.Run("peakflops_sp", size=16_000, cores=2, iterations=7)() == pytest.approx(469882.71e6)
    asked = (tmp_path / "seen").read_text().splitlines()
    assert asked == ["-t copy_avx512 -W S0:2097kB:2 -i 10", "-t peakflops_sp -W S0:16kB:2 -i 7"]


def test_a_run_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it said is told."""
    monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path, "sys.exit('no such kernel')"))
    with pytest.raises(RuntimeError, match=r"-t load -W S0:1048kB:1 -i 1 ended with 1: no such kernel"):
        likwid.Run("load", size=MB, cores=1, iterations=1)()


def test_operations_of_a_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As the tool lists them."""
    source = "print('Name: peakflops\\nFlops per element: 30\\nBytes per element: 4')"
    monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path, source))
    assert likwid.flops_per_element("peakflops") == 30


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are left out, with the reason."""
    monkeypatch.setattr(likwid, "PROGRAM", "no-such-program")
    assert likwid.missing() == "no no-such-program on the PATH (Debian: apt-get install likwid)"


def test_both_sides_have_the_same_working_set() -> None:
    """Half of a cache, the largest beyond the caches; a sample of either side has as many bytes."""
    sets = working_sets(DEVICE)
    assert sets[("copy", "L2")] == MB and sets[("read", "L3")] == 16 * MB
    assert sets[("triad", "DRAM")] == 256 * MB
    assert traversals(256 * MB) == 20
    assert traversals(MB) * MB == pytest.approx(3e9, rel=0.01)


def pairs(*ratios: float) -> Row:
    """Rounds of these ratios."""
    ours = tuple(1e9 * each for each in ratios)
    return Row(name="read", tool="x", unit="GB/s", ours=ours, theirs=(1e9,) * len(ours), pipeline=2e9)


def test_three_words() -> None:
    """The whole interval within, none of it, or neither; a good median alone is not within."""
    assert verdict(ratio(0.95, 1.1)) == "within"
    assert verdict(ratio(0.7, 0.89)) == verdict(ratio(1.11, 1.2)) == "beyond"
    assert verdict(ratio(0.89, 1.0)) == verdict(ratio(1.0, 1.11)) == verdict(ratio(0.5, 2.0)) == "undecided"
    scattered = pairs(*(0.5, 1.5) * 8, 1.0)
    assert (scattered.verdict, scattered.near) == ("undecided", True)
    assert (pairs(*(1.0,) * 9).verdict, pairs(*(1.3,) * 9).verdict) == ("within", "beyond")


def test_the_page() -> None:
    """Medians, bests, verdicts, and how many of each."""
    lines = list(table([pairs(*(1.0,) * 8, 1.05), pairs(*(1.3,) * 9)]))
    assert lines[2] == (
        "| read | x | 1.0 (1.1) GB/s | 1.0 (1.0) GB/s | 1.00 (1.00 – 1.00) | within | yes | 2.0 GB/s |"
    )
    assert lines[3].endswith("| 1.30 (1.30 – 1.30) | **beyond** | **no** | 2.0 GB/s |")
    assert lines[-1] == (
        "Of 2 quantities: 1 within, 1 beyond, 0 undecided. The median is within 10 % for 1 of 2."
    )
    (gained,) = gains([pairs(*(1.2,) * 9)])
    assert gained == "- read: 1.2 (1.2) GB/s against 1.0 (1.0) GB/s x, 1.20 (1.20 – 1.20) times as much."


def test_rounds_are_compared() -> None:
    """Ours with theirs of the same round, whoever begins; the median of the ratios counts."""
    ours, theirs = iter((1.0, 3.0, 2.0) * 2), iter((4.0, 2.0, 1.0) * 2)
    quantity = Quantity("x", "y", "z", ours=lambda: next(ours), theirs=lambda: next(theirs))
    (row,) = sampled([quantity], seconds=0.0)
    assert (row.ours, row.theirs) == ((1.0, 3.0, 2.0) * 2, (4.0, 2.0, 1.0) * 2)
    assert row.ratio.value == 1.5
    assert len(row.ours) == FEWEST


@pytest.mark.slow
def test_rounds_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one begins only where it would end before the time is up."""
    clock = iter(range(1000))
    monkeypatch.setattr(ceilings_rounds.time, "monotonic", lambda: next(clock) * 10.0)
    quantity = Quantity("x", "y", "z", ours=lambda: 1.0, theirs=lambda: 1.0)
    (row,) = sampled([quantity], seconds=200.0)
    assert 8 <= len(row.ours) <= 25


def test_the_faster_way_is_chosen() -> None:
    """By its best sample; where there is one way only nothing is sampled."""
    samples = {"a": iter((1.0, 5.0)), "b": iter((4.0, 4.0))}
    assert fastest({name: lambda each=each: next(each) for name, each in samples.items()}) == "a"
    assert fastest({"only": lambda: pytest.fail("sampled")}) == "only"
