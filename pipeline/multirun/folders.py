"""The folders of a sweep's jobs: jobs in, `.hydra/{config,hydra,overrides}.yaml` in each out.

Hydra spends 50 ms on these files. The jobs of a sweep have the same texts in most of them: each distinct text
is made once.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from omegaconf._utils import get_omega_conf_dumper

from pipeline.config.values import Plain
from pipeline.multirun.jobs import SweepJob, SweepJobs, plain_hydra
from pipeline.store.atomic import unwritable


class _Dumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    """As OmegaConf's, which quotes what its loader would take for a number, ten times as fast."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (the signature is PyYAML's)
        """Jobs share parts of their configurations; each file stands for itself."""
        return True


_Dumper.add_representer(str, get_omega_conf_dumper().str_representer)


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


class Folders:
    """Writes the folders of one sweep's jobs."""

    def __init__(self, jobs: SweepJobs) -> None:
        self._hydra = plain_hydra(jobs.master)
        self._subdir = self._hydra.get("output_subdir")
        self._texts: dict[tuple[str, int], tuple[Any, str]] = {}
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
            folder = Path(job.folder, str(self._subdir))
            folder.mkdir(exist_ok=True)
            (folder / "config.yaml").write_text("".join(map(self._text, job.config.plain.items())))
            (folder / "hydra.yaml").write_text(self._hydra_text(job))
            (folder / "overrides.yaml").write_text(_dump(list(job.lines)))

    def _text(self, item: tuple[str, Any], *above: str) -> str:
        """One part of a configuration; the value is kept, so that its identity stays its own."""
        name, value = item
        key = (name, id(value))
        if key not in self._texts:
            self._texts[key] = (value, _below(above, {name: value}))
        return self._texts[key][1]

    def _hydra_text(self, job: SweepJob) -> str:
        """What is the job's own stands at the end of its part; the rest is the same text for all jobs."""
        own: dict[str, Plain] = {}
        for path, value in job.runtime.items():
            part, _, key = path.partition(".")
            own.setdefault(part, {})[key] = value
        return "hydra:\n" + "".join(
            self._common(name, tuple(own[name])) + _below(("hydra", name), own[name])
            if name in own
            else self._text((name, value), "hydra")
            for name, value in self._hydra.items()
        )

    def _common(self, name: str, left_out: tuple[str, ...]) -> str:
        """A part of Hydra's configuration without the keys that each job has its own of."""
        if name not in self._commons:
            kept = {key: value for key, value in self._hydra[name].items() if key not in left_out}
            self._commons[name] = f"  {name}:\n" + (_below(("hydra", name), kept) if kept else "")
        return self._commons[name]


def _below(above: tuple[str, ...], value: Plain) -> str:
    """The lines of a mapping where they stand below other keys."""
    for name in reversed(above):
        value = {name: value}
    return "".join(_dump(value).splitlines(keepends=True)[len(above) :])


def _dump(value: Any) -> str:
    return str(
        yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False)
    )
