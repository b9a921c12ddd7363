"""Compile jobs of the Triton backend: declared kernels and targets, and sources written for one test."""

import functools
import textwrap

import msgspec

from pipeline.backends.backend import CompileJob
from pipeline.plan.config.compose import composer
from pipeline.plan.tasks.resolution import target_of
from pipeline.records.configuration.hardware import Hardware, Target
from pipeline.records.configuration.kernel import Implementation, Kernel, Tensor
from pipeline.records.planning.problem import Problem
from pipeline.records.record import from_plain
from pipeline.records.results.variant import Variant
from tests.paths import ROOT

TARGETS = ("h200", "h100", "a100", "b200", "rtx4090", "mi300x", "mi355x")
DIMENSIONS = {
    "softmax": {"rows": 512, "cols": 4096},
    "rms_norm": {"rows": 512, "cols": 4096},
    "matmul": {"M": 512, "N": 1024, "K": 1024},
    "matmul_bias_gelu": {"M": 512, "N": 1024, "K": 1024},
}


@functools.cache
def kernel(name):
    """A kernel as declared, inheritance resolved."""
    with composer(ROOT / "conf") as composed:
        return from_plain(composed.option("kernel", name), Kernel)


@functools.cache
def target(name):
    """What compile reads of a declared hardware target."""
    with composer(ROOT / "conf") as composed:
        return target_of(from_plain(composed.option("hardware", name), Hardware), {})


def declared_job(name, hardware, dtype="float16", *, dimensions=None, **tunables):
    """A declared kernel on a declared target; tunables not given have their defaults."""
    implementation = kernel(name).implementations["triton"]
    defaults = {tunable: value.default for tunable, value in implementation.tunables.items()}
    problem = declared_problem(name, dtype, dimensions)
    return _job(problem, implementation, defaults | tunables, target(hardware))


def declared_problem(name, dtype, dimensions=None):
    """A declared kernel's problem, every tensor of the workload's type of this dtype."""
    declared = kernel(name)
    tensors = {
        tensor: msgspec.structs.replace(value, dtype=dtype) if value.dtype == "element" else value
        for tensor, value in declared.tensors.items()
    }
    return Problem(
        kernel=name,
        dimensions=dimensions or DIMENSIONS[name],
        tensors=tensors,
        scalars=declared.scalars,
        attributes=declared.attributes,
        element=dtype,
    )


def written_job(folder, source, *, on="h200", size=4096, **tunables):
    """A module of its own: `launch(x, y, <tunables>)` on two vectors of float32."""
    (folder / "written.py").write_text(textwrap.dedent(source))
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
        backend="triton", source="written.py", entry="launch", origin="this test", licence="Apache-2.0"
    )
    return _job(problem, implementation, tunables, on if isinstance(on, Target) else target(on))


def _job(problem, implementation, tunables, on):
    variant = Variant(
        kernel=problem.kernel,
        implementation="triton",
        backend="triton",
        source_digest="0" * 20,
        attributes=problem.attributes,
        tunables=tunables,
    )
    return CompileJob(variant=variant, implementation=implementation, problem=problem, target=on)
