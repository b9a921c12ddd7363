"""The implementation's module: its files, its launch function and the arguments of a call."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.backends.backend import CompileJob
from pipeline.backends.package_calls import CalledEntry

Entry = Callable[..., Any]
"""Called with every tensor and constant by name. Returns None, or results that did not fit their outputs."""


def load_entry(job: CompileJob, root: Path) -> Entry:
    """Import the module anew and return its launch function.

    Anew, because kernels keep what was compiled for one device, and one process may serve several targets.
    Of an installed package it is what the implementation's `call` makes of it.
    """
    if job.implementation.call is not None:
        return CalledEntry(job.implementation.call, job.problem.names("output"))
    path = root / job.implementation.source
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{job.implementation.source}: not a Python module")
    module: ModuleType = importlib.util.module_from_spec(specification)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # its imports from the repository
    sys.modules[name] = module
    specification.loader.exec_module(module)
    entry: Entry = getattr(module, job.implementation.entry)
    return entry


def constants(job: CompileJob) -> dict[str, Any]:
    """All keyword arguments of a call but the tensors."""
    return {**job.problem.scalars, **job.variant.attributes, **job.variant.tunables}
