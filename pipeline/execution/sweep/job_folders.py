"""The folders of a sweep's jobs: jobs in, `.hydra/{config,hydra,overrides}.yaml` in each out.

Hydra spends 50 ms on these files. The jobs of a sweep have the same texts in most of them: each distinct text
is made once.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pipeline.execution.sweep.sweep_jobs import SweepJob, SweepJobs, plain_hydra
from pipeline.execution.sweep.texts import Texts, list_text
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


class Folders:
    """Writes the folders of one sweep's jobs."""

    def __init__(self, jobs: SweepJobs) -> None:
        self._hydra = plain_hydra(jobs.master)
        self._subdir = self._hydra.get("output_subdir")
        self._texts = Texts()
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
                else Texts().mapping([(key, value)], depth=2)
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
