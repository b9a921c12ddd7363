"""Bundles in words: manifest, merge and results in, lines for the terminal out."""

import collections
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.execution.bundle.contents import part_of
from pipeline.execution.bundle.final_stages import FinalOutputs
from pipeline.execution.bundle.manifest import BundleManifest, TaskEnd
from pipeline.performance.quantities import counted
from pipeline.records.layout import STAGES
from pipeline.records.record import read_record
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.tracked import Tracked, TrackedCounts, TrackOutput
from pipeline.report.summary import summary_text

MIB = 1 << 20
_WHERE = {"new": "new", "known": "here already", "replaced": "replaced", "partial": "without binaries"}


def contents(manifest: BundleManifest) -> str:
    """Experiment, machine, tasks, outcomes, files."""
    return "\n".join([*_head(manifest), "", *_tasks(manifest), "", *_files(manifest)]) + "\n"


def merged(manifest: BundleManifest, counts: Mapping[str, int]) -> str:
    """One line: what the store took, or that it had everything."""
    if set(counts) <= {"known"}:
        return f"bundle   {manifest.identity}: nothing new, everything in it was here already"
    parts = [f"{counts[action]} {words}" for action, words in _WHERE.items() if action in counts]
    aside = f" (what was replaced: artifacts/bundles/{manifest.identity}/replaced)"
    return f"bundle   {manifest.identity}: {', '.join(parts)}{aside if 'replaced' in counts else ''}"


def results(closed: FinalOutputs) -> str:
    """The winners, and where to read on."""
    tracked = read_record(Path(closed.tracked), TrackOutput).result
    lines = [summary_text(read_record(Path(closed.summary), Summary)), f"report   {closed.report}"]
    if isinstance(tracked, Tracked):
        runs = f"{_runs(tracked.measured)} measured, {_runs(tracked.compiled)} only compiled"
        lines.append(f"MLflow   make ui · runs: {runs} · {tracked.links.sweep}")
    else:
        lines.append(f"MLflow   {tracked.reason}")
    return "\n".join(lines)


def print_unfinished(manifest: BundleManifest) -> bool:
    """Name the tasks that did not come to their end; whether there are any."""
    unfinished = [task for task in manifest.tasks if task.missing]
    for task in unfinished:
        print(f"not done {task.name}: {task.missing}", file=sys.stderr)
    return bool(unfinished)


def _runs(counts: TrackedCounts) -> str:
    named = {"new": counts.new, "there already": counts.same, "replaced": counts.replaced}
    return " + ".join(f"{count} {name}" for name, count in named.items() if count) or "none"


def _head(manifest: BundleManifest) -> Iterator[str]:
    yield f"{manifest.experiment}: {manifest.description}"
    yield f"bundle       {manifest.identity} of {manifest.created}, schema {manifest.schema_version}"
    yield f"overrides    {' '.join(manifest.overrides) or 'none'}"
    yield f"commit       {manifest.git or 'not a checkout'}"
    yield f"device       {manifest.device}"
    for name, value in manifest.environment.items():
        yield f"  {name:<18} {value}"


def _tasks(manifest: BundleManifest) -> Iterator[str]:
    ran = sum(job.seconds for job in manifest.jobs)
    done = sum(task.missing is None for task in manifest.tasks)
    yield f"{counted(len(manifest.tasks), 'task')}, {done} to the end; {ran:.0f} s of stages"
    for task in manifest.tasks:
        yield f"  {task.name}"
        yield f"    {_outcomes(task)}"
        if task.missing:
            yield f"    not done: {task.missing}"


def _outcomes(task: TaskEnd) -> str:
    stages = (
        f"{stage} {', '.join(f'{count} {outcome}' for outcome, count in task.outcomes[stage].items())}"
        for stage in STAGES
        if task.outcomes.get(stage)
    )
    return " · ".join(stages) or "nothing ran"


def _files(manifest: BundleManifest) -> Iterator[str]:
    total = sum(file.size for file in manifest.files)
    yield f"{counted(len(manifest.files), 'file')}, {total / MIB:.1f} MiB unpacked"
    for file in manifest.files:
        if file.cut_from is not None:
            yield f"  cut      {file.name}: {file.size:,} of {file.cut_from:,} bytes"
    stayed: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for left in manifest.left_out:
        stayed[part_of(left.name), left.reason].append(left.size)
    for (part, reason), sizes in stayed.items():
        files = f"{counted(len(sizes), f'{part} file')}, {sum(sizes) / MIB:.1f} MiB"
        yield f"  left out {files} ({reason}); digests are in the manifest"
