"""Write T4 files. In: a RecordedSpace. Out: a file that the published schema accepts."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from pipeline.interop.formats.t4 import VERSION, t4_of
from pipeline.records.errors import FormatError
from pipeline.records.recorded import RecordedSpace
from pipeline.store.atomic import write_atomic


def write_t4(space: RecordedSpace, path: Path) -> None:
    """Write the results of a space, whole or not at all.

    Raises
    ------
    FormatError
        They would not be T4.
    StoreError
        The file cannot be written.
    """
    content = t4_of(space)
    check_t4(content, str(path))
    write_atomic(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def check_t4(content: dict[str, Any], name: str) -> None:
    """Compare with the published schema.

    Raises
    ------
    FormatError
        The first thing that it does not allow.
    """
    import jsonschema

    schema = resources.files("pipeline.interop.formats").joinpath(f"schemas/T4-{VERSION}-results.json")
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    for error in validator.iter_errors(content):
        raise FormatError(f"{name}: {error.json_path}: not T4 {VERSION}: {error.message:.100}")
