"""C++ for the CPU: the system compiler, a plain C ABI, one shared object per variant.

The ABI is `extern "C" int <entry>(tensors, int64_t dimensions, int64_t row strides, double scalars)`. Tensors
are pointers, inputs in declared order and then outputs; dimensions and scalars come in declared order; row
strides, in elements, are those of the `row_strided` tensors. It returns 0, or another number that becomes a
launch error.
Compile-time choices are macros: `ELEMENT_FLOAT32` (`_FLOAT16`, `_BFLOAT16`), every tunable by its name,
every attribute as `EPILOGUE_BIAS_GELU` where it is a word and as `NAME=value` where it is a number.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipeline.backends.backend import Backend, CompileJob, MemoryFault
from pipeline.backends.c_sources import copy_sources, definitions, source_files
from pipeline.backends.cpp import compiler, facts, precompiled_headers
from pipeline.backends.language import CPP
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.results.compiled import Compiled

if TYPE_CHECKING:
    from pipeline.backends.backend import Launch
    from pipeline.backends.cpp.thread_races import WatchedLaunch

ARTIFACT = "kernel.so"
DISASSEMBLY = "kernel.s"
LOG = "log.txt"
SOURCES = "sources"
TIME_LIMIT = 30.0  # seconds for one variant: a header-heavy source takes about 10


_STARTS_THREADS = b"GOMP_parallel"  # how GCC's functions that start a region are called
_TYPES = {
    "float32": "float", "float64": "double", "float16": "std::uint16_t", "bfloat16": "std::uint16_t",
    "int64": "std::int64_t", "int32": "std::int32_t", "int16": "std::int16_t", "int8": "std::int8_t",
    "uint8": "std::uint8_t", "bool": "bool",
}  # fmt: skip
"""Elements of tensors in the source: 16-bit floating-point numbers come as their bits."""


class Cpp(Backend):
    """The backend `cpp`."""

    kinds: ClassVar[frozenset[DeviceKind]] = frozenset({"cpu"})
    language = CPP
    in_candidates = True
    rules = (
        "one shared object, no main; OpenMP is at hand; -O3 -march=native, no -ffast-math",
        "return 0; another number refuses the call, which counts as a failure",
    )

    def __init__(self) -> None:
        self._watched: WatchedLaunch | None = None

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
        """Copy the sources next to the artifact and compile the copy, so that the two belong together."""
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

    def race_detector(self, artifact: Path) -> Path | None:
        """The object that instrumented builds are linked with; None without a region of OpenMP."""
        from pipeline.backends.cpp import thread_races

        return thread_races.detector() if _STARTS_THREADS in artifact.read_bytes() else None

    def load_watched(self, job: CompileJob, folder: Path, detector: Path, scratch: Path) -> "Launch":
        """Compiled with less optimization, so that accesses stay where the source has them."""
        from pipeline.backends.cpp import thread_races

        self._watched = thread_races.build(job, folder / SOURCES, detector, scratch)
        return self._watched

    def take_memory_faults(self) -> tuple[MemoryFault, ...]:
        """Races in the calls of `load_watched`'s launch."""
        if self._watched is None:
            return ()
        found, self._watched.faults = tuple(self._watched.faults), []
        return found

    def signature(self, entry: str, problem: Problem) -> str:
        """The C ABI in C++."""
        parameters = [
            *(f"const {_element(problem, name)}* {name}" for name in problem.names("input")),
            *(f"{_element(problem, name)}* {name}" for name in problem.names("output")),
            *(f"std::int64_t {name}" for name in problem.dimensions),
            *(
                f"std::int64_t stride_{name}"
                for role in ("input", "output")
                for name in problem.names(role)
                if problem.tensors[name].layout == "row_strided"
            ),
            *(f"double {name}" for name in problem.scalars),
        ]
        return f'extern "C" int {entry}({", ".join(parameters)});'

    def compiled_lines(self, jobs: Iterable[CompileJob], root: Path) -> frozenset[tuple[str, int]]:
        """The lines that the preprocessor keeps."""
        sources = dict.fromkeys((tuple(definitions(job)), job.implementation.source) for job in jobs)
        return frozenset().union(
            *(compiler.preprocessed_lines(macros, source, root) for macros, source in sources)
        )


def _element(problem: Problem, name: str) -> str:
    return _TYPES.get(problem.tensors[name].dtype, "void")


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
