"""What an artifacts folder holds, task by task. In: its path, perhaps an experiment. Out: results in order.

Only one task is in memory at a time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.records.errors import StoreError
from pipeline.records.layout import STAGES, output_path, spec_path
from pipeline.records.planning.specs import AggregateSpec, GenerateSpec, TaskRow, VerifySpec
from pipeline.records.record import read_record
from pipeline.records.results.collection import Collected, Result, collect
from pipeline.records.search.model_attempt import Attempt


class TaskContext(NamedTuple):
    """What the plan and generate say of a task."""

    experiment: str
    declared: GenerateSpec | None
    reference: str | None
    """`module:function`."""
    reference_digest: str | None
    attempts: dict[str, Attempt]
    """Variant -> how a language model came to it."""
    sourceless: int
    """Attempts of language models, and other proposals, that came to no variant."""


class FinishedTask(NamedTuple):
    """A task whose rounds have all come to their end."""

    told: TaskContext
    results: tuple[Result, ...]


def experiments(root: Path, wanted: str | None) -> list[AggregateSpec]:
    """Those that were planned there, in the order of their keys; `wanted` is a name or a key.

    Raises
    ------
    StoreError
        There is none, or none of that name.
    """
    paths = sorted((root / "plan" / "aggregate").glob("*.json"))
    found = [(path.stem, read_record(path, AggregateSpec)) for path in paths]
    if not found:
        raise StoreError(f"{root}: nothing to export: no experiment was planned there")
    chosen = [spec for key, spec in found if wanted is None or wanted in (key, spec.experiment)]
    if not chosen:
        names = sorted({spec.experiment for _, spec in found})
        raise StoreError(
            f"--experiment {wanted}: not in {root}; there are {', '.join(names)} (or their keys)"
        )
    return chosen


def tasks(specs: list[AggregateSpec], root: Path) -> Iterator[FinishedTask | None]:
    """Each distinct task once; None for one that has not come to its end.

    Raises
    ------
    StoreError
        An output is there and cannot be read.
    """
    seen: set[tuple[str, ...]] = set()
    for spec in specs:
        for task in spec.tasks:
            key = (task.hardware, *(getattr(task, stage) for stage in STAGES))
            if key not in seen:
                seen.add(key)
                yield _read(spec, task, root) if _has_ended(task, root) else None


def _has_ended(task: TaskRow, root: Path) -> bool:
    return all(
        output_path(root, stage, getattr(task, stage), number).is_file()
        for stage in STAGES
        for number in range(task.rounds)
    )


def _read(spec: AggregateSpec, task: TaskRow, root: Path) -> FinishedTask:
    collected = collect(msgspec.structs.replace(spec, tasks=(task,)), root)
    path = spec_path(root, "verify", task.verify)
    verify = read_record(path, VerifySpec) if path.is_file() else None
    told = TaskContext(
        experiment=spec.experiment,
        declared=collected.declared.get(task.generate),
        reference=verify.reference if verify else None,
        reference_digest=verify.reference_digest if verify else None,
        attempts=_attempts(collected),
        sourceless=sum(len(made.unfit) for _, made in collected.generated),
    )
    return FinishedTask(told=told, results=collected.results)


def _attempts(collected: Collected) -> dict[str, Attempt]:
    """The first that came to each variant."""
    found: dict[str, Attempt] = {}
    for _, made in collected.generated:
        for attempt in made.attempts:
            if attempt.variant is not None:
                found.setdefault(attempt.variant, attempt)
    return found
