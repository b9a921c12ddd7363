"""What a run left, in everything but timings, and what it had measured.

In: the artifacts of a finished run. Out: plain values that are equal for equal runs; digests of measurements.
"""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from pipeline.records.record import digest_bytes
from pipeline.store.integrity import damage
from pipeline.track.runs.run_writing import SLOT

MEASURED = ("passed", "unstable_timing", "over_roofline")
"""How a measurement ends is a matter of timing; that there is one is not."""
TABLES = ("variants", "samples", "winners", "outcomes", "pruned", "effects", "static_facts", "diagnoses")
COUNTED = ("variants", "winners", "pruned", "static_facts")
"""Tables whose number of rows does not depend on timings."""
BY_TIMING = ("baseline.", "speedup.", "verdict.", "absent.")
"""Columns that are there where something was compared."""


def state_of(artifacts: Path, aggregate: str) -> dict[str, Any]:
    """Everything but timings."""
    return {
        "variants": _output(artifacts, "generate", _plain),
        "compile": _output(artifacts, "compile", _compiled),
        "verify": _output(artifacts, "verify", _verified),
        "profile": _output(artifacts, "profile", _profiled),
        "tables": _tables(artifacts / "aggregate" / aggregate),
        "report": (artifacts / "report" / aggregate / "report.html").stat().st_size > 100_000,
        "tracked": (artifacts / "track" / aggregate / "tracked.json").is_file(),
        "mlflow": _runs(artifacts / "mlflow" / "mlflow.db", _loggable(artifacts)),
        "damaged": _damaged(artifacts),
    }


def aggregate_key(artifacts: Path) -> str:
    """Of the one experiment that was run."""
    (spec,) = (artifacts / "plan" / "aggregate").glob("*.json")
    return spec.stem


def measurements(artifacts: Path) -> dict[str, str]:
    """Whole entries of profile -> digest of their samples and record."""
    found = {}
    for folder in sorted((artifacts / "store" / "profile").glob("*/*")):
        if not folder.name.startswith(".") and damage(folder) is None:
            files = [digest_bytes((folder / name).read_bytes()) for name in ("record.json", "rounds.json")]
            found[folder.name] = " ".join(files)
    return found


def _output(artifacts: Path, stage: str, plain: Any) -> dict[str, Any]:
    found = {}
    for path in sorted((artifacts / stage).glob("*/round*.json")):
        value = json.loads(path.read_bytes())
        records = value.get("records", value.get("variants"))
        found[f"{path.parent.name}/{path.name}"] = [plain(record) for record in records]
    return found


def _plain(record: dict[str, Any]) -> Any:
    return record


def _ended(record: dict[str, Any]) -> str:
    result = record["result"]
    return result["outcome"] if result["type"] == "failure" else "passed"


def _compiled(record: dict[str, Any]) -> Any:
    result = record["result"]
    return (
        record["entry"],
        _ended(record),
        result.get("artifact_digest"),
        result.get("facts"),
        result.get("files"),
    )


def _verified(record: dict[str, Any]) -> Any:
    names = [check["check"] for check in record["checks"]]
    return record["entry"], _ended(record), record["where"], names, record["shapes"]


def _profiled(record: dict[str, Any]) -> Any:
    result, ended = record["result"], _ended(record)
    compared = [each["baseline"] for each in result.get("comparisons", [])]
    absent = [each["baseline"] for each in result.get("absent", [])]
    if ended in MEASURED:
        return record["entry"], "measured", absent
    return record["entry"], ended, absent, compared


def _tables(folder: Path) -> Any:
    """Columns and rows of each table."""
    import pyarrow.parquet as pq

    found = {}
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        fixed = [column for column in table.column_names if not column.startswith(BY_TIMING)]
        found[name] = [fixed, table.num_rows if name in COUNTED else None]
    return found


def _runs(database: Path, expected: int) -> Any:
    """How many runs hold each result: exactly one, and finished."""
    with closing(sqlite3.connect(database)) as connection:
        query = (
            "SELECT t.value, r.status FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid "
            f"WHERE r.lifecycle_stage = 'active' AND t.key = '{SLOT}'"
        )
        slots = Counter(connection.execute(query).fetchall())
        open_ones = connection.execute(
            "SELECT count(*) FROM runs WHERE lifecycle_stage = 'active' AND status != 'FINISHED'"
        ).fetchone()[0]
    twice = {slot: count for (slot, _), count in slots.items() if count > 1}
    return {"missing": expected - len({slot for slot, _ in slots}), "twice": twice, "not finished": open_ones}


def _loggable(artifacts: Path) -> int:
    """Results that MLflow has a run for: what was measured, and what was compiled for an absent device."""
    ends = [end for found in _output(artifacts, "profile", _ended).values() for end in found]
    return sum(end in ("passed", "device_unavailable") for end in ends)


def _damaged(artifacts: Path) -> list[str]:
    folders = (folder for folder in (artifacts / "store").glob("*/*/*") if not folder.name.startswith("."))
    return sorted(f"{folder.parent.parent.name}: {found}" for folder in folders if (found := damage(folder)))
