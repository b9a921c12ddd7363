"""The bare loop that the pipeline is measured against: the same compiles, the same calls, nothing else.

    python -m tests.benchmarks.bare compile|profile FOLDER

FOLDER is a checkout in which the pipeline has just done the same work: its specs say what to do, its raw
rounds how many calls to time. No verification, isolation, statistics, cache, records or ceilings.

It does what an honest user's loop does. Compiling: the backend's own function in one process per core, each
variant by itself: that system headers are compiled once per round is the pipeline's doing, as is what makes
torch.compile cheaper than by its own defaults.
Timing: in one process, with the pipeline's threads, allocator and OpenMP runtime (a loop that lacks them is
slower, which would flatter the pipeline); each variant is warmed up for the least time of the settings, and
each batch is preceded by the same untimed calls as in the pipeline, without which its samples would be worse
(`pipeline.measure.hosting.timed_batch`). Not in it: its further warm-up, fresh content.
"""

import concurrent.futures
import ctypes
import functools
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.records.layout import entry_path, output_path
from pipeline.records.planning.specs import CompileSpec, ProfileSpec
from pipeline.records.record import digest, read_record
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.variant import Generated

Call = Callable[[], object]
FACTS = {
    "cpp": (
        ("pipeline.backends.cpp.compiler", "disassemble"),
        ("pipeline.backends.cpp.facts", "static_facts"),
    ),
    "triton": (("pipeline.backends.triton.compilation", "facts_of"),),
}
"""Backend -> functions that are called in a compile and make its static facts."""


class Parts:
    """Seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, part: str, seconds: float) -> None:
        """Of one more piece of a part."""
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds

    def timed(self, part: str, action: Callable[[], Any]) -> Any:
        """Do it, and add what it took."""
        started = time.perf_counter()
        result = action()
        self.add(part, time.perf_counter() - started)
        return result


class Task(NamedTuple):
    """One task's compiles."""

    key: str
    """Of compile."""
    jobs: list[CompileJob]


def read_tasks(root: Path) -> list[Task]:
    """What the pipeline compiled."""
    tasks = []
    for path in sorted((root / "plan" / "compile").glob("*.json")):
        spec = read_record(path, CompileSpec)
        generated = read_record(output_path(root, "generate", spec.parent, 0), Generated)
        jobs = [
            CompileJob(
                variant=variant,
                implementation=spec.implementations[variant.implementation],
                problem=spec.problem,
                target=spec.target,
            )
            for variant in generated.variants
        ]
        tasks.append(Task(key=path.stem, jobs=jobs))
    return tasks


def compile_all(tasks: list[Task], parts: Parts) -> dict[str, Path]:
    """Compile every variant, a process per core; `identity` of its job -> where its artifact is."""
    jobs = [job for task in tasks for job in task.jobs]
    for name in sorted({job.variant.backend for job in jobs}):
        for module in backend(name).preload:
            parts.timed("imports of the compiler", functools.partial(importlib.import_module, module))
        _time_facts(name)
    folder = Path(tempfile.mkdtemp(prefix="bare-"))
    folders = [folder / str(number) for number in range(len(jobs))]
    context = multiprocessing.get_context("fork")
    workers = len(os.sched_getaffinity(0))
    started = time.perf_counter()
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        facts = sum(pool.map(compile_one, jobs, folders))
    parts.add("compile", time.perf_counter() - started)
    parts.add("(including static facts, on one core)", facts)
    return {identity(job): place for job, place in zip(jobs, folders, strict=True)}


def identity(job: CompileJob) -> str:
    """Two tasks may have one variant for tensors of different layouts, which are different binaries."""
    return digest([job.variant.id, job.problem.tensors])


def compile_one(job: CompileJob, folder: Path) -> float:
    """One compile into a folder of its own; seconds that its static facts took."""
    folder.mkdir()
    before = _facts.seconds.get("facts", 0.0)
    backend(job.variant.backend).compile(job, Path.cwd(), folder)
    return _facts.seconds.get("facts", 0.0) - before


_facts = Parts()


def _time_facts(name: str) -> None:
    """Have the functions that make static facts timed, here and in processes that are forked from here."""
    for module, function in FACTS.get(name, ()):
        owner = importlib.import_module(module)
        real = getattr(owner, function)
        setattr(owner, function, lambda *args, real=real: _facts.timed("facts", lambda: real(*args)))


def time_task(root: Path, spec_path: Path, artifacts: dict[str, Path], parts: Parts) -> None:
    """As many calls of each candidate and baseline as the pipeline made, one variant after the other."""
    spec = read_record(spec_path, ProfileSpec)
    output = read_record(output_path(root, "profile", spec_path.stem, 0), ProfileOutput)
    tensors, baselines = parts.timed("baselines", lambda: _baselines(spec))
    for record in output.records:
        rounds = json.loads((entry_path(root, "profile", record.entry) / "rounds.json").read_bytes())
        job = CompileJob(
            variant=record.variant,
            implementation=spec.implementations[record.variant.implementation],
            problem=spec.problem,
            target=spec.target,
        )
        candidate = bind(artifacts[identity(job)] / "kernel.so", job, tensors)
        calls = {**baselines, "candidate": candidate}
        parts.timed("warm-up", functools.partial(_for, candidate, spec.settings.warmup_seconds))
        for each in rounds:
            for name, batch in each["batches"].items():
                _batch(calls[name], batch, parts, alone=len(calls) == 1)


def _batch(call: Call, batch: dict[str, Any], parts: Parts, *, alone: bool) -> None:
    """The untimed calls before a batch as the pipeline makes them, then the batch's own."""
    from pipeline.measure.hosting.timed_batch import LEAD_SHARE, settle_seconds

    one, calls = batch["seconds"] / batch["calls"], batch["calls"]
    settle = settle_seconds(one, alone=alone)
    if settle is not None:
        parts.timed("stabilizing", lambda: _for(call, settle))
        parts.timed("stabilizing", lambda: _times(call, max(1, round(LEAD_SHARE * calls))))
    parts.timed("timed calls", lambda: _times(call, calls))


def _for(call: Call, seconds: float) -> None:
    end = time.perf_counter() + seconds
    call()
    while time.perf_counter() < end:
        call()


def _times(call: Call, calls: int) -> None:
    for _ in range(calls):
        call()


def _baselines(spec: ProfileSpec) -> tuple[dict[str, Any], dict[str, Call]]:
    """Tensors of the problem, and the baselines on them, called once."""
    import torch

    module, _, function = spec.reference.partition(":")
    reference = getattr(importlib.import_module(module), function)
    dtype = getattr(torch, spec.problem.element)
    tensors = {name: torch.randn(spec.problem.shape(name)).to(dtype) for name in spec.problem.tensors}
    inputs = [tensors[name] for name in spec.problem.names("input")]
    scalars = spec.problem.scalars
    calls: dict[str, Call] = {"eager": lambda: reference(*inputs, **scalars)}
    if "compile" in spec.settings.baselines:
        import torch._inductor.config

        # Without these two it takes longer; the pipeline sets them as well. That it tries out no further
        # vector instructions, and precompiles torch's header only where that pays, is its own doing.
        torch._inductor.config.compile_threads = 1
        torch._inductor.config.cpp.vec_isa_ok = True
        compiled = torch.compile(reference, dynamic=False)
        calls["compile"] = lambda: compiled(*inputs, **scalars)
    chosen = {name: call for name, call in calls.items() if name in spec.settings.baselines}
    for call in chosen.values():
        _for(call, spec.settings.warmup_seconds)
    return tensors, chosen


def bind(library: Path, job: CompileJob, tensors: dict[str, Any]) -> Call:
    """The C function with its arguments."""
    entry = ctypes.CDLL(str(library))[job.implementation.entry]
    problem = job.problem
    strides = [name for name, tensor in problem.tensors.items() if tensor.layout == "row_strided"]
    arguments = [
        *(ctypes.c_void_p(tensors[name].data_ptr()) for name in problem.tensors),
        *(ctypes.c_int64(size) for size in problem.dimensions.values()),
        *(ctypes.c_int64(tensors[name].stride(0)) for name in strides),
        *(ctypes.c_double(value) for value in problem.scalars.values()),
    ]
    return lambda: entry(*arguments)


def _prepare_timing() -> None:
    """Torch, and the surroundings that the pipeline times in."""
    from pipeline.backends.cpp.loading import share_openmp
    from pipeline.backends.devices.cpu.timer import CpuTimer

    CpuTimer(flush_cache=False).prepare()
    share_openmp()


def main() -> None:
    """Do the work; print how long its parts took, as JSON."""
    what, root = sys.argv[1], Path(sys.argv[2]) / "artifacts"
    parts = Parts()
    tasks = read_tasks(root)
    artifacts = compile_all(tasks, parts)
    if what == "profile":
        parts.timed("import of torch", _prepare_timing)
        for path in sorted((root / "plan" / "profile").glob("*.json")):
            time_task(root, path, artifacts, parts)
    print(json.dumps(parts.seconds))


if __name__ == "__main__":
    main()
