"""Finds compiled variants by the names that the tables give them: words in, results of the store out.

A word is the beginning of a variant's id, the path of its store entry (`compile_folder`), or a selection
`key=value`: kernel, workload, hardware, architecture, dtype, implementation, backend, optimization, default,
or any tunable. Of several builds of one variant (its source was edited) the newest counts.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.specs import AggregateSpec, CompileSpec, TaskRow
from pipeline.records.record import read_record
from pipeline.records.results.collection import Result, is_default
from pipeline.records.results.compiled import CompileOutput

_KEYS: dict[str, Callable[[Result], object]] = {
    "kernel": lambda result: result.task.kernel,
    "workload": lambda result: result.task.workload,
    "hardware": lambda result: result.task.hardware,
    "architecture": lambda result: result.architecture,
    "dtype": lambda result: result.task.dtype,
    "implementation": lambda result: result.variant.implementation,
    "backend": lambda result: result.variant.backend,
    "optimization": lambda result: result.task.optimization,
    "default": lambda result: result.default,
}
_SHOWN = 12  # names in an error text


def stored(root: Path) -> tuple[Result, ...]:
    """Every variant that was compiled for a planned task, whether it passed or not; later stages left out.

    Raises
    ------
    StoreError
        A record cannot be read, or nothing was compiled.
    """
    tasks: dict[tuple[str, str, str, str], TaskRow] = {}
    for path in sorted((root / "plan" / "aggregate").glob("*.json")):
        for task in read_record(path, AggregateSpec).tasks:
            tasks.setdefault((task.compile, task.workload, task.hardware, task.optimization), task)
    found = tuple(result for task in tasks.values() for result in _of_task(root, task))
    if not found:
        raise StoreError(f"{root}: nothing was compiled yet: snakemake --cores all compile")
    return found


def one(results: Sequence[Result], words: Sequence[str]) -> Result:
    """The variant that the words name, compiled.

    Raises
    ------
    ConfigError
        No variant or several fit; the text lists what there is.
    """
    found = matching(results, words)
    if len({result.compile.entry for result in found if result.compile}) > 1:
        raise ConfigError(
            f"{' '.join(words) or 'no words'}: {len(found)} variants; add {_distinguishing(found)}"
        )
    (result, *_) = found
    if result.failure is not None:
        raise ConfigError(f"{' '.join(words)}: {result.failure.outcome}: {result.failure.reason}")
    return result


def matching(results: Sequence[Result], words: Sequence[str]) -> tuple[Result, ...]:
    """All variants that the words name, the newest build of each; raises ConfigError where there is none."""
    left: Sequence[Result] = results
    for word in words:
        fitting = [result for result in left if _fits(word, result, results)]
        if not fitting:
            raise ConfigError(f"{word}: no such variant{_instead(word, left)}")
        left = fitting
    newest: dict[tuple[object, ...], Result] = {}
    for result in left:
        key = (*(value(result) for name, value in _KEYS.items() if name != "optimization"), *_point(result))
        if key not in newest or _created(result) > _created(newest[key]):
            newest[key] = result
    return tuple(newest.values())


def _of_task(root: Path, task: TaskRow) -> Iterable[Result]:
    spec_file = spec_path(root, "compile", task.compile)
    spec = read_record(spec_file, CompileSpec) if spec_file.is_file() else None
    for number in range(task.rounds):
        path = output_path(root, "compile", task.compile, number)
        for record in read_record(path, CompileOutput).records if path.is_file() else ():
            yield Result(
                task=task,
                round=number,
                variant=record.variant,
                id=record.variant.id,
                default=is_default(record.variant, spec),
                architecture=spec.target.architecture if spec else None,
                features=spec.target.features if spec else (),
                compile=record,
            )


def _fits(word: str, result: Result, results: Sequence[Result]) -> bool:
    assert result.compile is not None
    if "=" not in word:
        name = word.rstrip("/").rpartition("/")[2]
        return bool(name) and (result.id.startswith(name) or result.compile.entry.startswith(name))
    key, _, value = word.partition("=")
    if key in _KEYS:
        return _text(_KEYS[key](result)).lower() == value.lower()
    if not any(key in other.variant.tunables for other in results):
        known = (*_KEYS, *dict.fromkeys(name for other in results for name in other.variant.tunables))
        raise ConfigError(f"{word}: unknown key '{key}' (known: {', '.join(known)})")
    return key in result.variant.tunables and _text(result.variant.tunables[key]).lower() == value.lower()


def _instead(word: str, left: Sequence[Result]) -> str:
    key, equals, _ = word.partition("=")
    if not equals:
        ids = dict.fromkeys(result.id for result in left)
        return f" (by id; there are {_listed(ids)})"
    if key in _KEYS:
        return f" (there is {_listed(dict.fromkeys(_text(_KEYS[key](result)) for result in left))})"
    values = [result.variant.tunables[key] for result in left if key in result.variant.tunables]
    return (
        f" (there is {_listed(dict.fromkeys(_text(value) for value in values)) or 'none with this tunable'})"
    )


def _distinguishing(found: Sequence[Result]) -> str:
    """Keys in which they differ, with their values."""
    shared = set.intersection(*(set(result.variant.tunables) for result in found))
    values = {
        **{key: {_text(value(result)) for result in found} for key, value in _KEYS.items()},
        **{name: {_text(result.variant.tunables[name]) for result in found} for name in sorted(shared)},
    }
    differing = [f"{key} ({_listed(sorted(each))})" for key, each in values.items() if len(each) > 1]
    return f"one of {'; '.join(differing)}" if differing else "the path of its store entry"


def _point(result: Result) -> tuple[object, ...]:
    return tuple(sorted(result.task.dimensions.items())), tuple(sorted(result.variant.tunables.items()))


def _created(result: Result) -> str:
    assert result.compile is not None
    return result.compile.provenance.created


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f", … and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def _text(value: object) -> str:
    """As one types it: truth values in small letters, as in a yaml."""
    return str(value).lower() if isinstance(value, bool) else str(value)
