"""Tries mutants: compiles each for several variants, skips those without a change, and judges the rest.

In: a MutateSpec, the variants of its tasks, the sources. Out: one MutantRecord per mutant. A mutant is killed
by the first variant that the gate rejects; it survives a preset if all variants that it changes pass.
"""

import contextlib
import functools
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pipeline.backends.registry import backend
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import MutateSpec, VerifySpec
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.mutated import Fate, Judged, Mutant
from pipeline.records.results.verified import Verified
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.verify.harness.planning.preparation import (
    can_run,
    case_set_of,
    cases_of,
    job_of,
    shapes_of,
    subject_of,
)
from pipeline.verify.mutation.mutant_compiler import Compiler, code_digest
from pipeline.verify.mutation.mutant_generation import write_mutated
from pipeline.verify.mutation.variant_cover import TaskVariant, VariantCover


class Servers(Record, frozen=True, kw_only=True):
    """Where children come from: those that compile, and those that are judged."""

    compile: ForkServer
    judge: ForkServer


class MutantTrial(Record, frozen=True, kw_only=True):
    """What became of a mutant."""

    fate: Fate
    reason: str | None = None
    presets: dict[str, Judged] = {}
    tried: int = 0


class _Case(Record, frozen=True, kw_only=True):
    """One variant before one preset."""

    verify: VerifySpec
    preset: str
    task_variant: TaskVariant


class MutantTrials:
    """Holds what all mutants of one implementation share; safe to use from several threads."""

    def __init__(self, spec: MutateSpec, cover: VariantCover, servers: Servers, root: Path) -> None:
        from pipeline.verify.oracle.random_inputs import draw_seeds

        self._spec = spec
        self._cover = cover
        self._servers = servers
        self._root = root
        self._files = backend(spec.backend).sources(spec.declared, root)
        self._seeds = {preset.name: draw_seeds(preset.seeds) for preset in spec.presets}
        self._lock = threading.Lock()
        self._case_sets = functools.cache(
            lambda preset, task: case_set_of(self._verify(preset, task), self._seeds[preset])
        )
        self.usable: tuple[TaskVariant, ...] = ()
        """Those on which the kernel itself passes; set by the caller."""
        self._codes: dict[str, str] = {}

    def check(self, task_variant: TaskVariant, compiler: Compiler) -> str | None:
        """Why the kernel itself does not pass on a task_variant, where its mutants would fail for nothing."""
        with _scratch() as scratch:
            write_mutated(None, self._files, self._root, scratch / "root")
            folder = scratch / "compiled"
            compiled = self._compile(task_variant, compiler, scratch / "root", folder)
            if isinstance(compiled, Failure):
                return compiled.reason
            self._codes[_key(task_variant)] = code_digest(compiled, folder)
            for preset in self._spec.presets:
                result = self._judge(preset.name, task_variant, compiled, scratch / "root", folder)
                if isinstance(result, Failure):
                    return result.reason
        return None

    def find(self, mutant: Mutant, compiler: Compiler) -> MutantTrial:
        """What becomes of one mutant."""
        with _scratch() as scratch:
            write_mutated(mutant, self._files, self._root, scratch / "root")
            changed: list[tuple[TaskVariant, Compiled, Path]] = []
            open_presets = {preset.name for preset in self._spec.presets}
            presets: dict[str, Judged] = {}
            for number, task_variant in enumerate(self.usable):
                if not (changed or mutant.host) and number >= self._cover.breadth:
                    break
                folder = scratch / str(number)
                compiled = self._compile(task_variant, compiler, scratch / "root", folder)
                if isinstance(compiled, Failure):
                    if not presets:
                        return MutantTrial(fate="not_compiled", reason=compiled.reason, tried=len(changed))
                    continue
                if not mutant.host and code_digest(compiled, folder) == self._codes[_key(task_variant)]:
                    continue
                changed.append((task_variant, compiled, folder))
                for preset in sorted(open_presets):
                    result = self._judge(preset, task_variant, compiled, scratch / "root", folder)
                    if isinstance(result, Failure):
                        presets[preset] = self._killed(result, task_variant)
                        open_presets.remove(preset)
                if not open_presets:
                    break
        if not changed:
            return MutantTrial(fate="same_code")
        survived = Judged(killed=False, outcome=None, reason=None, problem=None, tunables=None)
        presets |= dict.fromkeys(open_presets, survived)
        fate: Fate = "killed" if presets[self._spec.presets[0].name].killed else "survived"
        return MutantTrial(fate=fate, presets=presets, tried=len(changed))

    def _compile(
        self, task_variant: TaskVariant, compiler: Compiler, root: Path, folder: Path
    ) -> Compiled | Failure:
        folder.mkdir()
        job = job_of(self._spec.tasks[task_variant.task].verify, task_variant.variant)
        return compiler.compile(job, root, folder)

    def _judge(
        self, preset: str, task_variant: TaskVariant, compiled: Compiled, root: Path, folder: Path
    ) -> Verified | Failure:
        """The gate's verdict. On a busy machine a right kernel may be slow too: it gets all its time then."""
        spec = self._verify(preset, task_variant.task)
        limit = self._spec.settings.time_limit
        if limit < spec.settings.time_limit:
            hasty = msgspec.structs.replace(spec.settings, time_limit=limit)
            job = _Case(
                verify=msgspec.structs.replace(spec, settings=hasty), preset=preset, task_variant=task_variant
            )
            result = self._try(job, compiled, root, folder)
            if not (isinstance(result, Failure) and result.outcome is Outcome.TIMEOUT):
                return result
        return self._try(_Case(verify=spec, preset=preset, task_variant=task_variant), compiled, root, folder)

    def _try(self, case: "_Case", compiled: Compiled, root: Path, folder: Path) -> Verified | Failure:
        from pipeline.verify.harness.kernel_trial import try_variant

        spec, variant = case.verify, case.task_variant.variant
        if not can_run(spec, variant.backend):
            reason = f"no {spec.target.kind} device here, and {variant.backend} has no interpreter"
            return Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=reason)
        subject = subject_of(spec, job_of(spec, variant), compiled, root=root, folder=folder)
        with self._lock:
            case_set = self._case_sets(case.preset, case.task_variant.task)
        cases = cases_of(spec, case_set, shapes_of(spec, variant))
        log = Path(tempfile.mkdtemp(dir=folder))
        return try_variant(self._servers.judge, subject, case_set, cases, log).result

    def _verify(self, preset: str, task: int) -> VerifySpec:
        settings = next(each for each in self._spec.presets if each.name == preset)
        return msgspec.structs.replace(self._spec.tasks[task].verify, settings=settings)

    def _killed(self, failure: Failure, task_variant: TaskVariant) -> Judged:
        return Judged(
            killed=True,
            outcome=failure.outcome,
            reason=failure.reason,
            problem=describe(self._spec, task_variant),
            tunables=task_variant.variant.tunables,
        )


def describe(spec: MutateSpec, task_variant: TaskVariant) -> str:
    """Dimensions and type of a task_variant's task."""
    problem = spec.tasks[task_variant.task].verify.problem
    sizes = " ".join(f"{name}={size}" for name, size in problem.dimensions.items())
    return f"{sizes} {problem.element}"


def _key(task_variant: TaskVariant) -> str:
    return f"{task_variant.task} {task_variant.variant.id}"


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder of its own for each mutant: Python would take an older one's bytecode for this one's."""
    with tempfile.TemporaryDirectory(prefix="kernelmill-mutant-") as name:
        yield Path(name)
