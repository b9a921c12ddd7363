"""Languages of sources: how they are named, quoted and read, whichever backend compiles them."""

from typing import Literal

from pipeline.records.record import Record


class Language(Record, frozen=True, kw_only=True):
    """One language; several backends may share it."""

    name: str
    """In tables and exported data sets: `C++`."""
    title: str
    """In prompts, with the standard if that matters: `C++17`."""
    suffixes: tuple[str, ...]
    """Of its files, that of the main source first."""
    fence: str
    """Of a block of code in Markdown."""
    fences: frozenset[str]
    """What a block of code may be labelled."""
    preprocessor: bool = False
    """Whether sources have `#include` lines and get their tunables as macros."""
    mutation: Literal["python", "cpp"] | None
    """Whose mutation operators apply to its sources; None: they are not mutated."""
    module: str | None = None
    """For a language inside Python, the module that a source in it imports."""
    words: tuple[str, ...] = ()
    """One of which a source in Python has where it holds sources in this language."""


_PYTHON_FENCES = frozenset({"python", "py", "python3"})

PYTHON = Language(
    name="Python",
    title="Python",
    suffixes=(".py",),
    fence="python",
    fences=_PYTHON_FENCES,
    mutation="python",
)
TRITON = Language(
    name="Triton",
    title="Triton (Python)",
    suffixes=(".py",),
    fence="python",
    fences=_PYTHON_FENCES | {"triton"},
    mutation="python",
    module="triton",
)
CPP = Language(
    name="C++",
    title="C++17",
    suffixes=(".cpp", ".hpp", ".h", ".c"),
    fence="cpp",
    fences=frozenset({"cpp", "c++", "cc", "cxx", "c"}),
    preprocessor=True,
    mutation="cpp",
)
CUDA_CPP = Language(
    name="CUDA C++",
    title="CUDA C++",
    suffixes=(".cu", ".cuh", ".hpp", ".h"),
    fence="cuda",
    fences=frozenset({"cuda", "cu", "cpp", "c++"}),
    preprocessor=True,
    words=("__global__", "cuda_sources", '.cu"', ".cu'"),
    mutation=None,  # threads and their memory invite other mistakes than the operators know
)
