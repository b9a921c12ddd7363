"""Suggestions of the diagnosis name what a user can still try."""

import json
from types import SimpleNamespace

import pyarrow as pa

from pipeline.records.results.aggregated import Winner
from pipeline.report.page.table_sections import winner_findings
from pipeline.report.winner_selection import find_winners


class Tables:
    """A table of variants and one of diagnoses, as the page reads them."""

    def __init__(self, winner: Winner, points: list[dict[str, object]], rules: tuple[str, ...] = ()) -> None:
        self.summary = SimpleNamespace(winners=(winner,))
        cell = winner.cell
        names = {
            "kernel": cell.kernel,
            "workload": cell.workload,
            "hardware": cell.hardware,
            "dtype": cell.dtype,
            "implementation": winner.implementation,
        }
        variants = [names | {f"tunable.{name}": value for name, value in point.items()} for point in points]
        suggestion = {"tunable": "unroll", "technique": None, "direction": "decrease", "values": [4, 2, 1]}
        finding = {
            "task": winner.task,
            "variant": winner.variant,
            "code": "spills",
            "estimate_gain_at_most": None,
            "suggestions": json.dumps([suggestion]),
        }
        self._tables = {
            "variants": pa.Table.from_pylist(variants),
            "pruned": pa.Table.from_pylist(
                [names | {"scope": "variant", "rule": rule} for rule in ("", *rules)]
            ),
            "diagnoses": pa.Table.from_pylist([finding]),
        }

    def columns(self, name: str) -> list[str]:
        """Names."""
        return list(self._tables[name].column_names)

    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """All columns, or some."""
        return self._tables[name] if columns is None else self._tables[name].select(columns)

    def lists(self, name: str, columns: tuple[str, ...]) -> list[list[object]]:
        """Their values."""
        return [self._tables[name].column(column).to_pylist() for column in columns]


def test_suggestions_leave_out_what_was_tried(collected):
    """A value that was proposed with the winner's other tunables is not named; elsewhere it is still new."""
    winner = next(each for each in find_winners(collected.results) if isinstance(each, Winner))
    assert winner.tunables["unroll"] == 8
    near, far = {**winner.tunables, "unroll": 4}, {**winner.tunables, "unroll": 2, "threads_grain": 1}
    (found,) = winner_findings(Tables(winner, [winner.tunables, near, far]))
    assert [entry["values"] for entry in found["findings"][0]["suggestions"]] == [[2, 1]]
    every = [{**winner.tunables, "unroll": value} for value in (1, 2, 4, 8)]
    (found,) = winner_findings(Tables(winner, every))
    assert found["findings"][0]["suggestions"] == []
    rules = ("unroll != 4", "unroll > 1 and rows > 0")
    (found,) = winner_findings(Tables(winner, [winner.tunables], rules))
    assert [entry["values"] for entry in found["findings"][0]["suggestions"]] == [[2, 1]]
