"""The mutation score: outputs of mutate in, one row per mutant and one per implementation out, and markdown.

A score is killed / (killed + survived); mutants that did not compile or changed no machine code are listed
separately. Survivors carry the explanation in `survivors.yaml`, next to the sources.
"""

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.performance.metrics import ColumnType
from pipeline.records.planning.specs import AggregateSpec, MutationRow
from pipeline.records.record import Record, read_record
from pipeline.records.results.mutated import MutantRecord, MutateOutput
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

MUTANTS: dict[str, ColumnType] = {
    "kernel": "string",
    "implementation": "string",
    "mutant": "string",
    "operator": "string",
    "file": "string",
    "line": "int64",
    "before": "string",
    "after": "string",
    "fate": "string",
    "reason": "string",
    "outcome": "string",
    "preset": "string",
    "also_killed_by": "string",
    "also_passed": "string",
    "problem": "string",
    "tunables": "string",
    "tried": "int64",
    "explanation": "string",
    "seconds": "double",
}

EQUIVALENT = "Equivalent."
"""How the explanation of a survivor begins that no input in the kernel's contract could show."""

Row = dict[str, Any]


class MutantResult(Record, frozen=True, kw_only=True):
    """One implementation's mutants, and what is known of its survivors."""

    row: MutationRow
    output: MutateOutput


def collect_mutants(spec: AggregateSpec, root: Path) -> tuple[MutantResult, ...]:
    """Read what the experiment's mutations wrote.

    Raises
    ------
    StoreError
        An output is missing or cannot be read.
    """
    return tuple(
        MutantResult(row=row, output=read_record(root / "mutate" / f"{row.key}.json", MutateOutput))
        for row in spec.mutations
    )


def mutants_table(mutated: Sequence[MutantResult]) -> "pa.Table":
    """One row per mutant."""
    return row_table(MUTANTS, [_row(each, record) for each in mutated for record in each.output.records])


def scores(rows: Sequence[Row]) -> list[Row]:
    """One row per kernel and implementation, from the rows of the table.

    `also`: further preset -> how many of the judged mutants it killed.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["kernel"], row["implementation"]), []).append(row)
    return [_score(names, group) for names, group in groups.items()]


def _score(names: tuple[str, str], rows: Sequence[Row]) -> Row:
    fates = collections.Counter(row["fate"] for row in rows)
    judged = fates["killed"] + fates["survived"]
    equivalent = sum(
        row["fate"] == "survived" and (row["explanation"] or "").startswith(EQUIVALENT) for row in rows
    )
    also: dict[str, int] = {}
    for row in rows:
        for column, killed in (("also_killed_by", 1), ("also_passed", 0)):
            for preset in (row[column] or "").split():
                also[preset] = also.get(preset, 0) + killed
    return {
        "kernel": names[0],
        "implementation": names[1],
        "preset": rows[0]["preset"],
        "mutants": len(rows),
        "not_compiled": fates["not_compiled"],
        "same_code": fates["same_code"],
        "killed": fates["killed"],
        "survived": fates["survived"],
        "judged": judged,
        "explained": sum(row["fate"] == "survived" and bool(row["explanation"]) for row in rows),
        "equivalent": equivalent,
        "score": fates["killed"] / judged if judged else None,
        "also": also,
        "survivors": [row for row in rows if row["fate"] == "survived"],
    }


def _row(mutated: MutantResult, record: MutantRecord) -> Row:
    mutant, output = record.mutant, mutated.output
    own = record.presets.get(output.preset)
    others = {name: judged for name, judged in record.presets.items() if name != output.preset}
    tunables = own.tunables if own else None
    return {
        "kernel": output.kernel,
        "implementation": output.implementation,
        "mutant": mutant.id,
        "operator": mutant.operator,
        "file": mutant.file,
        "line": mutant.line,
        "before": mutant.before,
        "after": mutant.after,
        "fate": record.fate,
        "reason": (own.reason if own else None) or record.reason,
        "outcome": str(own.outcome) if own and own.outcome else None,
        "preset": output.preset,
        "also_killed_by": " ".join(name for name, judged in others.items() if judged.killed) or None,
        "also_passed": " ".join(name for name, judged in others.items() if not judged.killed) or None,
        "problem": own.problem if own else None,
        "tunables": " ".join(f"{k}={v}" for k, v in sorted(tunables.items())) if tunables else None,
        "tried": record.tried,
        "explanation": mutated.row.explained.get(mutant.id),
        "seconds": record.seconds,
    }


def mutants_markdown(rows: Sequence[Row]) -> str:
    """The scores and the survivors, for the docs."""
    found = scores(rows)
    if not found:
        return ""
    also = list(dict.fromkeys(name for score in found for name in score["also"]))
    heading = [
        *("kernel", "implementation", "mutants", "not compiling", "same code", "killed", "survived"),
        *("of these equivalent", "score", "score without equivalent ones"),
        *(f"score of `{name}`" for name in also),
    ]
    lines = [_line(heading), _line(["---", "---", *["---:"] * (len(heading) - 2)])]
    lines += [_line(_cells(score, also)) for score in found]
    lines += ["", *_outcomes(rows), ""]
    explained: dict[str, list[Row]] = {}
    for score in found:
        for row in score["survivors"]:
            explained.setdefault(row["mutant"], []).append(row)
    for group in explained.values():
        lines += _survivor(group)
    return "\n".join(lines) + "\n"


def _cells(score: Row, also: Sequence[str]) -> list[str]:
    judged = score["judged"]
    return [
        score["kernel"],
        score["implementation"],
        *(str(score[name]) for name in ("mutants", "not_compiled", "same_code", "killed", "survived")),
        str(score["equivalent"]),
        _share(score["killed"], judged),
        _share(score["killed"], judged - score["equivalent"]),
        *(_share(score["also"].get(name, 0), judged) for name in also),
    ]


def _share(killed: int, judged: int) -> str:
    return f"{killed}/{judged} ({killed / judged:.0%})" if judged else "–"


def _outcomes(rows: Sequence[Row]) -> list[str]:
    counts = collections.Counter(row["outcome"] for row in rows if row["fate"] == "killed")
    return ["Killed as: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()) + "."]


def _survivor(rows: Sequence[Row]) -> list[str]:
    first = rows[0]
    where = ", ".join(dict.fromkeys(f"{row['kernel']} ({row['implementation']})" for row in rows))
    return [
        f"**{first['mutant']}** in {where}, `{first['file']}`:",
        "",
        "```diff",
        f"-{first['before']}",
        f"+{first['after']}",
        "```",
        "",
        first["explanation"] or "Not explained.",
        "",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
