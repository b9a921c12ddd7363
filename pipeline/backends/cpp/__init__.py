"""C++ for the CPU: the system compiler, a plain C ABI, one shared object per variant.

The ABI is `extern "C" int <entry>(tensors, int64_t dimensions, int64_t row strides, double scalars)`. Tensors
are pointers, inputs in declared order and then outputs; dimensions and scalars come in declared order; row
strides, in elements, are those of the `row_strided` tensors. It returns 0, or another number that becomes a
launch error.
Compile-time choices are macros: `ELEMENT_FLOAT32` (`_FLOAT16`, `_BFLOAT16`), every tunable by its name,
every attribute as `EPILOGUE_BIAS_GELU` where it is a word and as `NAME=value` where it is a number.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.backends.backend import CompileJob
from pipeline.backends.c_sources import copy_sources, definitions, source_files
from pipeline.backends.cpp import compiler, facts, precompiled_headers
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled

if TYPE_CHECKING:
    from pipeline.backends.backend import Launch

ARTIFACT = "kernel.so"
DISASSEMBLY = "kernel.s"
LOG = "log.txt"
SOURCES = "sources"
TIME_LIMIT = 30.0  # seconds for one variant: a header-heavy source takes about 10


class Cpp:
    """The backend `cpp`."""

    kinds: frozenset[DeviceKind] = frozenset({"cpu"})
    shape_matters = False
    preload: tuple[str, ...] = ()

    def toolchain(self, target: Target) -> dict[str, str]:  # noqa: ARG002
        """Compiler with its version, flags, and the disassembler that the instruction mix comes from."""
        return compiler.toolchain()

    def sources(self, implementation: Implementation, root: Path) -> tuple[Path, ...]:
        """The source and, transitively, what it includes in quotes."""
        return source_files(implementation, root)

    def share(self, job: CompileJob, root: Path) -> None:
        """The system headers that the source begins with."""
        if job.shared is not None:
            precompiled_headers.make(self.sources(job.implementation, root)[0], Path(job.shared))

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Copy the sources beside the artifact and compile the copy, so that the two belong together."""
        files = copy_sources(self.sources(job.implementation, root), root, folder / SOURCES)
        failure = _compile(job, files[0], folder)
        if failure is not None:
            return failure
        artifact = folder / ARTIFACT
        functions = facts.read_functions(artifact)
        entry = job.implementation.entry
        if entry not in functions:
            reason = (
                f'the source has no function extern "C" {entry}; it defines {", ".join(sorted(functions))}'
            )
            return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason, log=LOG)
        disassembly = compiler.disassemble(artifact)
        if disassembly is not None:
            (folder / DISASSEMBLY).write_text(disassembly)
        return Compiled(
            artifact=ARTIFACT,
            artifact_digest=binary_digest(artifact.read_bytes()),
            functions=(entry,),
            facts=facts.static_facts(functions, disassembly),
            files=tuple(
                sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
            ),
        )

    def load(self, job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":  # noqa: ARG002
        """Open the shared object in this process; its threads are torch's where torch is here."""
        from pipeline.backends.cpp.loading import NativeLaunch

        return NativeLaunch(folder / compiled.artifact, job.implementation.entry, job.problem)


def _compile(job: CompileJob, source: Path, folder: Path) -> Failure | None:
    """With system headers that were compiled ahead where the round has some; what fails so is tried without.

    So what is said of a wrong source never depends on them.
    """
    where, log = folder / SOURCES, folder / LOG
    others = compiler.torch_arguments((where / source).read_text(errors="replace"))
    arguments = [*definitions(job), "-o", f"../{ARTIFACT}", str(source), *others]
    shared = None if others else job.shared  # compiled ahead with other flags, GCC would refuse it
    header = precompiled_headers.find(where / source, Path(shared)) if shared is not None else None
    if header is not None:
        failure = compiler.run(arguments, folder=where, log=log, seconds=TIME_LIMIT, header=header)
        if failure is None or failure.outcome is Outcome.TIMEOUT:
            return failure
    return compiler.run(arguments, folder=where, log=log, seconds=TIME_LIMIT)
