"""Recorded measurements that tests replay: a T4 file, made up."""

import json
from pathlib import Path
from typing import Any

from pipeline.records.record import digest_bytes
from pipeline.records.search.recorded_space import RecordedFile

SAMPLES = (2.0, 1.0, 1.5, 1.25)
"""Milliseconds."""


def result(block: int, unroll: int, invalidity: str = "correct", **changes: Any) -> dict[str, Any]:
    """One result of T4; the more threads, the faster."""
    runtimes = [sample * 64 / block for sample in SAMPLES]
    return {
        "configuration": {"block": block, "unroll": unroll},
        "times": {"compilation": 500.0, "benchmark": 40.0, "runtimes": runtimes},
        "invalidity": invalidity,
        "correctness": int(invalidity == "correct"),
        "measurements": [],
        "objectives": ["time"],
        **changes,
    }


def t4(**metadata: Any) -> dict[str, Any]:
    """Six of eight points: two passed, four failed in as many ways."""
    return {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds", "kernel": "toy", "device": "Some GPU", **metadata},
        "results": [
            result(64, 1),
            result(128, 1, measurements=[{"name": "energy", "value": 0.5, "unit": "J"}]),
            result(256, 1, "compile"),
            result(512, 1, "runtime"),
            result(64, 2, "correctness"),
            result(128, 2, "timeout"),
        ],
    }


def written(folder: Path, content: dict[str, Any] | None = None) -> Path:
    """The content as a file."""
    path = folder / "toy.json"
    path.write_text(json.dumps(t4() if content is None else content))
    return path


def file_of(path: Path) -> RecordedFile:
    """As the plan would find it."""
    return RecordedFile(
        path=str(path),
        digest=digest_bytes(path.read_bytes()),
        format="T4",
        device="Some GPU",
        implementation="toy",
    )
