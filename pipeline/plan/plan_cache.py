"""The plan, made only when something that it depends on changed.

A plan costs about a second; to compare what it was made from costs some tens of milliseconds: the content of
conf/, kernels/ and pipeline/, this machine's facts, the tools' versions, and the specs that it wrote. As
contents are compared, not time stamps, a plan is never stale. Where nothing changed, neither Hydra nor grimp
is imported.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pipeline
from pipeline.plan.cluster_nodes import FOLDER, with_nodes
from pipeline.plan.identity.tool_versions import Toolchain, all_library_versions, find_tools
from pipeline.plan.local_machine import read_machine
from pipeline.plan.spec_files import are_whole
from pipeline.records.entry_points import PYPROJECT
from pipeline.records.errors import StoreError
from pipeline.records.layout import STAGES
from pipeline.records.planning.planned_tasks import Plan, Sweep
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.store.atomic import is_writable, write_atomic
from pipeline.store.integrity import is_damaged, write_sealed
from pipeline.store.temporary import scratch_folder

if TYPE_CHECKING:
    from pipeline.plan.config.compose import Compositions  # imports Hydra

NEVER = "made anew each time"
# `${oc.env:HOME}` and the like read what is not in the files.
_RESOLVER = re.compile(rb"\$\{\s*[\w.]+\s*:")


class _Kept(Record, frozen=True, kw_only=True):
    """A plan and what it was made from."""

    inputs: str
    """Digest of everything that is looked at before the plan is made."""
    files: dict[str, str]
    """Sources, wherever they lie -> digest."""
    toolchains: tuple[Toolchain, ...]
    plan: Plan


def current_plan(
    lines: tuple[str, ...],
    *,
    root: Path,
    store: Path,
    before_making: Callable[[], object] = lambda: None,
) -> Plan:
    """The plan for these overrides, its specs on disk; `before_making` is called if it must be made again.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong.
    """
    return plan_of_jobs((lines,), root=root, store=store, before_making=before_making)


@contextlib.contextmanager
def specs_store(store: Path) -> Iterator[Path]:
    """Where a plan can put its specs: the artifact folder, or a temporary one if that cannot be written."""
    if is_writable(store):
        yield store
        return
    with scratch_folder() as folder:
        if (store / FOLDER).is_dir():  # the plan counts on the same nodes
            shutil.copytree(store / FOLDER, folder / FOLDER)
        yield folder


def plan_of_jobs(
    jobs: tuple[tuple[str, ...], ...],
    *,
    root: Path,
    store: Path,
    before_making: Callable[[], object] = lambda: None,
    known: "Compositions | None" = None,
) -> Plan:
    """The same for the jobs of a sweep, each given by its overrides: one plan for all of them.

    What is composed on the way stands in `known` afterwards.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong.
    """
    path = _path(jobs, store)
    contents = dict(_contents(root))
    machine = with_nodes(read_machine(), store)
    inputs = digest([jobs, contents, machine, all_library_versions(), str(root.absolute())])
    kept = _read(path)
    if kept is not None and kept.inputs == inputs and _still_holds(kept, store):
        return kept.plan

    before_making()
    from pipeline.plan.planner import make_plan

    made = make_plan(jobs, root=root, store=store, machine=machine, known=known)
    unchanged = dict(_contents(root)) == contents and not _reads_elsewhere(jobs, root)
    kept = _Kept(
        inputs=inputs if unchanged else NEVER,
        files={name: _file_digest(Path(name)) for name in made.files},
        toolchains=made.toolchains,
        plan=made.plan,
    )
    write_sealed(path, to_json(kept))
    return made.plan


def plan_of_the_run(jobs: tuple[tuple[str, ...], ...], *, root: Path, store: Path) -> Plan:
    """The plan that the run made when it began, for its jobs on other machines, which must not plan again.

    Their machine may be another one than that on which the run was planned.
    """
    kept = _read(_path(jobs, store))
    return kept.plan if kept is not None else plan_of_jobs(jobs, root=root, store=store)


def write_sweep(jobs: tuple[tuple[str, ...], ...], *, store: Path) -> Path:
    """Put a sweep's jobs into a file, whose name says what is in it; its path."""
    path = store / "plan" / "sweeps" / f"{digest(jobs)}.json"
    write_atomic(path, to_json(Sweep(jobs=jobs)))
    return path


def spec_keys(plan: Plan) -> Iterator[tuple[str, str]]:
    """(stage, key) of every spec of a plan."""
    for task in plan.tasks:
        for stage in STAGES:
            yield stage, getattr(task.row, stage)
    for mutation in plan.mutations:
        yield "mutate", mutation.key
    yield "aggregate", plan.aggregate


def _path(jobs: tuple[tuple[str, ...], ...], store: Path) -> Path:
    return store / "plan" / "cache" / f"{digest(jobs)}.json"


def _read(path: Path) -> _Kept | None:
    if is_damaged(path):
        return None
    try:
        return read_record(path, _Kept)
    except StoreError:
        return None


def _still_holds(kept: _Kept, store: Path) -> bool:
    return (
        are_whole(store, set(spec_keys(kept.plan)))
        and all(_file_digest(Path(name)) == known for name, known in kept.files.items())
        and all(find_tools(tools.backend, tools.target) == tools for tools in kept.toolchains)
    )


def _contents(root: Path) -> Iterator[tuple[str, str]]:
    """Every file that a plan may read, with the digest of its content."""
    yield str(PYPROJECT), _file_digest(PYPROJECT)  # the entry points
    for top in (root / "conf", root / "kernels", code_folder()):
        for parent, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = Path(parent, name)
                yield str(path), _file_digest(path)


def code_folder() -> Path:
    """The folder of this package, whose files a plan depends on."""
    assert pipeline.__file__ is not None
    return Path(pipeline.__file__).parent


def _file_digest(path: Path) -> str:
    try:
        return digest_bytes(path.read_bytes())
    except IsADirectoryError:
        return digest(sorted(entry.name for entry in path.iterdir()))
    except OSError:
        return "absent"


def _reads_elsewhere(jobs: tuple[tuple[str, ...], ...], root: Path) -> bool:
    texts = [path.read_bytes() for path in sorted((root / "conf").rglob("*.yaml"))]
    return any(_RESOLVER.search(text) for text in [*texts, *(line.encode() for job in jobs for line in job)])
