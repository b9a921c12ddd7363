"""Compile a source that somebody wrote, in a confined process that serves nothing else.

In: a request, and the function that serves it in that process. Out: `Compiled` or `Failure`, and the files
that go with it. To compile Triton is to run its host code, so that process may write to one scratch folder,
reaches no network, and ends with its variant. What it leaves is believed as far as it is plain
files under plain names that its answer names; the static facts of Triton are what that process says.
"""

import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, digest_parts
from pipeline.records.results.compiled import Compiled
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.processes.child_session import EXIT_OUTCOMES
from pipeline.sandbox.processes.fork_server import Channel, ChildEnded, Exit, ForkServer, Limits

TIME_LIMIT = 120.0  # seconds
MEMORY_LIMIT = 8 << 30  # bytes
OUTPUT_LIMIT = 256 << 20  # bytes of one file
FILES_AT_MOST = 1000  # an unrolled kernel with all its stages has some ten
REASON_LETTERS = 500
LOG = "log.txt"
_OUT = "out"
_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+,@=-]*(?:/[A-Za-z0-9_][\w.+,@=-]*)*", re.ASCII)


class CompilerReply(Record, frozen=True, kw_only=True):
    """What the confined process says."""

    result: Compiled | Failure


class _Strange(Exception):
    """What came back is not what a compiler leaves."""


class UntrustedCompiler:
    """Starts one confined process for each request."""

    def __init__(
        self,
        server: ForkServer,
        target: str,
        binary_digest: Callable[[bytes], str],
        *,
        opens_driver: bool = False,
    ) -> None:
        """`target` is `module:function`: it receives the request there and calls `answer`."""
        self._server = server
        self._target = target
        self._binary_digest = binary_digest
        self._opens_driver = opens_driver

    def compile(self, request: Record, scratch: Path, folder: Path) -> Compiled | Failure:
        """Compile into `folder`, however the process ends; `scratch` is an empty folder."""
        work = scratch / "work"  # the log lies outside of it: the process must not put a link in its place
        work.mkdir()
        log = scratch / LOG
        limits = Limits(
            seconds=TIME_LIMIT, memory=MEMORY_LIMIT, reserves=self._opens_driver, output=OUTPUT_LIMIT
        )
        child = self._server.start(self._target, limits=limits, log=log, scratch=work)
        try:
            child.send(request)
            answer: CompilerReply = child.receive(TIME_LIMIT, CompilerReply)
        except ChildEnded as ended:
            shutil.copyfile(log, folder / LOG) if log.is_file() else (folder / LOG).touch()
            return _unfinished(ended.exit)
        finally:
            child.kill()  # nothing of it runs any more when its files are looked at
        return taken(answer.result, work / _OUT, folder, self._binary_digest)


def answer(channel: Channel, compile_into: Callable[[Path], Compiled | Failure]) -> None:
    """Runs in the confined process, once its request is there: compile into a new folder and answer."""
    send = channel.send
    confine(Path.cwd())
    folder = Path.cwd() / _OUT
    folder.mkdir()
    send(CompilerReply(result=compile_into(folder)))


def _unfinished(ended: Exit) -> Failure:
    """Whatever it did to end without an answer is its own doing: no bug of ours, and no other outcome."""
    reason = f"the compiler did not finish: {ended.detail or 'it ended without an answer'}"
    outcome = EXIT_OUTCOMES[ended.kind]
    return Failure(outcome=outcome, reason=reason[:REASON_LETTERS], log=LOG)


def taken(
    result: Compiled | Failure, out: Path, folder: Path, binary_digest: Callable[[bytes], str]
) -> Compiled | Failure:
    """Copy what the answer names from `out` to `folder`; anything strange about it is `tampered`."""
    try:
        if isinstance(result, Compiled):
            return _taken_compiled(result, out, folder, binary_digest)
        return _taken_failure(result, out, folder)
    except (_Strange, OSError) as error:
        (folder / LOG).touch()
        reason = f"while it was compiled: {error}"[:REASON_LETTERS]
        return Failure(outcome=Outcome.TAMPERED, reason=reason, log=LOG)


def _taken_compiled(
    result: Compiled, out: Path, folder: Path, binary_digest: Callable[[bytes], str]
) -> Compiled:
    if len(result.files) > FILES_AT_MOST:
        raise _Strange(f"{len(result.files)} files, expected at most {FILES_AT_MOST}")
    if result.artifact not in result.files:
        raise _Strange(f"its artifact {result.artifact!r} is not among its files")
    for name in result.files:
        _take(name, out, folder)
    suffix = Path(result.artifact).suffix
    binaries = {
        name: binary_digest((folder / name).read_bytes()) for name in result.files if name.endswith(suffix)
    }
    found = next(iter(binaries.values())) if len(binaries) == 1 else digest_parts(binaries)
    if result.artifact_digest not in (found, binaries[result.artifact]):
        raise _Strange("its answer has the digest of another artifact than the one that it left")
    return result


def _taken_failure(result: Failure, out: Path, folder: Path) -> Failure:
    if (out / LOG).is_file():
        _take(LOG, out, folder)
    else:
        (folder / LOG).touch()
    return Failure(outcome=result.outcome, reason=result.reason[:REASON_LETTERS], log=LOG)


def _take(name: str, out: Path, folder: Path) -> None:
    """One file, and only if it is one: a link would bring home what the process was not given."""
    path = out
    if not _PLAIN.fullmatch(name):
        raise _Strange(f"a file called {name!r}")
    for part in Path(name).parts:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise _Strange(f"{name} lies behind a link")
        path = path / part
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > OUTPUT_LIMIT:
        raise _Strange(f"{name} is no plain file of at most {OUTPUT_LIMIT:,} bytes")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target, follow_symlinks=False)
