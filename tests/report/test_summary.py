"""The summary as a terminal shows it."""

import msgspec
import pytest

from pipeline.performance.quantities import digits
from pipeline.records.provenance import Origin
from pipeline.records.results.aggregated import NotMeasured
from pipeline.report.summary import summarize, summary_text, tally
from pipeline.report.winner_selection import find_winners
from tests.report.sample_run import PROVENANCE


@pytest.fixture(scope="module")
def summary(spec, collected):
    """Of the made-up run."""
    winners = find_winners(collected.results)
    return summarize(spec, [tally(collected.results)], winners, tables={}, provenance=PROVENANCE)


def test_files_of_a_sweep_are_told_apart(summary):
    """Names that end in another file each do not look alike where they are cut."""
    files = ("recorded_convolution_milo_A100.json.gz", "recorded_convolution_milo_MI250X.json.gz")
    winners = [
        msgspec.structs.replace(
            summary.winners[0],
            cell=msgspec.structs.replace(summary.winners[0].cell, workload=f"recorded[recorded={file}]"),
        )
        for file in files
    ]
    text = summary_text(msgspec.structs.replace(summary, winners=tuple(winners)))
    assert "_A100.json.gz]  " in text
    assert "MI250X.json.gz]  " in text


def test_fits_the_terminal(summary):
    """No line is longer than 120 columns, however many tunables a kernel has and however long its name is."""
    winner = summary.winners[0]
    wide = msgspec.structs.replace(
        winner,
        cell=msgspec.structs.replace(winner.cell, kernel="k" * 60, workload="w" * 60),
        tunables={f"A_LONG_TUNABLE_{number}": number for number in range(12)},
        weak=("zeros", "mean"),
    )
    text = summary_text(msgspec.structs.replace(summary, winners=(wide, *summary.winners)))
    assert max(len(line) for line in text.splitlines()) <= 120
    assert "WEAK CHECK: zeros mean would pass" in text


def test_says_what_was_measured_and_what_not(summary):
    """Winners with ratio, interval and verdict; the others with their reason."""
    text = summary_text(summary)
    assert "390 variants · 370 compiled, 366 verified, 78 measured" in text
    assert "1.93x (1.91-1.96) +" in text and "0.622x (0.612-0.631) -" in text
    assert "device unavailable" in text and "12 compile errors" in text
    assert "h200 h100 a100 b200 rtx4090 mi300x mi355x" in text


def test_slow_baselines_are_named(summary):
    """A large speed-up over what is itself far from the roofline says little about the kernel."""
    winner = summary.winners[0]
    eager = winner.compared[0]
    speedup = msgspec.structs.replace(eager.speedup, value=50.0, low=40.0, high=60.0)
    slow = (msgspec.structs.replace(eager, speedup=speedup), *winner.compared[1:])
    found = msgspec.structs.replace(winner, compared=slow, roofline_share=0.3)
    text = summary_text(msgspec.structs.replace(summary, winners=(found, *summary.winners[1:])))
    assert f"slow baselines, which reach little of the roofline: {eager.baseline} 0.6 %\n" in text
    assert "slow baselines" not in summary_text(summary)


def test_nothing_measured(summary):
    """Without a measurement there is no winners' table, and no time."""
    missing = tuple(winner for winner in summary.winners if isinstance(winner, NotMeasured))
    text = summary_text(msgspec.structs.replace(summary, winners=missing))
    assert "roofline" not in text and "not measured" in text


def test_says_which_other_machine_it_was(summary):
    """Results that came in a bundle name the machine and the bundle, below the counts."""
    origin = Origin(bundle="abcdef0123456789", created="2026-01-01", device="A GPU", environment={})
    lines = summary_text(msgspec.structs.replace(summary, origin=origin)).splitlines()
    assert lines[1] == "made on A GPU (another machine, bundle abcdef01)"
    assert "made on" not in summary_text(summary)


def test_many_workloads_have_a_mean(summary):
    """One line for each baseline; a baseline that some workload lacks has none."""
    winner = summary.winners[0]
    cells = [msgspec.structs.replace(winner.cell, workload=f"grid[tokens={size}]") for size in range(1, 9)]
    winners = tuple(msgspec.structs.replace(winner, cell=cell) for cell in cells)
    text = summary_text(msgspec.structs.replace(summary, winners=winners))
    first = winner.compared[0]
    assert f"over 8 workloads vs {first.baseline} {digits(first.speedup.value)}x" in text
    assert "8 faster, 0 slower" in text
    without = msgspec.structs.replace(winners[0], compared=())
    assert "over 8" not in summary_text(msgspec.structs.replace(summary, winners=(without, *winners[1:])))
    assert "workloads vs" not in summary_text(msgspec.structs.replace(summary, winners=winners[1:]))
