"""What MLflow takes as names and values: anything in, what it stores without a silent cut out."""

import math
import re

from pipeline.records.record import digest

NAME_LENGTH = 250
PARAM_LENGTH = 6000
TAG_LENGTH = 8000
SWEEP = "kernelmill.sweep"
"""Tag of a sweep's run: its identity."""
CUT = " … (cut; whole in result.json)"


def key(name: str) -> str:
    """A name for a param, metric or tag; a replaced character leaves a mark so that no two names meet."""
    safe = re.sub(r"[^\w./ \-]", "_", name).strip(" /.") or "_"
    if safe == name and len(name) <= NAME_LENGTH:
        return name
    return f"{safe[: NAME_LENGTH - 7]}-{digest(name)[:6]}"


def param(value: object) -> str:
    """A param's text, as a yaml would write it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return cut(text, PARAM_LENGTH)


def tag(value: str) -> str:
    """A tag's text."""
    return cut(value, TAG_LENGTH)


def cut(text: str, length: int) -> str:
    """The text, or its beginning with a mark that says so."""
    return text if len(text) <= length else text[: length - len(CUT)] + CUT


def number(value: object) -> float | None:
    """A metric's value; None if it is no finite number, which MLflow would store as another one."""
    if not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
