"""Submissions on disk: one folder each, with its record and the table of its candidates."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.errors import StoreError, explained
from pipeline.records.record import read_record, to_json
from pipeline.records.results.scored import Submission
from pipeline.store.atomic import write_atomic

FOLDER = "submissions"
TABLE = "candidates.csv"
_RECORD = "submission.json"


def put_submission(root: Path, submission: Submission, table: str) -> Submission:
    """Write it in the place of an earlier judging, and return what is stored then.

    That is the earlier one if the same was found: when it was judged is part of the record.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    folder = submission_folder(root, submission)
    path = folder / _RECORD
    before = _read(path) if path.is_file() else None
    stored = before if before is not None and before.content == submission.content else submission
    write_atomic(folder / TABLE, table.encode())
    if stored is not before:
        write_atomic(path, to_json(stored))
    return stored


def read_submissions(root: Path) -> list[Submission]:
    """All that are stored, by folder; one that cannot be read is named, and left out."""
    return list(_all(root))


def remove_submission(root: Path, submission: Submission) -> Path:
    """Remove its folder, and return which one that was.

    Raises
    ------
    StoreError
        No permission.
    """
    folder = submission_folder(root, submission)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be removed: {explained(error)}") from None
    return folder


def submission_folder(root: Path, submission: Submission) -> Path:
    """Its folder; names that differ in a letter that no file may have differ in the key."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", submission.name)[:60]
    return root / FOLDER / f"{plain}-{submission.key[:12]}"


def _all(root: Path) -> Iterator[Submission]:
    for path in sorted((root / FOLDER).glob(f"*/{_RECORD}")):
        found = _read(path)
        if found is not None:
            yield found


def _read(path: Path) -> Submission | None:
    try:
        return read_record(path, Submission)
    except StoreError as error:
        print(f"{error}; judge it again", file=sys.stderr)
        return None
