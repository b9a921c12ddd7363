"""Drive NVRTC through cuda-core. In: a source, macros, an architecture. Out: cubin, PTX, log, or the errors.

Importing this module imports cuda-core, about 0.3 s.
"""

import io
from pathlib import Path

from cuda import pathfinder
from cuda.bindings import nvrtc
from cuda.core import Program, ProgramOptions

from pipeline.records.record import Record

STANDARD = "c++17"
_HEADERS = ("cudart", "cccl")


class Built(Record, frozen=True, kw_only=True):
    """What came out; no cubin where it failed."""

    cubin: bytes | None
    ptx: bytes
    log: str


def build(source: Path, macros: tuple[str, ...], architecture: str) -> Built:
    """Compile one file; includes in quotes are looked for next to it, others in the installed packages."""
    options = ProgramOptions(
        name=str(source),
        arch=architecture,
        std=STANDARD,
        lineinfo=True,
        define_macro=list(macros),
        include_path=toolkit_headers(),
        ptxas_options=["-v"],
    )
    logs = io.StringIO()
    try:
        program = Program(source.read_text(), "c++", options)
        cubin = bytes(program.compile("cubin", logs=logs).code)
    except Exception as error:  # cuda-core's own classes are private; what it raises is the compiler's answer
        if type(error).__name__ != "NVRTCError":
            raise
        return Built(cubin=None, ptx=b"", log=f"{logs.getvalue()}{error}\n")
    return Built(cubin=cubin, ptx=_ptx(program), log=logs.getvalue())


def _ptx(program: Program) -> bytes:
    """The PTX that the cubin was made from. `compile("ptx")` would compile again, and asks for a driver."""
    _, size = nvrtc.nvrtcGetPTXSize(program.handle)
    text = b" " * int(size)  # NVRTC writes into it
    nvrtc.nvrtcGetPTX(program.handle, text)
    return text.rstrip(b"\0")


def toolkit_headers() -> list[str]:
    """Folders of cuda_fp16.h and its like, where the packages with them are installed."""
    found = [pathfinder.find_nvidia_header_directory(name) for name in _HEADERS]
    return [folder for folder in found if folder is not None]
