"""Private interfaces of libraries: only in modules called `*_internals`; present, replaced, or an error."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import triton

from pipeline.backends.triton import triton_internals
from pipeline.records import library_internals
from pipeline.records.errors import ToolchainError
from pipeline.records.library_internals import internal
from pipeline.verify import torch_internals
from tests.paths import ROOT

ROOMS = ("backends", "sandbox", "verify")
MODULES = {
    "backends.torch_internals": ("torch._C:TensorBase",),
    "sandbox.torch_internals": ("torch._C:TensorBase", "torch._C:StorageBase"),
    "verify.torch_internals": ("torch._ops:OpOverload",),
}
"""Module -> the paths that documented interfaces replace; all others are required."""
PRIVATE_MODULES = ("triton.runtime.", "triton.compiler", "triton.backends")
PRIVATE_ATTRIBUTES = frozenset({"_schema", "_op_dk", "_engine_run_backward", "_make_wrapper_subclass"})


def loaded(name: str) -> ModuleType:
    """A second copy of a module of ours, imported now."""
    specification = importlib.util.find_spec(f"pipeline.{name}")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def paths_of(name: str) -> list[str]:
    """What a module looks up when it is imported."""
    found: list[str] = []
    real = library_internals.lookup

    def record(path: str) -> Any:
        found.append(path)
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library_internals, "lookup", record)
        loaded(name)
    return found


LOOKED_UP = [(name, path) for name in MODULES for path in paths_of(name)]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Path of a private interface that the installed library does not have during the test."""
    gone: str = request.param
    real = library_internals.lookup
    monkeypatch.setattr(library_internals, "lookup", lambda path: None if path == gone else real(path))
    monkeypatch.setattr(triton_internals, "lookup", lambda path: None if path == gone else real(path))
    return gone


@pytest.mark.parametrize(("name", "without"), LOOKED_UP, indirect=["without"])
def test_absent(name: str, without: str) -> None:
    """Without one of them, a documented interface takes its place, or the error names the tested versions."""
    if without in MODULES[name]:
        loaded(name)
        return
    expected = (
        rf"torch {torch.__version__.split('+')[0]}.* has no {without.replace(':', '.')}, .* 2\.11 to 2\.13; "
    )
    with pytest.raises(ToolchainError, match=expected):
        loaded(name)


def test_substitutes_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What replaces a private class reads tensors and operators alike."""
    monkeypatch.setattr(
        library_internals,
        "lookup",
        lambda path, real=library_internals.lookup: (
            None if any(path in paths for paths in MODULES.values()) else real(path)
        ),
    )
    memory, public, tensor = (
        loaded("sandbox.torch_internals"),
        loaded("verify.torch_internals"),
        torch.arange(3.0),
    )
    assert memory.TensorBase is torch.Tensor
    assert memory.TensorBase.data_ptr(tensor) == torch.Tensor.data_ptr(tensor)
    assert memory.StorageBase.nbytes(tensor.untyped_storage()) == 12
    assert public.Operator is torch_internals.Operator
    assert public.operator_name(torch.ops.aten.add.Tensor) == "aten::add"


@pytest.mark.parametrize("without", ["torch._decomp:decomposition_table"], indirect=True)
def test_decompositions_without_the_private_table(without: str) -> None:
    """Those that torch documents for export have the operators that matter."""
    assert torch.ops.aten.addcmul.default in torch_internals.decompositions()


@pytest.mark.parametrize(
    "without", [f"{triton_internals.INTERPRETER}:{name}" for name in triton_internals.PARTS], indirect=True
)
def test_a_part_of_the_interpreter_is_gone(without: str) -> None:
    """It cannot be corrected any more, so that it would judge right kernels wrong."""
    name = without.replace(":", ".")
    with pytest.raises(
        ToolchainError, match=rf"triton {triton.__version__} has no {name}, .* 3\.6 to 3\.9; "
    ):
        triton_internals.interpreter.__wrapped__()


@pytest.mark.parametrize("without", ["triton.runtime.cache:triton_key"], indirect=True)
def test_the_installation_is_hashed_later(without: str) -> None:
    """What only saves time is left out."""
    triton_internals.hash_installation()


class Drivers:
    """As `triton.runtime.driver` may be in a later version: without the private attribute."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def set_active(self, driver: object) -> None:
        """Note it."""
        self.calls.append(driver)

    def reset_active(self) -> None:
        """Note it."""
        self.calls.append("reset")


def test_the_driver_before_is_active_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the private attribute, or by the public method without it."""
    ours, before = object(), triton.runtime.driver._active
    with triton_internals.active_driver(ours):
        assert triton.runtime.driver.active is ours
    assert triton.runtime.driver._active is before
    drivers = Drivers()
    monkeypatch.setattr(triton.runtime, "driver", drivers)
    with triton_internals.active_driver(ours):
        pass
    assert drivers.calls == [ours, "reset"]


def test_internal() -> None:
    """Found, replaced, or gone."""
    assert internal("torch._C:TensorBase") is torch.Tensor.__base__
    assert internal("torch._C:Absent", lambda: 1) == 1
    with pytest.raises(
        ToolchainError, match=r"torch .* has no torch\._absent\.Absent, a private interface: expected"
    ):
        internal("torch._absent:Absent")


def private_uses(path: Path) -> Iterator[str]:
    """Imports of undocumented modules of torch and Triton, and private names of theirs."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)] if _is_dotted(node) else []
            if node.attr in PRIVATE_ATTRIBUTES:
                yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        else:
            continue
        for name in names:
            library, *rest = name.split(".")
            private = library in ("torch", "triton") and any(
                part.startswith("_") for part in rest if part[:2] != "__"
            )
            imported = not isinstance(node, ast.Attribute) and name.startswith(PRIVATE_MODULES)
            if private or imported:
                yield f"{path.name}:{node.lineno}: {name}"


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def test_only_in_guarded_modules() -> None:
    """No other module of these rooms names a private interface of torch or Triton."""
    found = [
        use
        for room in ROOMS
        for path in sorted((ROOT / "pipeline" / room).rglob("*.py"))
        if not path.stem.endswith("_internals")
        for use in private_uses(path)
    ]
    assert found == []
