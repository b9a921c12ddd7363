"""Compiles whatever host code launches, for an absent device: what other rooms use of the Triton backend.

In: a target, a log, and host code that runs inside `offline_compiler`. Out: the kernels that it launched.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pipeline.backends.triton.compiler_isolation import private_compiler
from pipeline.backends.triton.facts import facts_of
from pipeline.backends.triton.offline_driver import BuiltKernel, Recorder, recording
from pipeline.backends.triton.simulated_device import device_present, present_tensor
from pipeline.records.configuration.hardware import Target

__all__ = ["BuiltKernel", "Recorder", "facts_of", "offline_compiler", "present_tensor"]


@contextlib.contextmanager
def offline_compiler(target: Target, log: Path) -> Iterator[Recorder]:
    """Inside, torch and Triton answer as on the target, and each launch compiles instead of running."""
    with private_compiler(log), recording(target, log) as recorder, device_present(target):
        yield recorder
