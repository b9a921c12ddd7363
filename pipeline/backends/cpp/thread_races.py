"""Finds data races between the threads of OpenMP regions, deterministically, in C++ for the CPU.

In: a compiler's command; of a call, its tensors and number of threads. Out: `MemoryFault`s, with tensor,
element and source line. GCC instruments every access (-fsanitize=thread); in place of libtsan and libgomp, an
object is linked with `thread_races.cpp`, which says what counts as a race and what is not seen.
"""

import ctypes
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from pipeline.backends.backend import CompileJob, LaunchError, MemoryFault
from pipeline.backends.c_sources import definitions
from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.kept_objects import COMPILE_SECONDS, kept_object
from pipeline.backends.cpp.loading import NativeLaunch
from pipeline.records.errors import ToolchainError

SOURCE = Path(__file__).with_name("thread_races.cpp")
FOLDER = "race_detector"
# Of the detector: it must not be instrumented, nor call itself in place of the C library.
_FLAGS = (
    "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-builtin",
    "-fno-tree-loop-distribute-patterns", "-pthread",
)  # fmt: skip
INSTRUMENTED = ("-fsanitize=thread", *compiler.LINE_TABLE)
_LIBRARIES = ("-lstdc++", "-lm", "-lgcc_s", "-lgcc", "-lc")
_SYMBOL = "kernelmill_take_races"
_MOST_FAULTS = 4
_ACCESSES = ("reads", "writes", "atomically reads", "atomically writes")
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
    version = compiler.toolchain()["c++"]
    if "clang" in version.lower():
        raise ToolchainError(f"{version} does not instrument for the detector of races: install g++")
    return kept_object(SOURCE, (*_FLAGS, "-c"), FOLDER)


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
            MemoryFault(kind="race", text=_text(race, tensors, compiler.source_line(self._path, race.code)))
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
