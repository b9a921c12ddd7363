"""Wrong and cheating candidates are rejected for the right reason, right but awkward ones accepted."""

import pytest

from tests.adversarial.suite import PROBLEMS, expected, judge, misjudged, sources, stage

# A few seconds each: none that waits for a limit of time, builds an extension or fills the memory.
FEW = (
    ("softmax", "plain_rows"),
    ("softmax", "no_max_subtraction"),
    ("softmax", "suspicious_comments"),
    ("softmax", "zeros"),
    ("softmax", "tail_unwritten"),
    ("softmax", "store_without_mask"),
    ("softmax", "half_sum"),
    ("softmax", "returns_double"),
    ("softmax", "extra_axis"),
    ("softmax", "negates_and_restores"),
    ("softmax", "before_copy_kernel"),
    ("softmax", "patched_clock"),
    ("softmax", "first_call_of_each_shape"),
    ("softmax", "leaves_with_zero"),
    ("softmax", "syntax_error"),
    ("mean_product", "zeros"),
    ("mean_product", "plain"),
)


def test_every_candidate_has_an_expectation() -> None:
    """Files, patches and expected.csv name the same candidates; there are enough of either kind."""
    wanted = expected()
    assert {(folder.name, name) for folder in PROBLEMS.iterdir() for name in sources(folder)} == set(wanted)
    assert sum(row.label == "wrong" for row in wanted.values()) >= 60
    assert sum(row.label == "right" for row in wanted.values()) >= 30
    assert all((row.label == "right") == ("passed" in row.outcomes) for row in wanted.values())


@pytest.mark.timeout(600)
def test_a_few(tmp_path) -> None:
    """One candidate of every fast category gets its verdict."""
    stage(FEW, tmp_path / "problems")
    verdicts = judge(tmp_path / "problems", tmp_path / "verdicts.csv")
    assert misjudged(verdicts, FEW) == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_all(tmp_path) -> None:
    """Every candidate of the suite gets one of the verdicts expected of it."""
    stage(expected(), tmp_path / "problems")
    verdicts = judge(tmp_path / "problems", tmp_path / "verdicts.csv")
    assert misjudged(verdicts, expected()) == []
