"""Imports a candidate's file. In: its path, a private folder. Out: its module, which has a `ModelNew`."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_NAME = "candidate_module"
_CLASS = "ModelNew"


def copy_of(scratch: Path) -> Path:
    """Where the file is imported from."""
    return scratch / f"{_NAME}.py"


def import_candidate(source: Path, scratch: Path) -> ModuleType:
    """Import a copy of the file, so that it finds only its own files next to it.

    Raises
    ------
    AttributeError
        It has no `ModelNew`.
    """
    copy = copy_of(scratch)
    copy.write_bytes(source.read_bytes())
    return import_file(copy, source)


def import_file(path: Path, source: Path) -> ModuleType:
    """Import a file, which is or was `source`; AttributeError if it has no `ModelNew`."""
    specification = importlib.util.spec_from_file_location(_NAME, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[_NAME] = module
    specification.loader.exec_module(module)
    if not isinstance(getattr(module, _CLASS, None), type):
        raise AttributeError(f"{source.name}: no class {_CLASS}")
    return module
