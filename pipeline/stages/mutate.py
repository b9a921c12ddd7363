"""mutate: small mistakes in a right kernel's sources -> which of them the gate finds.

In: a MutateSpec. Out: a MutateOutput; the verdict on each mutant is kept in the store.

    python -m pipeline.stages.mutate --spec S.json --out O.json [--root artifacts]
"""

import argparse
import concurrent.futures
import os
import queue
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pipeline.backends.registry import backend
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.planning.specs import MutateSpec, MutateTask
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.mutated import EFFORT, Mutant, MutantRecord, MutateOutput
from pipeline.records.results.variant import Variant
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.search.spaces.search_space import constants_of, subspace
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from pipeline.store.integrity import write_sealed
from pipeline.store.temporary import scratch_folder
from pipeline.verify.harness.planning.preparation import interpreter_of, job_of
from pipeline.verify.mutation.mutant_compiler import Compiler
from pipeline.verify.mutation.mutant_generation import find_mutants, spread
from pipeline.verify.mutation.mutant_trials import MutantTrials, Servers, describe
from pipeline.verify.mutation.variant_cover import TaskVariant, VariantCover, covering_variants


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.mutate", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="MutateSpec as JSON")
    parser.add_argument("--out", type=Path, required=True, help="MutateOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="mutants at once")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: mutate(options))


def mutate(options: argparse.Namespace) -> None:
    """Try the mutants that the store does not know yet, several side by side."""
    started = time.monotonic()
    spec = read_record(options.spec, MutateSpec)
    repository = Path.cwd()
    cover = _cover(spec)
    member = backend(spec.backend)
    sites = find_mutants(member.sources(spec.declared, repository), repository, member.language)
    sites = _alive(spec, cover, sites, repository)
    orders = [spread(mutants) for mutants in sites.values()]
    run = _Run(spec, cover, options.root)
    run.bring(orders)
    todo = [order for order in orders if run.look_up(order) is not None]
    known = len(run.records)
    if todo:
        run.try_all(todo, repository, options.workers)
    output = MutateOutput(
        key=options.spec.stem,
        kernel=spec.kernel,
        implementation=spec.implementation,
        preset=spec.presets[0].name,
        records=tuple(run.records[each.id] for order in orders for each in order if each.id in run.records),
        sites={name: len(each) for name, each in sites.items()},
        unjudged=run.unjudged,
        seconds=time.monotonic() - started,
    )
    write_sealed(options.out, to_json(output))
    _print_line(output, cached=known)


def _cover(spec: MutateSpec) -> VariantCover:
    """On which variants mutants are tried, from the whole space of each task."""
    defaults = {name: tunable.default for name, tunable in spec.declared.tunables.items()}
    return covering_variants(
        [_variants(spec, task) for task in spec.tasks], defaults, spec.settings.variants_at_most
    )


def _variants(spec: MutateSpec, task: MutateTask) -> list[Variant]:
    everything = Optimization(name="", description="")
    constants = constants_of(task.verify.problem, task.limits)
    return [
        Variant(
            kernel=spec.kernel,
            implementation=spec.implementation,
            backend=spec.backend,
            source_digest=spec.source_digest,
            attributes=task.verify.problem.attributes,
            tunables=tunables,
        )
        for tunables in subspace(spec.implementation, task.space, everything, constants).points()
    ]


def _alive(
    spec: MutateSpec, cover: VariantCover, sites: dict[str, tuple[Mutant, ...]], repository: Path
) -> dict[str, tuple[Mutant, ...]]:
    """Without those in lines that no variant compiles."""
    jobs = [job_of(spec.tasks[task_variant.task].verify, task_variant.variant) for task_variant in cover.all]
    lines = backend(spec.backend).compiled_lines(jobs, repository)
    if lines is None:
        return sites
    return {
        name: tuple(each for each in mutants if (each.file, each.line) in lines)
        for name, mutants in sites.items()
    }


class _Run:
    """Mutants of one implementation: those that the store knows, and those that are tried now."""

    def __init__(self, spec: MutateSpec, cover: VariantCover, root: Path) -> None:
        self._spec = spec
        self._cover = cover
        self._root = root
        # How many others there are changes nothing for one of them.
        self._context = digest([spec.tasks, spec.presets, spec.settings.time_limit, cover])
        self.records: dict[str, MutantRecord] = {}
        self._failing: list[str] = []

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Grounds on which the kernel itself did not pass, now or when the store's records were made."""
        kept = (text for record in self.records.values() for text in record.unjudged)
        return tuple(dict.fromkeys((*self._failing, *kept)))

    def bring(self, orders: Sequence[Sequence[Mutant]]) -> None:
        """Take from a shared store what may be asked for."""
        limit = EFFORT * self._spec.settings.per_operator
        bring_entries(self._root, "mutate", (self._entry(each) for order in orders for each in order[:limit]))

    def look_up(self, order: Sequence[Mutant]) -> Mutant | None:
        """The next mutant of an operator that must be tried, what is before it taken from the store.

        None where as many were judged as are wanted, or tried as are worth it.
        """
        wanted = self._spec.settings.per_operator
        judged = 0
        for mutant in order[: EFFORT * wanted]:
            record = self.records.get(mutant.id) or self._stored(mutant)
            if record is None:
                return mutant
            self.records[mutant.id] = record
            judged += record.fate in ("killed", "survived")
            if judged == wanted:
                break
        return None

    def _stored(self, mutant: Mutant) -> MutantRecord | None:
        return find_entry(self._root, "mutate", self._entry(mutant), MutantRecord)

    def _entry(self, mutant: Mutant) -> str:
        return digest([self._context, mutant])

    def try_all(self, orders: list[tuple[Mutant, ...]], repository: Path, workers: int) -> None:
        """The kernel itself first; then threads, each with a compiling process and an operator of its own."""
        from pipeline.verify.harness import process  # noqa: F401  (with torch, before the fork: it costs no child anything)
        from pipeline.verify.harness.conventions import outputs_given  # noqa: F401  (likewise)

        with (
            ForkServer(preload=backend(self._spec.backend).preload) as compiling,
            self._judging() as judging,
            scratch_folder() as scratch,
            concurrent.futures.ThreadPoolExecutor(workers) as pool,
        ):
            import torch

            torch.set_num_threads(1)
            bench = MutantTrials(
                self._spec, self._cover, Servers(compile=compiling, judge=judging), repository
            )
            compilers = [Compiler(compiling, scratch / f"{number}.log") for number in range(workers)]
            try:
                bench.usable = self._check(bench, compilers, pool)
                if bench.usable:
                    todo: queue.SimpleQueue[tuple[Mutant, ...]] = queue.SimpleQueue()
                    for order in orders:
                        todo.put(order)
                    futures = [pool.submit(self._drain, bench, compiler, todo) for compiler in compilers]
                    for future in futures:
                        future.result()
            finally:
                for compiler in compilers:
                    compiler.stop()

    def _check(
        self, bench: MutantTrials, compilers: list[Compiler], pool: concurrent.futures.Executor
    ) -> tuple[TaskVariant, ...]:
        """The cover on which the kernel itself passes."""
        free: queue.SimpleQueue[Compiler] = queue.SimpleQueue()
        for compiler in compilers:
            free.put(compiler)

        def check(task_variant: TaskVariant) -> str | None:
            compiler = free.get()
            try:
                return bench.check(task_variant, compiler)
            finally:
                free.put(compiler)

        usable = []
        for task_variant, reason in zip(self._cover.all, pool.map(check, self._cover.all), strict=True):
            if reason is None:
                usable.append(task_variant)
            else:
                tunables = " ".join(
                    f"{name}={value}" for name, value in task_variant.variant.tunables.items()
                )
                self._failing.append(f"{describe(self._spec, task_variant)}, {tunables}: {reason}")
        return tuple(usable)

    def _judging(self) -> ForkServer:
        """The gate's own server: forked before this process computes anything."""
        name = self._spec.backend
        for interpreter in (interpreter_of(task.verify, name) for task in self._spec.tasks):
            if interpreter is not None:
                return ForkServer(preload=interpreter.preload, environment=interpreter.environment)
        return ForkServer(preload=backend(name).preload)

    def _drain(
        self, bench: MutantTrials, compiler: Compiler, todo: "queue.SimpleQueue[tuple[Mutant, ...]]"
    ) -> None:
        while True:
            try:
                order = todo.get_nowait()
            except queue.Empty:
                return
            while (mutant := self.look_up(order)) is not None:
                self.records[mutant.id] = self._try(bench, compiler, mutant)

    def _try(self, bench: MutantTrials, compiler: Compiler, mutant: Mutant) -> MutantRecord:
        started = time.monotonic()
        entry = self._entry(mutant)
        with new_entry(self._root, "mutate", entry) as folder:
            found = bench.find(mutant, compiler)
            record = MutantRecord(
                mutant=mutant,
                entry=entry,
                fate=found.fate,
                reason=found.reason,
                presets=found.presets,
                tried=found.tried,
                unjudged=tuple(self._failing),
                seconds=time.monotonic() - started,
                provenance=provenance(self._spec.tasks[0].verify.builds[self._spec.backend]),
            )
            put_record(folder, record)
        return record


def _print_line(output: MutateOutput, *, cached: int) -> None:
    counts = Counter(record.fate for record in output.records)
    judged = counts["killed"] + counts["survived"]
    known = f" ({cached} cached)" if cached else ""
    print(
        f"mutate {output.kernel} {output.implementation}: {counts['killed']}/{judged} killed by"
        f" {output.preset},"
        f" {counts['not_compiled']} did not compile, {counts['same_code']} changed no code{known}"
        f" · {output.seconds:.1f} s",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
