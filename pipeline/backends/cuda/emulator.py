"""The kernel's own source on the CPU: the counterpart of Triton's interpreter for absent devices.

In: a job, and the folder of compile with the sources. Out: a launch on tensors of the host. The host's
compiler builds the source against `emulation/`, where one fibre is one thread of CUDA and PTX
instructions are functions. `emulation/fibres.hpp` says what that shows and what not; `emulation/shadow.hpp`
how races are found. Neither architecture nor speed are those of the target.
"""

import ctypes
import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pipeline.backends.abi import Abi
from pipeline.backends.backend import CompileJob, FaultKind, LaunchError, MemoryFault
from pipeline.backends.c_sources import definitions
from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.extension_builds import NotEmulatedError
from pipeline.backends.cuda.compilation import SOURCES
from pipeline.backends.cuda.inline_ptx import rewrite
from pipeline.backends.cuda.launch_geometry import LaunchGeometry, geometry_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.backends.backend import Launch

HEADERS = Path(__file__).parent / "emulation"
TIME_LIMIT = 120.0  # seconds of the host's compiler: half of one on a quiet machine
_ARCHITECTURE = ("-D__CUDA_ARCH__=800", "-D__CUDACC__=1")
EMULATION = (
    "-O1", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error", "-U_FORTIFY_SOURCE",
    "-Wno-unknown-pragmas", "-Wno-attributes",
    "-fno-gnu-unique",  # each library has an emulation of its own
)  # fmt: skip
# Each access of the source calls a function of `emulation/shadow.hpp`; ThreadSanitizer itself is not linked.
INSTRUMENTED = (
    "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1",
    "--param", "tsan-instrument-func-entry-exit=0",
)  # fmt: skip
WRAPPED = tuple(f"-Wl,--wrap={name}" for name in ("memcpy", "memmove", "memset"))
_KINDS: tuple[FaultKind, ...] = ("out_of_bounds", "race", "misaligned")
"""Of `emulated::shadow::FaultKind`."""
_LAUNCHER = """
extern "C" __attribute__((visibility("default")))
const char* kernelmill_launch(const emulated::Geometry* geometry, void** arguments) {
    return emulated::run(%s, *geometry, arguments);
}
"""


class _Geometry(ctypes.Structure):
    """`emulated::Geometry`."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_memory", ctypes.c_uint64),
    ]


def load_emulated(job: CompileJob, folder: Path) -> "Launch":
    """Build the sources that compile kept in `folder`.

    Raises
    ------
    LaunchError
        The source uses something that the emulation does not have; the text says what.
    ToolchainError
        There is no C++ compiler.
    """
    source = folder / SOURCES / job.implementation.source
    with tempfile.TemporaryDirectory(prefix="kernelmill-emulated-") as name:  # what is loaded stays loaded
        scratch = Path(name)
        text = _preprocessed(source, definitions(job), scratch)
        try:
            text = rewrite(text)
        except NotEmulatedError as error:
            raise LaunchError(f"not emulated: {error}") from None
        launcher = _LAUNCHER % job.implementation.entry
        (scratch / "emulated.cpp").write_text(f'#include "device.hpp"\n{text}\n{launcher}')
        library = scratch / "emulated.so"
        _compile(
            [*EMULATION, *INSTRUMENTED, f"-I{HEADERS}", "-c", "-o", "emulated.o", "emulated.cpp"], scratch
        )
        _compile([*WRAPPED, "-o", str(library), "emulated.o"], scratch)
        return EmulatedLaunch(job, library)


_FAULTS: list[MemoryFault] = []
"""Of this process, since they were taken."""


def take_memory_faults() -> tuple[MemoryFault, ...]:
    """Races, and accesses outside of all tensors, of emulated kernels since the last call of this."""
    found = tuple(_FAULTS)
    _FAULTS.clear()
    return found


class EmulatedLaunch:
    """`launch(tensors)`: every tensor by name; writes the outputs in place, raises LaunchError."""

    def __init__(self, job: CompileJob, library: Path) -> None:
        self._job = job
        self._abi = Abi(job.problem, device="cpu")
        emulated = ctypes.CDLL(str(library))
        self._run, self._fault, self._watch = (
            emulated.kernelmill_launch,
            emulated.kernelmill_fault,
            emulated.kernelmill_watch,
        )
        self._run.restype = self._fault.restype = ctypes.c_char_p

    def __call__(self, tensors: dict[str, torch.Tensor]) -> None:
        """Blocks run one after the other; what they do wrong to memory is kept for `take_memory_faults`."""
        values = self._values(tensors)
        geometry = geometry_of(self._job, self._abi.dimensions)
        if geometry.is_empty:
            return
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self._watch_tensors(tensors)
        reason = self._run(ctypes.byref(_plain(geometry)), addresses)
        faults = list(faults_of(self._fault, f"kernel '{self._job.implementation.entry}': "))
        _FAULTS.extend(faults)
        if reason is not None and all(fault.kind == "race" for fault in faults):
            raise LaunchError(f"emulated: {reason.decode(errors='replace')}")

    def _watch_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Tell the shadow where they are: their whole storages."""
        self._watch(None, None, 0, 0, False)
        for name in self._abi.names:
            storage = tensors[name].untyped_storage()
            start, size = ctypes.c_void_p(storage.data_ptr()), ctypes.c_uint64(storage.nbytes())
            self._watch(name.encode(), start, size, tensors[name].element_size(), False)

    def _values(self, tensors: dict[str, torch.Tensor]) -> list[Any]:
        """Of ctypes, as the kernel gets their addresses."""
        kinds: list[Any] = self._abi.types
        return [kind(value) for kind, value in zip(kinds, self._abi.values(tensors), strict=True)]


def faults_of(function: Any, kernel: str = "") -> "Iterator[MemoryFault]":
    """What a library's `kernelmill_fault` has kept, which forgets it; `kernel`: before each text."""
    kind = ctypes.c_uint()
    for number in itertools.count():
        text = function(number, ctypes.byref(kind))
        if text is None:
            return
        yield MemoryFault(kind=_KINDS[kind.value], text=f"{kernel}{text.decode(errors='replace')}")


def _plain(geometry: LaunchGeometry) -> _Geometry:
    if geometry.cluster is not None:
        raise LaunchError("not emulated: clusters")
    axes = ctypes.c_uint * 3
    return _Geometry(axes(*geometry.grid), axes(*geometry.block), geometry.shared_memory)


def _preprocessed(source: Path, macros: list[str], scratch: Path) -> str:
    """Macros may hold parts of PTX, so they go first; the architecture is what the emulation has."""
    output = scratch / "preprocessed.ii"
    _compile(
        [*EMULATION, "-x", "c++", "-E", *_ARCHITECTURE, *macros, "-o", str(output), str(source)], scratch
    )
    return output.read_text()


def _compile(arguments: list[str], scratch: Path) -> None:
    failure = compiler.run(arguments, folder=scratch, log=scratch / "log.txt", seconds=TIME_LIMIT)
    if failure is not None:
        print((scratch / "log.txt").read_text(errors="replace"), flush=True)
        raise LaunchError(f"not emulated: the host's compiler says: {failure.reason}")
