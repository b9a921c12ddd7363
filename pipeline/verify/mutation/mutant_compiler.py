"""Compiles mutants in a forked process with the kernel's own backend, and reports whether the code changed.

In: a job and the folder of the mutated sources. Out: `Compiled` or `Failure`, and a digest of the code that
does not depend on where the sources are.
"""

import re
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, digest_bytes, digest_parts
from pipeline.records.results.compiled import Compiled
from pipeline.sandbox.processes.fork_server import Channel, Child, ChildEnded, ForkServer, Limits

TARGET = "pipeline.verify.mutation.mutant_compiler:serve"
TIME_LIMIT = 60.0  # seconds for one mutant
MEMORY_LIMIT = 8 << 30  # bytes
OUTPUT_LIMIT = 1 << 30  # bytes of one file

_ASSEMBLY = (".ptx", ".amdgcn")
# The position of source lines is in the assembly of just-in-time compilers, down to the folder.
_DEBUG = re.compile(
    rb"^\s*(?:\.loc|\.file|\.section\s+\.debug|\.b(?:8|16|32|64)|//|;|\$L__|\.Ltmp|\.L).*$", re.MULTILINE
)


class _Work(Record, frozen=True, kw_only=True):
    job: CompileJob
    root: str
    folder: str


class _Done(Record, frozen=True, kw_only=True):
    result: Compiled | Failure


class Compiler:
    """One compiling process, replaced when a mutant takes it down; for one thread."""

    def __init__(self, server: ForkServer, log: Path) -> None:
        self._server = server
        self._log = log
        self._child: Child | None = None

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile the sources below `root` into `folder`; however the compiler ends, that is the result."""
        try:
            if self._child is None:
                reserves = backend(job.variant.backend).opens_driver()  # mutants of a task have one backend
                limits = Limits(seconds=86400.0, memory=MEMORY_LIMIT, reserves=reserves, output=OUTPUT_LIMIT)
                self._child = self._server.start(TARGET, limits=limits, log=self._log)
            self._child.send(_Work(job=job, root=str(root), folder=str(folder)))
            done: _Done = self._child.receive(TIME_LIMIT, _Done)
        except ChildEnded as ended:
            self._child = None
            outcome = Outcome.TIMEOUT if ended.exit.kind == "timeout" else Outcome.COMPILE_ERROR
            return Failure(outcome=outcome, reason=f"the compiler did not finish: {ended.exit.detail}")
        return done.result

    def stop(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.stop()


def serve(channel: Channel) -> None:
    """Runs in the compiling process."""
    while True:
        try:
            work: _Work = channel.receive(_Work)
        except EOFError:
            return
        result = backend(work.job.variant.backend).compile(work.job, Path(work.root), Path(work.folder))
        channel.send(_Done(result=result))


def code_digest(compiled: Compiled, folder: Path) -> str:
    """Identity of the machine code: equal for equal code from sources in two folders."""
    parts = {
        name: digest_bytes(_DEBUG.sub(b"", (folder / name).read_bytes()))
        for name in compiled.files
        if name.endswith(_ASSEMBLY)
    }
    return digest_parts(parts) if parts else compiled.artifact_digest
