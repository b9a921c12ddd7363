"""How the benchmarks judge agreement, and how they read another tool."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.measure.member import Batch
from pipeline.measure.rounds import Round
from pipeline.records.profiled import Interval
from tests.benchmarks import agreement, ceilings_rounds, likwid
from tests.benchmarks.agreement import kernels_in_cpp, paired
from tests.benchmarks.agreement_page import FEWEST, Row, by_chance, family_wise, longer, summary, verdict
from tests.benchmarks.all_resamples import chance, share_up_to
from tests.benchmarks.ceilings import traversals, working_sets
from tests.benchmarks.ceilings_page import Row as Pairs
from tests.benchmarks.ceilings_page import gains, table
from tests.benchmarks.ceilings_page import verdict as near
from tests.benchmarks.ceilings_rounds import FEWEST as FEWEST_ROUNDS
from tests.benchmarks.ceilings_rounds import Quantity, fastest, sampled
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
    """An interval from a half to two leaves room for 1, and for everything else; one beyond 1 does not."""
    assert verdict(ratio(0.5, 2.0)) == "undecided"
    assert verdict(ratio(1.5, 2.0)) == "differs"


def test_few_pairs_are_no_agreement() -> None:
    """One equal pair has an interval of no width."""
    fewer, enough = (
        Row(kernel="softmax", callable="cpp", harness="x", ours=(1.0,) * count, theirs=(1.0,) * count)
        for count in (FEWEST - 1, FEWEST)
    )
    assert fewer.verdict == "undecided"
    assert enough.verdict == "agrees"


def compared(shift: float, scatter: float, *, seed: int, count: int = 24) -> Row:
    """A comparison of made-up samples, theirs shorter by a share, both scattered."""
    numbers = np.random.default_rng(seed)
    ours, theirs = np.exp(numbers.normal(0.0, scatter, (2, count)))
    return Row(
        kernel="softmax",
        callable=f"{seed}",
        harness="x",
        ours=tuple(float(each) for each in (1 + shift) * ours),
        theirs=tuple(float(each) for each in theirs),
    )


def test_equals_differ_by_chance_and_not_together() -> None:
    """Of pages of 36 equals 5 % of the rows at most differ, and at most 5 % of the pages at their level."""
    pages = [[compared(0.0, 0.05, seed=36 * page + row) for row in range(36)] for page in range(6)]
    alone = sum(row.verdict == "differs" for page in pages for row in page)
    assert 0 < alone <= 0.05 * 6 * 36
    assert sum(bool(family_wise(page)) for page in pages) <= 1


def test_what_differs_is_found_among_equals() -> None:
    """A difference of 20 % in one of 36 rows, by name."""
    page = [compared(0.0, 0.05, seed=each) for each in range(100, 135)] + [compared(0.2, 0.05, seed=135)]
    assert family_wise(page) == page[-1:]
    text = " ".join(summary(page))
    assert "about 1.8 differ by chance, up to 4 in 95 of 100 pages" in text
    assert "at the family-wise level of 95 %, 1 of these here differ: softmax 135 (x)." in text


def test_the_corrected_level_decides() -> None:
    """One and the same row differs alone, not beside 35 equals; but beside 35 that differ for sure."""
    row = next(
        each
        for each in (compared(0.035, 0.05, seed=seed) for seed in range(200, 260))
        if 0.05 / 30 < each.chance < 0.05
    )
    equals = [compared(0.0, 0.05, seed=seed) for seed in range(35)]
    assert family_wise([row]) == [row]
    assert row not in family_wise([row, *equals])
    clear = [compared(0.5, 0.01, seed=seed) for seed in range(35)]
    assert row in family_wise([row, *clear]), "Holm's last level is that of one comparison"


def test_chance_is_the_level_of_the_verdict() -> None:
    """Below 5 % where the interval of 95 % leaves no room, whichever side is longer; never 0."""
    for shift in (-0.2, -0.03, 0.0, 0.03, 0.2):
        row = compared(shift, 0.02, seed=7)
        assert (row.chance < 0.05) == (row.verdict == "differs")
    assert chance([2.0] * 24) == chance([0.5] * 24) == 2.0**-23
    assert chance([2.0] * 6) == 2.0**-5, "six rounds show no more than a sign test"
    assert chance([1.0] * 24) == 1.0


@pytest.mark.parametrize("count", [1, 2, 7, 8, 25])
def test_the_share_of_all_resamples(count: int) -> None:
    """As drawn ones have it, of odd and even counts, with ties."""
    numbers = np.random.default_rng(count)
    values = np.round(numbers.normal(1.0, 0.1, count), 2)
    drawn = np.median(values[numbers.integers(0, count, size=(40_000, count))], axis=1)
    for limit in (0.9, 0.97, *values[:3].tolist(), 1.02, 2.0):
        expected = float(np.mean(drawn <= limit + 1e-12))
        assert share_up_to([*values.tolist()], limit + 1e-12) == pytest.approx(expected, abs=0.012)


def test_how_many_by_chance() -> None:
    """Quantiles of the binomial distribution at 5 %."""
    assert [by_chance(count) for count in (0, 1, 14, 36, 100)] == [0, 0, 2, 4, 9]


def test_width_alone_asks_for_more() -> None:
    """Whether a comparison gets more rounds does not depend on which side is longer."""
    for shift in (-0.3, 0.0, 0.3):
        assert not compared(shift, 0.02, seed=1).open
        assert compared(shift, 0.5, seed=1).open
        assert compared(shift, 0.0, seed=1, count=FEWEST - 1).open


def test_more_rounds_of_the_same() -> None:
    """All count; another comparison's do not."""
    row, more = compared(0.0, 0.1, seed=1), compared(0.0, 0.1, seed=1, count=3)
    assert longer(row, more).ours == row.ours + more.ours
    with pytest.raises(ValueError, match="two comparisons"):
        longer(row, compared(0.0, 0.1, seed=2))


def test_undecided_kernels_are_visited_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Until they are decided or the time is up; those that are decided are not."""
    visits: list[str] = []

    def visit(subject: agreement._Subject, store: Path) -> None:
        visits.append(subject.compiled)
        wide = (subject.compiled == "a" and visits.count("a") < 3) or subject.compiled == "c"
        subject.rows[:] = [compared(0.0, 0.5 if wide else 0.001, seed=1)]
        subject.seconds.append(20.0)

    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(agreement, "_visit", visit)
    monkeypatch.setattr(agreement, "_prepared", lambda kernel, chosen, store: (None, kernel))
    monkeypatch.setattr(agreement.time, "monotonic", lambda: next(clock))
    chosen = argparse.Namespace(kernels=["a", "b", "c"], seconds=150.0)
    assert len(agreement._rows(chosen, tmp_path)) == 3
    assert visits == ["a", "b", "c", "a", "c", "a", "c", "c", "c"]


def test_pairs_of_rounds(tmp_path: Path) -> None:
    """Rounds in which threads waited are left out, and the last one, where theirs is missing."""
    samples = tmp_path / "cpp.jsonl"
    samples.write_text(
        "".join(f'{{"torch.utils.benchmark": [{each}], "pytest-benchmark": [1, 2, 9]}}\n' for each in (4, 5))
    )
    batches = [
        Batch(calls=2, seconds=8.0, unseen=0.0, computed=0.0, waited=waited) for waited in (0.0, 4.0, 0.0)
    ]
    rows = paired("softmax", samples, [Round(batches={"candidate": batch}) for batch in batches])
    assert [(row.harness, row.ours, row.theirs) for row in rows] == [
        ("torch.utils.benchmark", (4.0,), (4.0,)),
        ("pytest-benchmark", (4.0,), (2.0,)),
    ]


def test_every_kernel_in_cpp() -> None:
    """Inherited implementations count."""
    assert {"softmax", "matmul", "matmul_bias_gelu", "rms_norm_backward"} <= set(kernels_in_cpp())
    assert "liger_softmax" not in kernels_in_cpp()


def program(folder: Path, source: str) -> str:
    """A stand-in for likwid-bench."""
    path = folder / "likwid-bench"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{source}")
    path.chmod(0o755)
    return str(path)


SLEEPS = """
time.sleep(0.5); began = time.time(); time.sleep(0.5)
print(f"MByte/s:\\t{time.time() - began}\\nMFlops/s:\\t0.0\\n")
"""


def test_reading_likwid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its MByte are 1e6; peaks are operations, streams are bytes; what it was asked."""
    text = TEXT.replace("\t", "\\t").replace("\n", "\\n")
    source = f"open({str(tmp_path / 'seen')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n'); print('{text}')"
    monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path, source))
    assert likwid.Run("copy_avx512", size=2 * MB, cores=2, iterations=10)() == pytest.approx(62651.03e6)
    assert likwid.Run("peakflops_sp", size=16_000, cores=2, iterations=7)() == pytest.approx(469882.71e6)
    asked = (tmp_path / "seen").read_text().splitlines()
    assert asked == ["-t copy_avx512 -W S0:2097kB:2 -i 10", "-t peakflops_sp -W S0:16kB:2 -i 7"]


def test_a_run_that_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is stopped in its second sleep, and goes on when it is called: not before."""
    monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path, SLEEPS))
    run = likwid.Run("load", size=MB, cores=1, iterations=1)
    run.prepare()
    run.held()
    time.sleep(0.8)
    assert run() / 1e6 > 0.9, "it was not stopped"


def test_a_run_that_cannot_wait(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that never sleeps, and one that computes already, is ended; the call starts another one."""
    busy = "import threading\nthreading.Thread(target=time.sleep, args=(3,), daemon=True).start()\n" + SLEEPS
    for name, source in (("a", "print('MByte/s:\\t5.0\\n')"), ("b", busy)):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(likwid, "PROGRAM", program(tmp_path / name, source))
        run = likwid.Run("load", size=MB, cores=1, iterations=1)
        run.prepare()
        run.held()
        assert run._started is None
        assert run() > 0


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


def pairs(*ratios: float) -> Pairs:
    """Rounds of these ratios."""
    ours = tuple(1e9 * each for each in ratios)
    return Pairs(name="read", tool="x", unit="GB/s", ours=ours, theirs=(1e9,) * len(ours), pipeline=2e9)


def test_three_words() -> None:
    """The whole interval within, none of it, or neither; a good median alone is not within."""
    assert near(ratio(0.95, 1.1)) == "within"
    assert near(ratio(0.7, 0.89)) == near(ratio(1.11, 1.2)) == "beyond"
    assert near(ratio(0.89, 1.0)) == near(ratio(1.0, 1.11)) == near(ratio(0.5, 2.0)) == "undecided"
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
    assert len(row.ours) == FEWEST_ROUNDS


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
