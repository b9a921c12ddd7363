"""The page about KernelBench's problems: counts, findings, and what has no verdict."""

from tests.benchmarks.kernelbench_problems import page


def test_page() -> None:
    """Levels are counted; a problem without findings has no row, one without a verdict is counted only."""
    rows = [
        {"problem": "level1/1_A", "outcome": "passed", "reason": "", "notes": "", "seconds": "1.5"},
        {
            "problem": "level1/10_B",
            "outcome": "passed_reduced",
            "reason": "right on n=4",
            "notes": "degenerate problem: no spread; weakly_checked: zeros would pass; other",
            "seconds": "2",
        },
        {"problem": "level4/1_C", "outcome": "bad_problem", "reason": "no m", "notes": "", "seconds": "0"},
        {"problem": "level2/1_D", "outcome": "not_judged", "reason": "", "notes": "", "seconds": "0"},
    ]
    text = page(rows)
    assert "| level1 | 100 | 1 | 1 | 1 | 1 | 0 | 98 | 4 |" in text
    assert "| level2 | 100 | 0 | 0 | 0 | 0 | 0 | 100 | 0 |" in text
    assert "| level4 | 20 | 0 | 0 | 0 | 0 | 1 | 19 | 0 |" in text
    assert "| level1/10_B | `passed_reduced` | zeros would pass; no spread | right on n=4 | 2 |" in text
    assert "level1/1_A" not in text
