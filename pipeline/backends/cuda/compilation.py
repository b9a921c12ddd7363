"""Compile one variant without its device: cubin, PTX, log and sources into a folder, and its static facts."""

import re
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.c_sources import copy_sources, macros, source_files
from pipeline.backends.cuda.facts import Binary, beyond_limits, static_facts
from pipeline.backends.cuda.launch_geometry import geometry_of
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.backends.machine_code.cubin_resources import kernel_resources
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled

ARTIFACT = "kernel.cubin"
ASSEMBLY = "kernel.ptx"
LOG = "log.txt"
SOURCES = "sources"
PARAMETER_BYTES = 8

_ERROR = re.compile(r"^.*\berror\b[^:\n]*: .*$", re.MULTILINE)
_LONGEST = 300  # characters of a reason; the whole story stands in the log


def compile_offline(job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
    """Compile into `folder`; `root` is the repository.

    Raises
    ------
    ToolchainError
        A package is missing.
    """
    try:
        from pipeline.backends.cuda.nvrtc import build
    except ImportError as error:
        from pipeline.backends.cuda.toolchain import INSTALL

        raise ToolchainError(f"the backend cuda cannot import cuda-core ({error}): {INSTALL}") from None
    files = source_files(job.implementation, root)
    copy_sources(files, root, folder / SOURCES)
    built = build(files[0], macros(job), job.target.architecture)
    log = built.log.replace(f"{root.resolve()}/", "")
    (folder / LOG).write_text(log)
    if built.cubin is None:
        return _failure(Outcome.COMPILE_ERROR, _first_error(log))
    (folder / ARTIFACT).write_bytes(built.cubin)
    (folder / ASSEMBLY).write_bytes(built.ptx)
    return _checked(job, built.cubin, log, folder)


def _checked(job: CompileJob, cubin: bytes, log: str, folder: Path) -> Compiled | Failure:
    """Entry, parameters and launch fit together, or it could not be called."""
    entry = job.implementation.entry
    kernels = kernel_resources(cubin)
    if entry not in kernels:
        others = ", ".join(sorted(kernels)) or "none"
        reason = f'the source has no kernel extern "C" __global__ {entry}; it defines {others}'
        return _failure(Outcome.COMPILE_ERROR, reason)
    need = kernels[entry]
    expected = parameters_of(job)
    if need.parameters != (PARAMETER_BYTES,) * len(expected):
        sizes = ", ".join(map(str, need.parameters))
        reason = (
            f"{entry} takes {len(need.parameters)} parameters of {sizes or 'no'} bytes, expected "
            f"{len(expected)} of {PARAMETER_BYTES}: {', '.join(expected)}"
        )
        return _failure(Outcome.COMPILE_ERROR, reason)
    geometry = geometry_of(job, job.problem.dimensions)
    refused = beyond_limits(geometry, need, job.target)
    if refused is not None:
        return _failure(Outcome.LAUNCH_ERROR, refused)
    return Compiled(
        artifact=ARTIFACT,
        artifact_digest=binary_digest(cubin),
        functions=(entry,),
        grid=geometry.grid,
        facts=static_facts(Binary(file=folder / ARTIFACT, need=need, log=log), geometry, job),
        files=tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())),
    )


def parameters_of(job: CompileJob) -> tuple[str, ...]:
    """Names of the entry's parameters, in order: see the package's docstring."""
    problem = job.problem
    tensors = (*problem.names("input"), *problem.names("output"))
    strides = [f"{name}_stride" for name in tensors if problem.tensors[name].layout == "row_strided"]
    return (*tensors, *problem.dimensions, *strides, *problem.scalars)


def _failure(outcome: Outcome, reason: str) -> Failure:
    return Failure(outcome=outcome, reason=reason, log=LOG)


def _first_error(log: str) -> str:
    """The compiler's or the assembler's first complaint; NVRTC counts them in a line of its own."""
    found = _ERROR.search(log)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    text = " ".join((found[0] if found else lines[0] if lines else "NVRTC failed and said nothing").split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
