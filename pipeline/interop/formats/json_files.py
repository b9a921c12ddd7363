"""Read a file of another tool as plain JSON. In: a path, plain or gzip. Out: a mapping, and its parts, typed.

What is not as it should be becomes a FormatError of one line: file, place, what was expected, what is there.
"""

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormatError, explained

GZIP = b"\x1f\x8b"
MOST_BYTES = 4 * 2**30  # the largest of the public files unpacks to 0.2 GB
MOST = 1e300  # larger numbers in a file have no meaning
SHOWN = 60  # characters of a value in an error
BITS = 63  # of a whole number, without its sign
HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: Path) -> str:
    """Text of a file, unpacked where it is gzip by its first bytes, whatever its name.

    Raises
    ------
    FormatError
        It cannot be read, is damaged, is not text, or is far too large.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if packed else path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise FormatError(f"{path}: {explained(error)}") from None
    if len(content) > MOST_BYTES:
        raise FormatError(f"{path}: expected at most {MOST_BYTES >> 30} GiB of text, got more")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path}: expected UTF-8 text, got {content[error.start]:#x} at byte {error.start}"
        ) from None


def parsed(text: str, path: Path) -> dict[str, Any]:
    """The JSON object that a text holds.

    Raises
    ------
    FormatError
        It is no JSON, or no object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise FormatError(f"{path}: {place}: expected JSON, got an error: {error.msg}") from None
    except RecursionError:
        raise FormatError(f"{path}: expected JSON, got nesting without end") from None
    except ValueError:  # Python converts no more of them
        raise FormatError(f"{path}: expected JSON, got a number of more than 4,300 digits") from None
    return mapping(value, f"{path}: top level")


def mapping(value: object, place: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if isinstance(value, dict):
        return value
    raise unexpected(place, "an object", value)


def sequence(value: object, place: str) -> list[Any]:
    """The value, if it is a list."""
    if isinstance(value, list):
        return value
    raise unexpected(place, "a list", value)


def text(value: object, place: str) -> str:
    """The value, if it is a string."""
    if isinstance(value, str):
        return value
    raise unexpected(place, "a string", value)


def number(value: object, place: str) -> float:
    """The value, if it is a number that says something: no NaN, no infinity."""
    if is_number(value):
        return value
    raise unexpected(place, "a number", value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is one; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST < value < MOST


def seconds(value: object, place: str) -> float:
    """The value, if it can be what something took: nothing takes no time, or less."""
    if number(value, place) > 0:
        return number(value, place)
    raise unexpected(place, "a time above 0", value)


def optional_text(value: object) -> str | None:
    """The value, if it is a string that says something."""
    return value if isinstance(value, str) and value else None


def part(values: Mapping[str, Any], key: str, place: str) -> Any:
    """What stands under a key that must be there."""
    if key in values:
        return values[key]
    raise FormatError(f"{place}: expected the key '{key}', got {listed(values)}")


def tunable_value(value: object, place: str) -> TunableValue:
    """The value, if a tunable can have it."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        if is_number(value) and (isinstance(value, float) or value.bit_length() <= BITS):
            return value
        raise unexpected(place, f"a number of at most {BITS + 1} bits", value)
    raise unexpected(place, "a number, a string or a truth value", value)


def whole_characters(text: str, content: object, path: Path) -> None:
    """Raise FormatError where JSON's escapes make half a character, which no output can hold."""
    if HALF.search(text) is None:
        return
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start].encode("unicode_escape").decode()
        raise FormatError(f"{path}: expected text, got half a character: {half}") from None


def unexpected(place: str, expected: str, value: object) -> FormatError:
    """The error of one value."""
    return FormatError(f"{place}: expected {expected}, got {shown(value)}")


def shown(value: object) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    """Some names, not too many."""
    some = [repr(name) for name in list(names)[:8]]
    return ", ".join([*some, "…"] if len(names) > len(some) else some) or "nothing"
