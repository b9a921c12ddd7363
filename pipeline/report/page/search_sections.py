"""How the searches went, for the report: tables of aggregate in, rows for the template out."""

from typing import Any

from pipeline.records.record import Record
from pipeline.report.page.page_inputs import AggregateTables

Row = dict[str, Any]


class SearchRows(Record, frozen=True, kw_only=True):
    """One task's search, round by round."""

    title: str
    search: str
    rows: list[Row]
    """Each with `gain`: best so far over the best of the first round that measured something; 1 or more."""
    stop: str | None
    """Why it ended before its rounds did."""
    remarks: tuple[str, ...]


class AblationRows(Record, frozen=True, kw_only=True):
    """One task's best variant, and what it loses without each of its techniques."""

    title: str
    implementation: str
    configuration: str
    best_seconds: float
    rows: list[Row]


def searches(tables: AggregateTables) -> list[SearchRows]:
    """Searches of several rounds, and those that ended early or have something to say."""
    found = []
    lost = {task: rows[0] for task, rows in _by_task(tables, "pruning").items()}
    for task, rows in _by_task(tables, "rounds").items():
        stopped = next((row["reason"] for row in rows if row["reason"] is not None), None)
        remarks = dict.fromkeys(row["remarks"] for row in rows if row["remarks"] is not None)
        if task in lost:
            remarks[_pruned(lost[task])] = None
        if len(rows) == 1 and stopped is None and not remarks:
            continue
        first = next((row["best_seconds"] for row in rows if row["best_seconds"] is not None), None)
        for row in rows:
            row["gain"] = first / row["best_seconds"] if row["best_seconds"] else None
        # A round that the search had no use for says nothing but why.
        shown = [row for row in rows if row["proposed"] or row["stop"] is None]
        found.append(
            SearchRows(
                title=_title(rows[0]),
                search=rows[0]["search"],
                rows=shown,
                stop=stopped,
                remarks=tuple(remarks),
            )
        )
    return found


def _pruned(row: Row) -> str:
    told = f"Static pruning dropped {row['dropped']} of {row['compiled']} compiled variants"
    if row.get("undecided"):  # absent in what an older release wrote
        told += f" and could not judge {row['undecided']} ({row['why_undecided']})"
    if row["best_kept_seconds"] is None:
        return f"{told}; nothing that it keeps was measured."
    if row["loss"] is None:
        return f"{told}; what this loses is not known: none of the kind was measured."
    return (
        f"{told}; of what it would drop {row['measured_anyway']} were measured all the same, "
        f"and without it the best would be {row['loss']:.3g} times faster."
    )


def ablations(tables: AggregateTables) -> list[AblationRows]:
    """Variants of which at least one technique was switched off."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for task, rows in _by_task(tables, "ablation").items():
        for row in rows:
            groups.setdefault((task, row["best_variant"]), []).append(row)
    return [
        AblationRows(
            title=_title(rows[0]),
            implementation=rows[0]["implementation"],
            configuration=rows[0]["best_configuration"],
            best_seconds=rows[0]["best_seconds"],
            rows=rows,
        )
        for rows in groups.values()
    ]


def _by_task(tables: AggregateTables, name: str) -> dict[str, list[Row]]:
    if name not in tables.summary.tables:  # of an older release
        return {}
    groups: dict[str, list[Row]] = {}
    for row in tables.read(name).to_pylist():
        groups.setdefault(row["task"], []).append(row)
    return groups


def _title(row: Row) -> str:
    return " · ".join(row[name] for name in ("kernel", "workload", "hardware", "optimization"))
