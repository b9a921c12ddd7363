"""Copies of modules, for those who look at a process in which a candidate runs."""

import importlib.util
import sys
from typing import Any


def module_copy(name: str) -> Any:
    """A copy of a module that no other code knows by name: replacing its functions is not easily done."""
    found = importlib.util.find_spec(name)
    assert found is not None
    spec = importlib.util.spec_from_file_location(name, found.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = dict(vars(sys.modules["builtins"]))
    spec.loader.exec_module(module)
    return module
