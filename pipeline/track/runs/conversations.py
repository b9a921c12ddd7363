"""What a sweep asked of language models. In: its tables, the store. Out: prompts and answers, and folders.

A variant's run has those that it came of; what came to nothing (wrong, broken, refused) has no run, so the
sweep's run has them all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.records.layout import entry_path
from pipeline.track.runs import mlflow_names


def conversations(tables: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """File and folder: `agents/softmax.awkward.cpu/round1/attempt0 wrong_value/0/prompt.md`.

    The folder's name ends with what became of the attempt's variant, or of the attempt that came to none.
    """
    attempts = _rows(tables / "attempts.parquet")
    became = (
        {row["variant"]: row["outcome"] for row in _rows(tables / "variants.parquet")} if attempts else {}
    )
    for row in attempts:
        where = mlflow_names.key(".".join(row[name] for name in ("kernel", "workload", "hardware")))
        ended = became.get(row["variant"], row["outcome"])
        folder = f"agents/{where}/round{row['round']}/attempt{row['attempt']} {ended}"
        for number, entry in enumerate((row["answers"] or "").split()):
            asked = entry_path(root, "answers", entry)
            for path in sorted(asked.glob("*.md")) if asked.is_dir() else ():
                yield path, f"{folder}/{number}"


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    if not path.is_file():
        return []
    columns = pq.read_schema(path).names
    wanted = ["kernel", "workload", "hardware", "round", "attempt", "outcome", "variant", "answers"]
    return list(pq.read_table(path, columns=[name for name in wanted if name in columns]).to_pylist())
