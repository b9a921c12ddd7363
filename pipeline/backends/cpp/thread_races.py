"""Finds data races between the threads of OpenMP regions, deterministically, in C++ for the CPU.

In: a compiler's command; of a call, its tensors and number of threads. Out: `MemoryFault`s, with tensor,
element and source line. GCC instruments every access (-fsanitize=thread); in place of libtsan and libgomp, an
object is linked with `thread_races.cpp`, which says what counts as a race and what is not seen.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from pipeline.backends.backend import CompileJob, LaunchError, MemoryFault
from pipeline.backends.c_sources import definitions
from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.loading import NativeLaunch
from pipeline.records import environment
from pipeline.records.errors import ToolchainError
from pipeline.records.record import digest, digest_bytes

SOURCE = Path(__file__).with_name("thread_races.cpp")
FOLDER = Path("kernelmill", "race_detector")
COMPILE_SECONDS = 120.0  # a second or two on a quiet machine
# Of the detector: it must not be instrumented, nor call itself in place of the C library.
_FLAGS = (
    "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-builtin",
    "-fno-tree-loop-distribute-patterns", "-pthread",
)  # fmt: skip
INSTRUMENTED = ("-fsanitize=thread", "-g1")
_LIBRARIES = ("-lstdc++", "-lm", "-lgcc_s", "-lgcc", "-lc")
_SYMBOL = "kernelmill_take_races"
_MOST_FAULTS = 4
_ACCESSES = ("reads", "writes", "atomically reads", "atomically writes")
_NOT_OWN = ("/usr/", "/opt/", "/lib")
_COMPILERS = ("g++", "c++", "gcc", "cc")
_WRAPPER = """#!/bin/sh
# Instruments what is compiled, and links what is linked with the detector of data races.
for argument in "$@"; do
    case "$argument" in
    -c | -S) exec {compiler} "$@" {compiling} ;;
    -E | -M | -MM | --version | -v | -dump* | -print*) exec {compiler} "$@" ;;
    esac
done
exec {compiler} "$@" {compiling} {linking}
"""


def detector() -> Path:
    """The detector's object file, compiled once and kept in the user's cache.

    Raises
    ------
    ToolchainError
        There is no GCC, or no folder to keep it in, or the compiler refused it; the text says which.
    """
    version, cache = compiler.toolchain()["c++"], environment.user_cache()
    if "clang" in version.lower():
        raise ToolchainError(f"{version} does not instrument for the detector of races: install g++")
    if cache is None:
        raise ToolchainError("the detector of races is kept in the user's cache: set XDG_CACHE_HOME or HOME")
    command = [*compiler.find(), *_FLAGS]
    path = cache / FOLDER / f"{digest([version, command, digest_bytes(SOURCE.read_bytes())])}.o"
    if path.is_file():
        return path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch, "made.o")
            _run([*command, "-c", "-o", str(made), str(SOURCE)], path.parent)
            made.rename(path)
    except OSError as error:
        raise ToolchainError(f"the detector of races cannot be kept in {path.parent}: {error}") from error
    return path


def linking(detector: Path) -> tuple[str, ...]:
    """Arguments that link instrumented objects with the detector, and with neither libtsan nor libgomp."""
    return ("-nodefaultlibs", str(detector), *_LIBRARIES)


def write_wrappers(folder: Path, detector: Path) -> None:
    """Make programs named as compilers in `folder`, each of which instruments what the compiler makes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _COMPILERS:
        found = shutil.which(name)
        if found is None:
            continue
        text = _WRAPPER.format(
            compiler=shlex.quote(found),
            compiling=shlex.join(INSTRUMENTED),
            linking=shlex.join(linking(detector)),
        )
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)


class WatchedLibrary:
    """A loaded shared object that was linked with the detector."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._library = ctypes.CDLL(str(path))
        self._calls = 0

    def begin(self, threads: int) -> None:
        """Regions have so many threads from now on, which run in the other order than in the call before."""
        self._library.kernelmill_set_team(threads, -1 if self._calls % 2 else 1)
        self._calls += 1

    def take(self, tensors: Mapping[str, torch.Tensor]) -> tuple[MemoryFault, ...]:
        """The races since the last call of this; `tensors` give their addresses names."""
        found = (_Race * _MOST_FAULTS)()
        count = self._library.kernelmill_take_races(found)
        return tuple(
            MemoryFault(kind="race", text=_text(race, tensors, _line(self._path, race.code)))
            for race in found[:count]
        )


def watched_libraries(paths: Iterable[str]) -> tuple[WatchedLibrary, ...]:
    """Those of some loaded shared objects that were linked with the detector."""
    return tuple(WatchedLibrary(Path(path)) for path in paths if _is_watched(path))


class WatchedLaunch(NativeLaunch):
    """`launch(tensors)` of an instrumented build, on as many threads as torch has; `faults` are races."""

    def __init__(self, library: Path, job: CompileJob) -> None:
        super().__init__(library, job.implementation.entry, job.problem)
        self._watched = WatchedLibrary(library)
        self.faults: list[MemoryFault] = []

    def __call__(self, tensors: dict[str, torch.Tensor]) -> None:
        """Arguments are checked as in a call of the artifact."""
        self._watched.begin(torch.get_num_threads())
        super().__call__(tensors)
        self.faults += self._watched.take(tensors)


def build(job: CompileJob, sources: Path, detector: Path, scratch: Path) -> WatchedLaunch:
    """Compile the sources that compile kept once more, instrumented, and load them.

    Raises
    ------
    LaunchError
        The compiler refused; the text says why.
    """
    source, log = job.implementation.source, scratch / "instrumented.txt"
    others = compiler.torch_arguments((sources / source).read_text(errors="replace"))
    library = scratch / "instrumented.so"
    arguments = [
        *(*definitions(job), *INSTRUMENTED, "-O1", "-o", str(library), source),
        *(*others, *linking(detector)),
    ]
    failure = compiler.run(arguments, folder=sources, log=log, seconds=COMPILE_SECONDS)
    if failure is not None:
        raise LaunchError(f"no instrumented build: {failure.reason}")
    return WatchedLaunch(library, job)


class _Race(ctypes.Structure):
    """`Fault` of the detector."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("code", ctypes.c_uint64),
        *(
            (name, ctypes.c_int32)
            for name in ("size", "own_kind", "other_kind", "own_thread", "other_thread")
        ),
    ]


def _is_watched(path: str) -> bool:
    try:
        return _SYMBOL.encode() in Path(path).read_bytes()
    except OSError:
        return False


def _text(race: _Race, tensors: Mapping[str, torch.Tensor], line: str) -> str:
    where = f" in {line}" if line else ""
    own, other = _ACCESSES[race.own_kind], _ACCESSES[race.other_kind]
    return (
        f"data race{where}: thread {race.own_thread} {own} {_place(race, tensors)}, which thread"
        f" {race.other_thread} {other}, and nothing orders them"
    )


def _place(race: _Race, tensors: Mapping[str, torch.Tensor]) -> str:
    for name, tensor in tensors.items():
        element = (race.address - tensor.data_ptr()) // tensor.element_size()
        span = 1 + sum(
            (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        )
        if tensor.numel() and 0 <= element < span:
            return f"element {element} of {name}"
    return "a shared variable"


def _line(library: Path, code: int) -> str:
    """`softmax.cpp:148`: the innermost line that is not a header of the system; empty without binutils."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    command = [tool, "-i", "-e", str(library), hex(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    lines = [line.partition(" (")[0] for line in done.stdout.splitlines() if not line.startswith("?")]
    own = [line for line in lines if not os.path.normpath(line).startswith(_NOT_OWN)]
    return next((Path(line).name for line in (*own, *lines)), "")


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment.untranslated(),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMPILE_SECONDS,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise ToolchainError(f"{SOURCE.name}: {(lines or ['the compiler failed'])[0]}")
