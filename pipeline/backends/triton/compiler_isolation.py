"""Compiling by itself: a private cache, no settings of the user's shell, one log of all that is printed."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.environment import forget_compiler_settings

# Contraction of a * b + c into one rounding: Triton's long-standing default, which 3.9 wants to be asked for.
FP_FUSION = {"TRITON_DEFAULT_FP_FUSION": "1"}


@contextlib.contextmanager
def private_compiler(log: Path) -> Iterator[None]:
    """Inside, Triton starts from an empty cache, and what it and its tools print goes to `log`."""
    folder = tempfile.tempdir
    with (
        tempfile.TemporaryDirectory(prefix="kernelmill-triton-") as scratch,
        _printed_to(log),
        own_settings(Path(scratch) / "cache"),
    ):
        os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"
        tempfile.tempdir = scratch  # a failing ptxas leaves its input behind
        try:
            yield
        finally:
            tempfile.tempdir = folder


@contextlib.contextmanager
def own_settings(cache: Path, *, keep: tuple[str, ...] = ()) -> Iterator[None]:
    """Inside, Triton sees our settings, and of the shell's only those in `keep`."""
    before = dict(os.environ)
    try:
        settle_environment(cache)
        os.environ.update({name: before[name] for name in keep if name in before})
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def settle_environment(cache: Path) -> None:
    """Only our own settings for Triton in this process, and a cache of its own."""
    forget_compiler_settings()
    os.environ.update(FP_FUSION, TRITON_CACHE_DIR=str(cache))


@contextlib.contextmanager
def _printed_to(log: Path) -> Iterator[None]:
    """Python's streams and the descriptors below them, which LLVM and ptxas write to."""
    python = (sys.stdout, sys.stderr)
    for stream in python:
        stream.flush()
    kept = (os.dup(1), os.dup(2))
    with log.open("a", buffering=1, errors="replace") as stream:
        try:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
            sys.stdout = sys.stderr = stream
            yield
        finally:
            sys.stdout, sys.stderr = python
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
