"""The mutation score: counted over what was judged; survivors are explained in table, report and docs."""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from pipeline.records.errors import StoreError
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import AggregateSpec, MutationRow
from pipeline.records.provenance import Provenance
from pipeline.records.record import to_json
from pipeline.records.results.mutated import Fate, Judged, Mutant, MutantRecord, MutateOutput
from pipeline.report.tables.mutants_table import collect_mutants, mutants_markdown, mutants_table, scores
from pipeline.stages import aggregate, report
from pipeline.store.atomic import write_atomic

KILLED = Judged(
    killed=True, outcome=Outcome.WRONG_VALUE, reason="y[0]: got 1", problem="rows=3", tunables={"LANES": 8}
)
PASSED = Judged(killed=False, outcome=None, reason=None, problem=None, tunables=None)
VERDICTS: tuple[tuple[str, Fate, dict[str, Judged]], ...] = (
    ("drop_mask-1", "killed", {"standard": KILLED, "fast": KILLED}),
    ("off_by_one-2", "killed", {"standard": KILLED, "fast": PASSED}),
    ("int32_overflow-3", "survived", {"standard": PASSED, "fast": PASSED}),
    ("missing_sync-4", "survived", {"standard": PASSED, "fast": PASSED}),
    ("drop_cast-5", "same_code", {}),
    ("swap_axes-6", "not_compiled", {}),
)
ROW = MutationRow(
    kernel="softmax",
    implementation="cpp",
    key="softmax-cpp-0",
    explained={"int32_overflow-3": "Equivalent. It needs 2^31 columns <rows>", "gone-9": "no longer made"},
)


def record(name: str, fate: Fate, presets: dict[str, Judged]) -> MutantRecord:
    """How it went with one mutant."""
    mutant = Mutant(
        id=name, operator=name.partition("-")[0], file="kernels/a.cpp", line=3, before="a < b;",
        after="a <= b;", start=0, end=1, replacement="",
    )  # fmt: skip
    provenance = Provenance(created="2026-01-01T00:00:00+00:00", host="h", toolchain={}, code="c")
    return MutantRecord(
        mutant=mutant, entry=name, fate=fate, reason="error: x" if fate == "not_compiled" else None,
        presets=presets, tried=2, unjudged=(), seconds=1.0, provenance=provenance,
    )  # fmt: skip


@pytest.fixture
def mutated(spec: AggregateSpec, root: Path) -> AggregateSpec:
    """The made-up run with the mutants of one implementation."""
    output = MutateOutput(
        key=ROW.key, kernel="softmax", implementation="cpp", preset="standard",
        records=tuple(record(*verdict) for verdict in VERDICTS),
        sites={"drop_mask": 1}, unjudged=(), seconds=1.0,
    )  # fmt: skip
    write_atomic(root / "mutate" / f"{ROW.key}.json", to_json(output))
    return msgspec.structs.replace(spec, mutations=(ROW,))


def test_score_counts_what_was_judged(mutated: AggregateSpec, root: Path) -> None:
    """What did not compile or changed no code is counted beside it."""
    (score,) = scores(mutants_table(collect_mutants(mutated, root)).to_pylist())
    names = ("mutants", "killed", "survived", "judged", "not_compiled", "same_code", "explained")
    assert [score[name] for name in names] == [6, 2, 2, 4, 1, 1, 1]
    assert score["score"] == 0.5
    assert score["also"] == {"fast": 1}
    assert [row["mutant"] for row in score["survivors"]] == ["int32_overflow-3", "missing_sync-4"]


def test_nothing_judged_is_no_score() -> None:
    """Zero of zero is not all of them."""
    table = mutants_table(())
    assert scores(table.to_pylist()) == []
    assert mutants_markdown([]) == ""


def test_markdown(mutated: AggregateSpec, root: Path) -> None:
    """Scores, then every survivor with its one-line difference and its explanation."""
    text = mutants_markdown(mutants_table(collect_mutants(mutated, root)).to_pylist())
    assert "| softmax | cpp | 6 | 1 | 1 | 2 | 2 | 1 | 2/4 (50%) | 2/3 (67%) | 1/4 (25%) |" in text
    assert "```diff\n-a < b;\n+a <= b;\n```" in text
    assert "needs 2^31 columns" in text
    assert "Not explained." in text
    assert "Killed as: wrong_value 2." in text


def test_a_missing_output_is_an_error(spec: AggregateSpec, tmp_path: Path) -> None:
    """Never a report that silently lacks its score."""
    with pytest.raises(StoreError, match="softmax-cpp-0"):
        collect_mutants(msgspec.structs.replace(spec, mutations=(ROW,)), tmp_path)


def test_report_shows_scores_and_survivors(mutated: AggregateSpec, root: Path, tmp_path: Path) -> None:
    """Killed of judged per implementation, survivors escaped and explained or marked."""
    path = root / "mutated-1.json"
    write_atomic(path, to_json(mutated))
    folder = root / "mutated"
    shared = ["--spec", str(path), "--root", str(root)]
    assert aggregate.main([*shared, "--out", str(folder / "summary.json")]) == 0
    assert pq.read_table(folder / "mutants.parquet").num_rows == len(VERDICTS)
    assert "int32_overflow-3" in (folder / "mutation.md").read_text()
    page = tmp_path / "report.html"
    assert report.main([*shared, "--aggregate", str(folder), "--out", str(page)]) == 0
    text = page.read_text()
    assert "<b>2/4</b>" in text
    assert "needs 2^31 columns &lt;rows&gt;" in text
    assert "+ a &lt;= b;" in text
    assert "Not explained." in text
