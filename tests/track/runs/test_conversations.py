"""Prompts and answers of a whole sweep, those that came to nothing too."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.records.layout import entry_path
from pipeline.track.runs.sweep_run import conversations

WHERE = {"kernel": "softmax", "workload": "awkward", "hardware": "cpu", "round": 1}


def write(tables: Path, root: Path) -> None:
    """Two attempts: a wrong variant after two requests, and a refusal whose second answer is gone."""
    attempts = [
        {**WHERE, "attempt": 0, "outcome": "used", "variant": "v0", "answers": "aa11 bb22"},
        {**WHERE, "attempt": 1, "outcome": "refused", "variant": None, "answers": "cc33 dd44"},
    ]
    pq.write_table(pa.Table.from_pylist(attempts), tables / "attempts.parquet")
    variants = [{"variant": "v0", "outcome": "wrong_value"}]
    pq.write_table(pa.Table.from_pylist(variants), tables / "variants.parquet")
    for entry in ("aa11", "bb22", "cc33"):
        folder = entry_path(root, "answers", entry)
        folder.mkdir(parents=True)
        for name in ("prompt.md", "answer.md", "record.json"):
            (folder / name).write_text(entry)


def test_every_attempt_has_its_folder(tmp_path: Path) -> None:
    """By round, with what became of it; the record stays in the store, what is gone is left out."""
    write(tmp_path, tmp_path)
    found = [(path.read_text(), path.name, folder) for path, folder in conversations(tmp_path, tmp_path)]
    base = "agents/softmax.awkward.cpu/round1"
    assert found == [
        ("aa11", "answer.md", f"{base}/attempt0 wrong_value/0"),
        ("aa11", "prompt.md", f"{base}/attempt0 wrong_value/0"),
        ("bb22", "answer.md", f"{base}/attempt0 wrong_value/1"),
        ("bb22", "prompt.md", f"{base}/attempt0 wrong_value/1"),
        ("cc33", "answer.md", f"{base}/attempt1 refused/0"),
        ("cc33", "prompt.md", f"{base}/attempt1 refused/0"),
    ]


def test_without_a_language_model_there_is_nothing(tmp_path: Path) -> None:
    """An older release's tables have no attempts."""
    assert list(conversations(tmp_path, tmp_path)) == []
