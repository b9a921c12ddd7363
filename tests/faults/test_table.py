"""The page of faults, and how it is read back."""

from tests.faults.judging import Result
from tests.faults.table import listed, section, table

KEPT = Result("kill a worker", 3, "when a compiler runs", 0, "(nothing)", "nothing to do", (), 9.0)
MISSED = KEPT._replace(kind="few processes", seed=12, code=124, problems=("the disturbed run did not end",))


def test_what_a_page_lists_can_be_injected_again() -> None:
    """Kind and seed of those where a promise was not kept, and of no other."""
    page = table([KEPT, MISSED], {}, "python -m tests.faults --count 2 --seed 3")
    assert "2 faults injected, 1 with a violated guarantee" in page
    assert listed(page) == [("few processes", 12)]
    assert listed(table([KEPT], {}, "x")) == []


def test_a_section_of_another_page() -> None:
    """All headings one deeper; a page keeps its one title, and what was missed then stays listed."""
    text = section(table([MISSED], {}, "x"), "Afterwards")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["## Afterwards", "### Examples", "### Violated guarantees"]
    assert listed(text) == [("few processes", 12)]
