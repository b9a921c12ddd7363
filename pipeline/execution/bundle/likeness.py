"""Do two files say the same? A stage's output or record from here and one from a bundle in, a verdict out.

Equal bytes say the same. So do results that differ only in when and where they were made: compiling twice
gives one artifact, verifying twice one verdict. Two measurements never say the same, as their figures differ.
"""

from typing import Any, Literal

import msgspec

Likeness = Literal["same", "alike", "earlier", "later"]
"""`alike`: ours is as good. `earlier`, `later`: they differ, and ours was made before or after the other."""

_UNIMPORTANT = ("provenance", "seconds")


def compare(stage: str, ours: bytes, theirs: bytes) -> Likeness:
    """How our file stands to theirs; one of ours that cannot be read is an earlier one."""
    if ours == theirs:
        return "same"
    try:
        mine = msgspec.json.decode(ours)
    except msgspec.DecodeError:
        return "earlier"
    other = msgspec.json.decode(theirs)
    if stage == "mutate" or _essence(stage, mine) == _essence(stage, other):
        return "alike"
    return "later" if _made(mine) > _made(other) else "earlier"


def _essence(stage: str, value: Any) -> object:
    """What counts in an output or a record: of a verdict whether it passed, or how it failed."""
    if stage == "generate":
        return value
    if "records" in value:
        found = [_essence(stage, record) for record in value["records"]]
        return [value["key"], value["round"], sorted(found, key=repr)]
    if stage == "verify":
        return [value["variant"], value["entry"], _ending(value["result"])]
    return {name: part for name, part in value.items() if name not in _UNIMPORTANT}


def _ending(result: Any) -> object:
    return result.get("outcome", result.get("type"))


def _made(value: Any) -> str:
    """Time of the last result in it: ISO 8601 in UTC sorts as text."""
    records = value.get("records", [value])
    return max((record["provenance"]["created"] for record in records if "provenance" in record), default="")
