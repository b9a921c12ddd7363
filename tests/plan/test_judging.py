"""What of a folder of problems is judged."""

from pathlib import Path

import pytest

from pipeline.plan.judging import matching
from pipeline.records.errors import ConfigError
from pipeline.records.results.judged import CandidateFile, ProblemFolder

FOLDER = Path("runs")
PROBLEMS = tuple(
    ProblemFolder(
        name=name,
        path="problem.py",
        digest="d",
        candidates=tuple(
            CandidateFile(name=f"sample_{number}", path="s.py", digest="d") for number in range(count)
        ),
    )
    for name, count in {"level1/1_Square": 2, "level1/12_Softmax": 1, "level2/12_Gemm": 0}.items()
)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["level1/12_*"], {"level1/12_Softmax": 1}),
        (["*/sample_0"], {"level1/1_Square": 1, "level1/12_Softmax": 1}),
        (
            ["level1/1_Square/sample_1", "*/12_*"],
            {"level1/1_Square": 1, "level1/12_Softmax": 1, "level2/12_Gemm": 0},
        ),
        (["level1/1_*/sample_1", "level1/1_*"], {"level1/1_Square": 2}),
    ],
)
def test_problems_and_candidates_that_match(patterns: list[str], expected: dict[str, int]) -> None:
    """A problem with all of its candidates, or single candidates of it; several patterns add up."""
    found = matching(PROBLEMS, patterns, FOLDER)
    assert {each.name: len(each.candidates) for each in found} == expected


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("level1/12_Sofmax*", "level1/12_Softmax, level1/1_Square, level2/12_Gemm"),
        ("*gem?", "level2/12_Gemm, "),
        ("level1/12_Softmax/sample_7", "level1/12_Softmax/sample_0, "),
    ],
)
def test_nothing_that_matches(pattern: str, nearest: str) -> None:
    """The nearest names, of problems or of candidates."""
    with pytest.raises(ConfigError) as caught:
        matching(PROBLEMS, ["level1/*", pattern], FOLDER)
    assert str(caught.value).startswith(
        f"--only {pattern}: matches nothing in runs; the nearest names: {nearest}"
    )
