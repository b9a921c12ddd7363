"""The sections of the report that are tables: tables of aggregate in, rows for the template out."""

import collections
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.formula import evaluate, names_in
from pipeline.records.record import Record
from pipeline.records.results.aggregated import Cell, Winner
from pipeline.report.page.page_data import AggregateTables, PageLinks, numbered, take

LOGS_SHOWN = 6  # links per reason; all of them are in the variants table
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")

FACTS = (
    ("registers", "registers"),
    ("spills", "spills (B)"),
    ("shared_memory", "shared memory (B)"),
    ("threads_per_block", "threads"),
    ("estimate_occupancy", "occupancy"),
    ("matrix_instructions", "matrix instructions"),
    ("code_bytes", "code (B)"),
)

Row = dict[str, Any]


class FactsTable(Record, frozen=True, kw_only=True):
    """One kernel over the targets."""

    kernel: str
    implementation: str
    workloads: tuple[str, ...]
    """Workloads whose binaries have the same facts share a table."""
    dtype: str
    choice: str
    configuration: str | None
    """None where the targets differ in it; then it stands in the rows."""
    rows: list[Row]
    """Each with `heat`: fact -> place between the least and the most in this table, 0 to 1."""


class Cause(Record, frozen=True, kw_only=True):
    """Failures of one stage and outcome."""

    stage: str
    outcome: str
    count: int
    reasons: list[Row]
    """Those that differ in numbers only share a row: `reason` (the first), `count`, `where`, `logs`, `more`,
    `others` (the other texts, each with its count)."""


def facts_tables(tables: AggregateTables) -> list[FactsTable]:
    """Static facts of GPU targets, in the order of the plan."""
    rows = [row for row in tables.read("static_facts").to_pylist() if not executes_on_host(row["kind"])]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        names = ("kernel", "implementation", "dtype", "choice", "workload")
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    same: dict[tuple[object, ...], list[str]] = {}
    kept: dict[tuple[object, ...], list[Row]] = {}
    for (kernel, implementation, dtype, choice, workload), group in groups.items():
        facts = tuple(
            tuple(row[name] for name in ("hardware", "configuration", *dict(FACTS))) for row in group
        )
        key = (kernel, implementation, dtype, choice, facts)
        same.setdefault(key, []).append(workload)
        kept.setdefault(key, group)
    return [_facts_table(group, same[key]) for key, group in kept.items()]


def _facts_table(rows: list[Row], workloads: Sequence[str]) -> FactsTable:
    configurations = {row["configuration"] for row in rows}
    for name, _ in FACTS:
        values = [row[name] for row in rows if row[name] is not None]
        low, high = min(values, default=0), max(values, default=0)
        for row in rows:
            heat = row.setdefault("heat", {})
            if row[name] is not None and high > low:
                heat[name] = (row[name] - low) / (high - low)
    first = rows[0]
    return FactsTable(
        kernel=first["kernel"],
        implementation=first["implementation"],
        workloads=tuple(workloads),
        dtype=first["dtype"],
        choice=first["choice"],
        configuration=first["configuration"] if len(configurations) == 1 else None,
        rows=rows,
    )


_PLACE = ("kernel", "workload", "hardware", "written_by")


def causes(tables: AggregateTables, links: PageLinks) -> list[Cause]:
    """Failures by cause, the most frequent first; neither an absent device nor a brief measurement is one."""
    names = ["outcome", *_PLACE, "stage", "reason", "log", "configuration"]
    groups: dict[tuple[str, str], dict[str, list[Row]]] = collections.defaultdict(dict)
    for values in zip(*tables.lists("variants", names), strict=True):
        if values[0] not in ("passed", "device_unavailable", "screened"):
            row = dict(zip(names, values, strict=True))
            group = groups[(row["stage"], row["outcome"])]
            row["reason"] = row["reason"] or "no reason was recorded"
            group.setdefault(NUMBER.sub("0", row["reason"]), []).append(row)
    found = [
        Cause(
            stage=stage,
            outcome=outcome,
            count=sum(len(rows) for rows in group.values()),
            reasons=[_reason(rows, links) for rows in sorted(group.values(), key=len, reverse=True)],
        )
        for (stage, outcome), group in groups.items()
    ]
    return sorted(found, key=lambda cause: -cause.count)


def _reason(rows: list[Row], links: PageLinks) -> Row:
    texts = collections.Counter(row["reason"] for row in rows)
    first, *others = texts.most_common()
    where = collections.Counter(" · ".join(row[name] for name in _PLACE if row[name]) for row in rows)
    logged = [row for row in rows if row["log"]]
    logs = [
        {"href": links.to(row["log"]), "label": row["configuration"] or row["kernel"]}
        for row in logged[:LOGS_SHOWN]
    ]
    more = len(logged) - len(logs)
    counts = {"count": len(rows), "where": dict(where), "more": more}
    return counts | {"reason": first[0], "logs": logs, "others": others}


_VERIFICATION = ("where", "preset", "outcome", "worst_share", "weak", "differing", "isolation")


def verification(tables: AggregateTables) -> list[Row]:
    """Where verify ran, per target: how many were judged, how many passed, how near to the bound."""
    names = ["hardware", *(f"verify_{name}" for name in _VERIFICATION)]
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in tables.read("variants", names).to_pylist():
        if row["verify_where"]:
            groups[(row["hardware"], row["verify_where"])].append(row)
    return [
        {
            "hardware": hardware,
            "where": where,
            "preset": ", ".join(sorted({row["verify_preset"] for row in rows if row["verify_preset"]})),
            "judged": len(rows),
            "passed": sum(row["verify_outcome"] == "passed" for row in rows),
            "worst_share": max(
                (row["verify_worst_share"] for row in rows if row["verify_worst_share"] is not None),
                default=None,
            ),
            "weak": sum(bool(row["verify_weak"]) for row in rows),
            "changing": sum(bool(row["verify_differing"]) for row in rows),
            "isolation": list(dict.fromkeys(row["verify_isolation"] or "nothing" for row in rows)),
        }
        for (hardware, where), rows in groups.items()
    ]


GAIN_SHOWN = 1.05  # below, "at most 1.0 times" would only be noise


def winner_findings(tables: AggregateTables) -> list[Row]:
    """What limits each winner: its names, and its findings as they stand in the table."""
    wanted = {
        (winner.task, winner.variant): winner
        for winner in tables.summary.winners
        if isinstance(winner, Winner)
    }
    found: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    table = tables.read("diagnoses")
    pairs = zip(*(table.column(name).to_pylist() for name in ("task", "variant")), strict=True)
    rows = take(table, [place for place, pair in enumerate(pairs) if pair in wanted]).to_pylist()
    tried, rules = (
        (_tried(tables), _rules(tables)) if any(row["suggestions"] != "[]" for row in rows) else ({}, {})
    )
    for row in rows:
        pair = row["task"], row["variant"]
        finding, before = _finding(row, wanted[pair], tried, rules), found[pair]
        plain = finding["gain"] is None and not finding["suggestions"]
        if plain and before and all(finding[name] == before[-1][name] for name in ("code", "basis")):
            before[-1]["sentence"] += f"; {finding['sentence']}"
        else:
            before.append(finding)
    return [
        {"cell": winner.cell, "findings": found[(winner.task, winner.variant)]}
        for winner in tables.summary.winners
        if isinstance(winner, Winner) and found[(winner.task, winner.variant)]
    ]


Point = tuple[str, frozenset[tuple[str, str]]]
"""Implementation and tunables."""


def _tried(tables: AggregateTables) -> dict[Cell, set[Point]]:
    """What was proposed in each cell, whatever came of it."""
    prefix = "tunable."
    tunables = [name for name in tables.columns("variants") if name.startswith(prefix)]
    names = ("kernel", "workload", "hardware", "dtype")
    table = tables.read("variants", [*names, "implementation", *tunables])
    numbers, first = numbered(table, names)
    found: list[set[Point]] = [set() for _ in range(len(first))]
    for number, row in zip(numbers, table.drop_columns(names).to_pylist(), strict=True):
        point = {name.removeprefix(prefix): row[name] for name in tunables if row[name] is not None}
        found[number].add((row["implementation"], _texts(point)))
    cells = first.select(names).to_pylist()
    return {Cell(**cell): points for cell, points in zip(cells, found, strict=True)}


Rules = Mapping[tuple[str, str], Sequence[str]]
"""Kernel and implementation -> constraints that exclude points."""


def _rules(tables: AggregateTables) -> Rules:
    found: dict[tuple[str, str], dict[str, None]] = collections.defaultdict(dict)
    names = ("scope", "kernel", "implementation", "rule")
    for scope, kernel, implementation, rule in zip(*tables.lists("pruned", names), strict=True):
        if scope != "cell" and rule:
            found[kernel, implementation][rule] = None
    return {pair: tuple(rules) for pair, rules in found.items()}


def _is_excluded(point: Mapping[str, TunableValue], rules: Sequence[str]) -> bool:
    """By a rule on tunables alone; of others it is not known here what they read."""
    return any(names_in(rule) <= point.keys() and not evaluate(rule, point) for rule in rules)


def _texts(point: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in point.items())


def _untried(entry: Row, winner: Winner, tried: Mapping[Cell, set[Point]], rules: Rules) -> Row | None:
    """A suggestion without the values that were tried or that a constraint excludes, all other tunables as
    the winner's; None: no value."""
    known = rules.get((winner.cell.kernel, winner.implementation), ())
    points = {value: {**winner.tunables, entry["tunable"]: value} for value in entry["values"]}
    left = [
        value
        for value, point in points.items()
        if (winner.implementation, _texts(point)) not in tried[winner.cell] and not _is_excluded(point, known)
    ]
    return entry | {"values": left} if left else None


def finding_counts(tables: AggregateTables) -> list[Row]:
    """How many variants of a kernel on a target have a finding, with the sentence of one of them."""
    key = ("kernel", "hardware", "code", "basis")
    table = tables.read("diagnoses", [*key, "task", "variant", "sentence"])
    groups, first = numbered(table, key)
    variants, _ = numbered(table, ("task", "variant"))
    having = collections.Counter(group for group, _ in set(zip(groups, variants, strict=True)))
    columns = tables.lists("variants", ("kernel", "hardware", "compile_outcome"))
    compiled = collections.Counter(zip(*columns, strict=True))
    rows = first.select([*key, "sentence"]).to_pylist()
    return [
        row | {"variants": having[group], "compiled": compiled[row["kernel"], row["hardware"], "passed"]}
        for group, row in enumerate(rows)
    ]


def _finding(row: Row, winner: Winner, tried: Mapping[Cell, set[Point]], rules: Rules) -> Row:
    gain = row["estimate_gain_at_most"]
    suggestions = [_untried(entry, winner, tried, rules) for entry in json.loads(row["suggestions"])]
    return row | {
        "gain": gain if gain is not None and gain >= GAIN_SHOWN else None,
        "suggestions": [entry for entry in suggestions if entry is not None],
    }


def left_out(tables: AggregateTables) -> tuple[list[str], list[Row]]:
    """Cells that were pruned from the grid, and constraints with how many points they exclude."""
    rows = tables.read("pruned").to_pylist()
    cells = [row["reason"] for row in rows if row["scope"] == "cell"]
    groups: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row["scope"] != "cell":
            names = ("kernel", "implementation", "rule", "reason")
            group = groups.setdefault(
                tuple(row[name] for name in names), {name: row[name] for name in names} | {"where": {}}
            )
            group["where"].setdefault(row["workload"], {})[row["hardware"]] = row["count"]
    return cells, list(groups.values())


class SearchRows(Record, frozen=True, kw_only=True):
    """One task's search, round by round."""

    title: str
    search: str
    rows: list[Row]
    """Each with `gain`: best so far over the best of the first round that measured something, 1 or more; and
    `winner`: whether that is the winner of its cell."""
    stop: str | None
    """Why it ended before its rounds did."""
    remarks: tuple[str, ...]


class AblationRows(Record, frozen=True, kw_only=True):
    """One task's best variant, and what it loses without each of its techniques."""

    title: str
    implementation: str
    configuration: str
    best_seconds: float
    winner: bool
    """Whether it is the winner of its cell."""
    rows: list[Row]
    """Each with `winner`, likewise."""


def searches(tables: AggregateTables) -> list[SearchRows]:
    """Searches of several rounds, and those that ended early or have something to say."""
    found = []
    winners = winning_variants(tables)
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
            row["winner"] = (task, row["best_variant"]) in winners
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
    text = f"Static pruning dropped {row['dropped']} of {row['compiled']} compiled variants"
    if row.get("undecided"):  # absent in what an older release wrote
        text += f" and could not judge {row['undecided']} ({row['why_undecided']})"
    if row["best_kept_seconds"] is None:
        return f"{text}; nothing that it keeps was measured."
    if row["loss"] is None:
        return f"{text}; what this loses is not known: none of the kind was measured."
    return (
        f"{text}; of what it would drop {row['measured_anyway']} were measured all the same, "
        f"and without it the best would be {row['loss']:.3g} times faster."
    )


def ablations(tables: AggregateTables) -> list[AblationRows]:
    """Variants of which at least one technique was switched off."""
    winners = winning_variants(tables)
    groups: dict[tuple[str, str], list[Row]] = {}
    for task, rows in _by_task(tables, "ablation").items():
        for row in rows:
            row["winner"] = (task, row["variant"]) in winners
            groups.setdefault((task, row["best_variant"]), []).append(row)
    return [
        AblationRows(
            title=_title(rows[0]),
            implementation=rows[0]["implementation"],
            configuration=rows[0]["best_configuration"],
            best_seconds=rows[0]["best_seconds"],
            winner=group in winners,
            rows=rows,
        )
        for group, rows in groups.items()
    ]


def winning_variants(tables: AggregateTables) -> set[tuple[str, str]]:
    """Task and variant of each winner."""
    return {(each.task, each.variant) for each in tables.summary.winners if isinstance(each, Winner)}


def _by_task(tables: AggregateTables, name: str) -> dict[str, list[Row]]:
    if name not in tables.summary.tables:  # of an older release
        return {}
    groups: dict[str, list[Row]] = {}
    for row in tables.read(name).to_pylist():
        groups.setdefault(row["task"], []).append(row)
    return groups


def _title(row: Row) -> str:
    return " · ".join(row[name] for name in ("kernel", "workload", "hardware", "optimization"))
