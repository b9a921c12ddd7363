"""The folders of a sweep's jobs: jobs in, `.hydra/{config,hydra,overrides}.yaml` in each out.

Hydra spends 50 ms on these files. The jobs of a sweep have the same texts in most of them: each distinct text
is made once.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.execution.sweep.sweep_jobs import SweepJob, SweepJobs, plain_hydra
from pipeline.plan.config.plain_yaml import dump
from pipeline.plan.config.values import Plain
from pipeline.store.atomic import unwritable


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What goes wrong with files in here is the user's to mend: the folder is `hydra.sweep.dir`.

    Raises
    ------
    StoreError
        No space, no permission, or a file in the way.
    """
    try:
        yield
    except OSError as error:  # one of a write that began does not know its file
        raise unwritable(Path(error.filename or folder), error) from error


class JobFolders:
    """Writes the folders of one sweep's jobs."""

    def __init__(self, jobs: SweepJobs) -> None:
        self._hydra = plain_hydra(jobs.master)
        self._subdir = self._hydra.get("output_subdir")
        self._texts = YamlTexts()
        self._commons: dict[str, str] = {}

    def write(self, job: SweepJob) -> None:
        """Make the job's folder with Hydra's files; without these where `hydra.output_subdir` is null.

        Raises
        ------
        StoreError
            It cannot be written.
        """
        with writing(job.folder):
            job.folder.mkdir(parents=True, exist_ok=True)
            if self._subdir is None:
                return
            folder = job.folder / str(self._subdir)
            folder.mkdir(parents=True, exist_ok=True)
            _write(f"{folder}/config.yaml", self._texts.mapping(job.config.plain.items()))
            _write(f"{folder}/hydra.yaml", self._hydra_text(job))
            _write(f"{folder}/overrides.yaml", list_text(job.lines))

    def _hydra_text(self, job: SweepJob) -> str:
        """What is the job's own stands at the end of its part; the rest is the same text for all jobs."""
        own: dict[str, Plain] = {}
        for path, value in job.runtime.items():
            part, _, key = path.partition(".")
            own.setdefault(part, {})[key] = value
        return "hydra:\n" + "".join(
            [
                self._common(name, tuple(own[name])) + self._own(own[name])
                if name in own
                else self._texts.mapping([(name, value)], depth=1)
                for name, value in self._hydra.items()
            ]
        )

    def _own(self, values: Plain) -> str:
        """What one job alone has: nothing of it is kept."""
        return "".join(
            [
                f"    {key}:\n{list_text(value, depth=2)}"
                if isinstance(value, list) and value
                else YamlTexts().mapping([(key, value)], depth=2)
                for key, value in values.items()
            ]
        )

    def _common(self, name: str, left_out: tuple[str, ...]) -> str:
        """A part of Hydra's configuration without the keys that each job has its own of."""
        if name not in self._commons:
            kept = {key: value for key, value in self._hydra[name].items() if key not in left_out}
            self._commons[name] = f"  {name}:\n" + self._texts.mapping(kept.items(), depth=2)
        return self._commons[name]


def _write(path: str, text: str) -> None:
    with open(path, "wb") as stream:  # noqa: PTH123  (pathlib costs as much as the writing)
        stream.write(text.encode())


_NAME = re.compile(r"(?:\+{0,2}[A-Za-z_]|/)[A-Za-z0-9_./=,+-]{0,999}")
"""Strings that need no quotes and that no line ends in, unless they are one of these:"""
_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null", "inf", "infinity", "nan"))
_DIGITS = re.compile(r"[0-9]{1,18}")
_LONGEST_KEY = 100  # beyond 128 characters a key has another form


class YamlTexts:
    """Makes texts, and keeps those of what may come again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Any, str]] = {}

    def mapping(self, items: Iterable[tuple[Any, Any]], depth: int = 0) -> str:
        """The lines of a mapping below so many others."""
        return "".join([self._entry(key, value, depth) for key, value in items])

    def _entry(self, key: Any, value: Any, depth: int) -> str:
        if not isinstance(key, str) or len(key) > _LONGEST_KEY or not _is_name(key):
            return _below(depth, {key: value})
        simple = _scalar(value)
        if simple is not None:
            return f"{'  ' * depth}{key}: {simple}\n"
        # Nothing is changed in place: an object stands for its content; kept, its identity stays its own.
        known = (key, depth, value if isinstance(value, str) else id(value))
        if known not in self._kept:
            self._kept[known] = (value, self._made(key, value, depth))
        return self._kept[known][1]

    def _made(self, key: str, value: Any, depth: int) -> str:
        if isinstance(value, dict) and value:
            return f"{'  ' * depth}{key}:\n{self.mapping(value.items(), depth + 1)}"
        return _below(depth, {key: value})


def list_text(values: Sequence[str], depth: int = 0) -> str:
    """The lines of a list of strings at the place of a mapping below so many others."""
    simple = [_scalar(each) for each in values]
    if not simple or None in simple:
        return dump(values) if depth == 0 else _below(depth, {"_": list(values)}).partition("\n")[2]
    return "".join([f"{'  ' * depth}- {each}\n" for each in simple])


def _scalar(value: Any) -> str | None:
    """What needs no thought; None where PyYAML is to be asked."""
    if isinstance(value, str):
        if _is_name(value):
            return value
        return f"'{value}'" if _DIGITS.fullmatch(value) else None
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value) if isinstance(value, int) else None


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text.lstrip("+").lower() not in _WORDS


def _below(depth: int, value: Plain) -> str:
    """The lines of a mapping where they stand below other keys."""
    for _ in range(depth):
        value = {"_": value}
    return "".join(dump(value).splitlines(keepends=True)[depth:])
