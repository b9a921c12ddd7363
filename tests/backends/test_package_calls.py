"""Callables of packages: arguments, results, gradients, files, and what is said of a missing package."""

import sys

import msgspec
import pytest
import torch

from pipeline.backends.installed_packages import package_files, version
from pipeline.backends.package_calls import CalledEntry
from pipeline.backends.registry import backend
from pipeline.plan.config.kernel_rules import KernelImplementation, implementation_violations
from pipeline.records.configuration.kernel import Call, Given, Gradients
from pipeline.records.errors import ToolchainError
from tests.backends.triton.triton_jobs import kernel
from tests.paths import ROOT

MODULE = """
import torch


def scaled(x, factor, mode, *, shift=0.0):
    assert mode == "plain"
    return None, x * factor + shift


def identity(x):
    return x


def view(x):
    return x[:]


def flat(x):
    return x.reshape(-1)


def double(x):
    return x.double()


def overwrite(x):
    return x.mul_(2.0)


def number(x):
    return 3.0


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """An installed package."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "__init__.py").write_text("from theirs import extra\n")
    (folder / "extra.py").write_text("import json\n")
    (folder / "unused.py").write_text("")
    (folder / "ops.py").write_text(f"from .parts import tile\n{MODULE}")
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("")
    (folder / "parts" / "tile.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "theirs"]:
        del sys.modules[name]


def call(function, *arguments, results=("y",), **others):
    """A declaration."""
    return Call(
        function=f"theirs.ops:{function}",
        arguments=arguments,
        results=results,
        package="theirs",
        **others,
    )


def run(declared, **named):
    """Call it with an output y of three elements; what did not fit, and y."""
    y = torch.full((3,), -1.0)
    return CalledEntry(declared, ("y",))(y=y, **named), y


def test_arguments_and_results():
    """Names, numbers, strings, keywords; a result that nobody wants; the copy lies in the output."""
    declared = call(
        "scaled", "x", 2.0, Given(literal="plain"), results=(None, "y"), keywords={"shift": "eps"}
    )
    strange, y = run(declared, x=torch.tensor([1.0, 2.0, 3.0]), eps=0.5)
    assert strange == {}
    assert y.tolist() == [2.5, 4.5, 6.5]


@pytest.mark.parametrize("function", ["identity", "view"])
def test_an_input_is_no_result(function):
    """It is shown in the place of the output, not copied."""
    x = torch.ones(3)
    strange, y = run(call(function, "x"), x=x)
    assert strange["y"].data_ptr() == x.data_ptr()
    assert y.tolist() == [-1.0] * 3


def test_an_overwritten_argument_gets_a_copy():
    """The input stays, and its copy may be the result."""
    x = torch.ones(3)
    strange, y = run(call("overwrite", Given(copy="x")), x=x)
    assert (strange, x.tolist(), y.tolist()) == ({}, [1.0] * 3, [2.0] * 3)


@pytest.mark.parametrize(("function", "shape"), [("flat", (1, 3)), ("double", (3,))])
def test_no_cast_and_no_broadcast(function, shape):
    """Another shape or type than the output's is shown."""
    x = torch.ones(shape)
    y = torch.full((3,) if function == "double" else (1, 3), -1.0)
    strange = CalledEntry(call(function, "x"), ("y",))(x=x, y=y)
    assert set(strange) == {"y"}
    assert y.eq(-1.0).all()


def test_what_is_no_tensor():
    """A line that names the function."""
    with pytest.raises(TypeError, match=r"theirs.ops:number: y: expected a tensor, got float"):
        run(call("number", "x"), x=torch.ones(3))
    with pytest.raises(TypeError, match=r"returned 1 results, 2 are declared"):
        run(call("identity", "x", results=(None, "y")), x=torch.ones(3))


def test_gradients_through_autograd():
    """Forward, backward; inputs keep their grad and their values."""
    x, dy = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 10.0, 100.0])
    declared = call("Square.apply", "x", gradients=Gradients(of=("x",), upstream=("dy",)))
    strange, y = run(declared, x=x, dy=dy)
    assert strange == {}
    assert y.tolist() == [2.0, 40.0, 600.0]
    assert x.grad is None and not x.requires_grad


def test_bare_leaves_the_output_alone():
    """What is timed is the call, not the copy."""
    y = torch.full((3,), -1.0)
    CalledEntry(call("flat", "x"), ("y",)).bare(x=torch.ones(3), y=y)
    assert y.tolist() == [-1.0] * 3


def test_files_are_those_that_are_imported(package):
    """The packages on the way run first, and so does what they import."""
    assert sorted(package_files(call("identity", "x"))) == [
        "theirs/__init__.py",
        "theirs/extra.py",
        "theirs/ops.py",
        "theirs/parts/__init__.py",
        "theirs/parts/tile.py",
    ]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"function": "nobody.ops:f", "extra": "liger"}, r"pip install -e '\.\[liger\]'"),
        ({"function": "nobody.ops:f"}, r"is not installed: python -m pip install nobody"),
    ],
)
def test_a_missing_package_is_one_line(declared, text):
    """With the command that brings it."""
    missing = Call(arguments=(), results=("y",), package="nobody", **declared)
    with pytest.raises(ToolchainError, match=text):
        package_files(missing)
    with pytest.raises(ToolchainError, match=text):
        version(missing)


def test_sources_of_the_backend_are_the_packages(package):
    """They make results outdated."""
    implementation = msgspec.structs.replace(
        kernel("softmax").implementations["triton"], source="", entry="", call=call("identity", "x")
    )
    found = backend("triton").sources(implementation, package)
    assert found[0] == package / "ops.py"


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (call("f", "z"), "arguments[0]: unknown name 'z'"),
        (call("f", Given(copy="z")), "arguments[0].copy: unknown input 'z'"),
        (call("f", "x", keywords={"a": "z"}), "keywords.a: unknown name 'z'"),
        (call("f", "x", results=("x",)), "results[0]: unknown output 'x'"),
        (call("f", "x", results=("y", "y")), "results[1]: 'y' stands there twice"),
        (call("f", "x", results=(None,)), "results: the output 'y' is missing"),
        (call("f", "x", gradients=Gradients(of=("y",), upstream=("x",))), "gradients.of: 'y' is none"),
        (call("f", "x", gradients=Gradients(of=("x",), upstream=("z",))), "unknown input 'z'"),
        (call("f", "x", gradients=Gradients(of=(), upstream=("x",))), "0 gradients for 1 results"),
        (call("f()", "x"), "function: expected module:function"),
    ],
)
def test_wrong_declarations(declared, text):
    """Every name is checked against the kernel."""
    softmax = kernel("softmax")
    called = msgspec.structs.replace(softmax.implementations["triton"], source="", entry="", call=declared)
    lines = list(map(str, implementation_violations(KernelImplementation(softmax, called, ROOT))))
    assert any(text in line for line in lines), lines
