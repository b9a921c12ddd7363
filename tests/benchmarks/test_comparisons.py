"""How the benchmarks judge agreement with another harness, each comparison alone and all together."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from pipeline.measure.comparison.rounds import Round
from pipeline.measure.hosting.timed_batch import Batch
from pipeline.records.results.profiled import ConfidenceInterval
from tests.benchmarks import agreement
from tests.benchmarks.agreement import kernels_in_cpp, paired
from tests.benchmarks.agreement_page import FEWEST, Row, by_chance, family_wise, longer, summary, verdict
from tests.benchmarks.all_resamples import chance, share_up_to


def ratio(low: float, high: float) -> ConfidenceInterval:
    """Ours over theirs."""
    return ConfidenceInterval(value=(low + high) / 2, low=low, high=high, confidence=0.95)


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


def test_a_later_visit_may_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured before stays; a first visit has to succeed."""

    def fail(subject: agreement._Subject, store: Path) -> None:
        raise SystemExit("softmax: unstable_timing")

    monkeypatch.setattr(agreement, "_lengthen", fail)
    known = [compared(0.0, 0.5, seed=1)]
    subject = agreement._Subject(spec=None, compiled=None, rows=[*known], seconds=[1.0])
    agreement._visit(subject, tmp_path)
    assert subject.rows == known and len(subject.seconds) == 2
    assert "without a result: softmax: unstable_timing" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="unstable_timing"):
        agreement._visit(subject._replace(rows=[]), tmp_path)


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
    samples = tmp_path / "candidate.jsonl"
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
