"""The page: self-contained, whole markup, and what a reader needs."""

import html.parser
import json

import pytest

from pipeline.report.leaderboard.leaderboard_page import leaderboard_page
from pipeline.report.leaderboard.standings import boards
from tests.report.leaderboard.sample_boards import several

VOID = frozenset({"meta", "link", "br", "input", "img", "hr"})


class Markup(html.parser.HTMLParser):
    """Checks that elements end where they should; keeps texts, addresses and rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.addresses: list[str] = []
        self.rows: list[int] = []
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: D102
        values = dict(attrs)
        self.addresses += [str(values[name]) for name in ("src", "href") if name in values]
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += int(values.get("colspan") or 1)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:  # noqa: D102
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:  # noqa: D102
        if self.open and self.open[-1] == "script" and data.startswith("["):
            self.data = data
        elif self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


@pytest.fixture(scope="module")
def page() -> Markup:
    """Of five submissions on two boards."""
    made = several()
    tables = {each.key: f"{each.key}/candidates.csv" for each in made}
    return Markup(leaderboard_page(boards(made), tables, "leaderboard.csv"))


def test_markup_is_whole(page: Markup) -> None:
    """Every element ends, also with a name that looks like markup."""
    assert page.open == []
    assert "<b>\"quoted\" & 'so'" in page.texts


def test_nothing_is_loaded(page: Markup) -> None:
    """Links lead to the page itself and to files next to it."""
    assert not [each for each in page.addresses if "//" in each]
    assert any(each.endswith("/candidates.csv") for each in page.addresses)
    assert "leaderboard.csv" in page.addresses


def test_rows_are_as_wide_as_their_heading(page: Markup) -> None:
    """The ranking of the first board: a heading and four submissions."""
    assert len(set(page.rows[:5])) == 1


def test_curves_fall(page: Markup) -> None:
    """fast_p of each submission and baseline, from its correctness rate down."""
    first, second = json.loads(page.data)
    assert [each["name"] for each in first["baselines"]] == ["eager", "compile"]
    for each in (*first["submissions"], *second["submissions"]):
        for values in each["fast"].values():
            assert values == sorted(values, reverse=True)


def test_without_a_submission() -> None:
    """The page says how to make one."""
    assert any("--submission NAME" in text for text in Markup(leaderboard_page([], {}, None)).texts)
