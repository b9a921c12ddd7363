"""The bare loop that the pipeline is measured against: the same compiles, the same timed calls, nothing else.

    python -m tests.benchmarks.bare compile|profile FOLDER

FOLDER is a checkout in which the pipeline has just done the same work: its specs say what to do, its raw
rounds how many calls to time. No verification, no isolation, no statistics, no cache, no records.
"""

import concurrent.futures
import ctypes
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.records.record import read_record
from pipeline.records.specs import CompileSpec, ProfileSpec
from pipeline.records.variant import Generated


def compile_all(root: Path) -> tuple[Path, list[CompileJob]]:
    """Compile every variant of the one task, a process per core; where the artifacts are, and the jobs."""
    (spec_path,) = (root / "plan" / "compile").glob("*.json")
    spec = read_record(spec_path, CompileSpec)
    (variants_path,) = (root / "generate").glob("*/round0.json")
    jobs = [
        CompileJob(
            variant=variant,
            implementation=spec.implementations[variant.implementation],
            problem=spec.problem,
            target=spec.target,
        )
        for variant in read_record(variants_path, Generated).variants
    ]
    for module in backend(jobs[0].variant.backend).preload:
        __import__(module)
    folder = Path(tempfile.mkdtemp(prefix="bare-", dir=root))
    workers = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        list(pool.map(compile_one, jobs, [folder / str(number) for number in range(len(jobs))]))
    return folder, jobs


def compile_one(job: CompileJob, folder: Path) -> None:
    """One compile into a folder of its own."""
    folder.mkdir()
    backend(job.variant.backend).compile(job, Path.cwd(), folder)


def time_all(root: Path, folder: Path, jobs: list[CompileJob]) -> None:
    """As many timed calls of each candidate and baseline as the pipeline made, in plain loops."""
    import torch

    (spec_path,) = (root / "plan" / "profile").glob("*.json")
    spec = read_record(spec_path, ProfileSpec)
    module, _, function = spec.reference.partition(":")
    reference = getattr(__import__(module, fromlist=[function]), function)
    dtype = getattr(torch, spec.problem.element)
    tensors = {name: torch.randn(spec.problem.shape(name)).to(dtype) for name in spec.problem.tensors}
    inputs = [tensors[name] for name in spec.problem.names("input")]
    compiled = torch.compile(reference)
    callables = {
        "eager": lambda: reference(*inputs, **spec.problem.scalars),
        "compile": lambda: compiled(*inputs, **spec.problem.scalars),
    }
    rounds = {read_variant(path): json.loads((path / "rounds.json").read_bytes()) for path in entries(root)}
    for number, job in enumerate(jobs):
        library = ctypes.CDLL(str(folder / str(number) / "kernel.so"))
        run = bind(library, job, tensors)
        for batches in rounds.get(job.variant.id, []):
            for name, batch in batches.items():
                call = run if name == "candidate" else callables[name]
                for _ in range(batch["calls"]):
                    call()


def entries(root: Path) -> list[Path]:
    """Folders of the measured variants."""
    return [path.parent for path in (root / "store" / "profile").glob("*/*/rounds.json")]


def read_variant(folder: Path) -> str:
    """Identity of the variant that was measured there."""
    from pipeline.records.profiled import ProfileRecord

    return read_record(folder / "record.json", ProfileRecord).variant.id


def bind(library: ctypes.CDLL, job: CompileJob, tensors: dict):
    """The C function with its arguments."""
    entry = getattr(library, job.implementation.entry)
    problem = job.problem
    strides = [n for n, t in problem.tensors.items() if t.layout == "row_strided"]
    arguments = [
        *(ctypes.c_void_p(tensors[name].data_ptr()) for name in problem.tensors),
        *(ctypes.c_int64(size) for size in problem.dimensions.values()),
        *(ctypes.c_int64(tensors[name].stride(0)) for name in strides),
        *(ctypes.c_double(value) for value in problem.scalars.values()),
    ]
    return lambda: entry(*arguments)


def main() -> None:
    """Do the work; print how long its parts took, as JSON."""
    what, root = sys.argv[1], Path(sys.argv[2]) / "artifacts"
    started = time.perf_counter()
    folder, jobs = compile_all(root)
    compiled = time.perf_counter()
    if what == "profile":
        time_all(root, folder, jobs)
    print(json.dumps({"compile": compiled - started, "profile": time.perf_counter() - compiled}))


if __name__ == "__main__":
    main()
