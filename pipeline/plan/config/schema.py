"""Turn what a yaml says into a record; an error is one line naming the file, the key and what is known."""

import math
import re
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec

from pipeline.records.errors import ConfigError, hint, suggestion
from pipeline.records.record import Record, from_plain

MISSING = "???"  # OmegaConf's mark for a value that must be given
AT = re.compile(r"(.*) - at `\$\.([^`]*)`")
"""How msgspec ends what a record's own check said."""
BITS = 63  # of a whole number: specs and keys are made of JSON that every reader can read

R = TypeVar("R", bound=Record)


def to_record(plain: object, kind: type[R], where: str) -> R:
    """Build the record of one option.

    Raises
    ------
    ConfigError
        The first thing that is wrong: `where: key: expected …, got …`, an unknown key, or a missing one.
    """
    if not isinstance(plain, dict):
        raise ConfigError(f"{where}: expected a mapping, got {_got(plain)}")
    named = _with_off(plain)
    try:
        record = from_plain(named, kind)
    except (msgspec.ValidationError, ValueError) as error:
        for problem in _problems(named, kind, ""):
            raise ConfigError(f"{where}: {problem}") from None
        raise ConfigError(f"{where}: {_inside(str(error))}") from None
    for each in _scalars(named):  # what is as good as any other to msgspec
        if _unusable(each, kind) is not None:
            problem = next(_problems(named, kind, ""), f"got {each!r}, which cannot be kept")
            raise ConfigError(f"{where}: {problem}")
    return record


def _inside(text: str) -> str:
    """`tries: got 0 - at `$.agent`` as `agent.tries: got 0`: what a record found itself, with its key."""
    found = AT.fullmatch(text)
    return f"{found[2]}.{found[1]}" if found else text


def _scalars(value: Any) -> Iterator[Any]:
    """All values in it that hold no others."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _scalars(item)
    else:
        yield value


def _unusable(value: object, kind: Any) -> str | None:
    """What is wrong with a value whatever is expected: still to be given, or a number that JSON has not."""
    if value == MISSING:
        return f"missing value (expected {_expected(kind)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"expected a finite number, got {value}"
    if isinstance(value, int) and value.bit_length() > BITS:
        return f"expected a number of at most {BITS} bits, got one of {value.bit_length()}"
    return None


def _with_off(value: Any) -> Any:
    """YAML 1.1 reads the bare key `off` as false; it is the only such word among our keys."""
    if isinstance(value, dict):
        return {("off" if key is False else key): _with_off(item) for key, item in value.items()}
    return [_with_off(item) for item in value] if isinstance(value, list) else value


def _problems(value: object, kind: Any, path: str) -> Iterator[str]:
    """All that is wrong, outermost first."""
    unusable = _unusable(value, kind)
    if unusable is not None:
        yield f"{path}: {unusable}"
        return
    kind = _struct_of(kind) if isinstance(value, dict) else kind
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _struct_problems(value, kind, path)
    elif origin is dict:
        yield from _dict_problems(value, kind, path)
    elif origin is tuple and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, typing.get_args(kind)[0], f"{path}[{number}]")
    elif isinstance(value, dict) and (inner := _optional_record(kind)) is not None:
        yield from _struct_problems(value, inner, path)
    elif not _fits(value, kind):
        yield f"{path}: expected {_expected(kind)}, got {_got(value)}{_meant(value, kind)}"


def _meant(value: object, kind: Any) -> str:
    """The word of a list of words that was probably meant."""
    words = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    return suggestion(value, map(str, words)) if isinstance(value, str) else ""


def _struct_of(kind: Any) -> Any:
    """The one struct of a union, in which a mapping can only be meant; any other kind as it is."""
    structs = [
        each for each in typing.get_args(kind) if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    is_union = isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
    return structs[0] if is_union and len(structs) == 1 else kind


def _struct_problems(value: object, kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected {_expected(kind)}, got {_got(value)}"
        return
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    inside = f" in {path}" if path else ""
    for key in value:
        if key not in fields:
            yield f"unknown key '{key}'{inside}{hint(str(key), fields)}"
    for name, field in fields.items():
        if name in value:
            yield from _problems(value[name], field.type, f"{path}.{name}" if path else name)
        elif field.required:
            yield f"missing key '{name}'{inside} (expected {_expected(field.type)})"


def _optional_record(kind: Any) -> type[msgspec.Struct] | None:
    """The record of `Record | None`: errors in it are reported as precisely as elsewhere."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return None
    records = [
        each for each in typing.get_args(kind) if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    return records[0] if len(records) == 1 else None


def _dict_problems(value: object, kind: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected {_expected(kind)}, got {_got(value)}"
        return
    for key, item in value.items():
        if not isinstance(key, str):
            yield f"{path}: expected a string as key, got {_got(key)} (quote it)"
        yield from _problems(item, typing.get_args(kind)[1], f"{path}.{key}")


def _fits(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _expected(kind: Any) -> str:
    """A type in the words of a yaml's author."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(str(value) for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_expected(each) for each in arguments))
    if origin is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return "a mapping"
    if origin is tuple:
        return "a list"
    words = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
    return words.get(kind, "null" if kind is type(None) else str(kind))


def _got(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "null" if value is None else f"{type(value).__name__} {value!r}"
