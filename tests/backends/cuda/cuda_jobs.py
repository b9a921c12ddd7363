"""Compile jobs of the backend cuda: declared kernels and targets, and sources written for one test."""

import textwrap

from pipeline.backends.backend import CompileJob
from pipeline.backends.c_sources import copy_sources, source_files
from pipeline.backends.cuda.compilation import SOURCES
from pipeline.backends.cuda.emulator import load_emulated
from pipeline.records.configuration.kernel import Implementation, LaunchFormulas, Tensor
from pipeline.records.planning.problem import Problem
from pipeline.records.results.variant import Variant
from tests.backends.triton.triton_jobs import ROOT, declared_problem, kernel, target

TARGETS = ("a100", "rtx4090", "h100", "h200", "b200")


def declared_job(name, hardware="h200", dtype="float16", *, dimensions=None, **tunables):
    """A declared kernel on a declared target; tunables not given have their defaults."""
    implementation = kernel(name).implementations["cuda"]
    defaults = {tunable: value.default for tunable, value in implementation.tunables.items()}
    return _job(declared_problem(name, dtype, dimensions), implementation, defaults | tunables, hardware)


def written_job(folder, source, *, hardware="h200", launch=None, size=64, entry="kernel", **tunables):
    """A source of its own: `kernel(const float* x, float* y, long long n)`, one thread for each element."""
    (folder / "written.cu").write_text(textwrap.dedent(source))
    tensors = {
        "x": Tensor(role="input", shape=("n",), dtype="float32"),
        "y": Tensor(role="output", shape=("n",), dtype="float32"),
    }
    problem = Problem(
        kernel="written",
        dimensions={"n": size},
        tensors=tensors,
        scalars={},
        attributes={},
        element="float32",
    )
    implementation = Implementation(
        backend="cuda",
        source="written.cu",
        entry=entry,
        launch=launch or LaunchFormulas(grid=("ceil_div(n, 64)",), block=(64,)),
        origin="this test",
        licence="Apache-2.0",
    )
    return _job(problem, implementation, tunables, hardware)


def emulated(job, folder, root=ROOT):
    """The launch on the CPU, as verify loads it where the device is absent."""
    copy_sources(source_files(job.implementation, root), root, folder / SOURCES)
    return load_emulated(job, folder)


def _job(problem, implementation, tunables, hardware):
    variant = Variant(
        kernel=problem.kernel,
        implementation="cuda",
        backend="cuda",
        source_digest="0" * 20,
        attributes=problem.attributes,
        tunables=tunables,
    )
    return CompileJob(
        variant=variant, implementation=implementation, problem=problem, target=target(hardware)
    )
