"""What a candidate changes outside of itself is named; what libraries do by themselves is not."""

import builtins
import os
import random
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

from pipeline.sandbox.observation import process_state
from pipeline.sandbox.observation.module_copy import module_copy as copy_of
from pipeline.verify.harness import process
from tests.paths import ROOT


def fake(*_arguments: object, **_keywords: object) -> float:
    """Stands in for whatever was replaced."""
    return 0.0


def with_other_code(function: types.FunctionType) -> Iterator[None]:
    """Give a function the code of another one for a while."""
    code = function.__code__
    function.__code__ = (lambda input, dim=None, _stacklevel=3, dtype=None: input).__code__
    yield
    function.__code__ = code


def with_new_kernel() -> Iterator[None]:
    """Register a kernel for an operator of PyTorch."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("trapz.dx", fake, "CPU")
    yield
    library._destroy()


def with_module(name: str) -> Iterator[None]:
    """Put another module in the place of one."""
    module = sys.modules[name]
    sys.modules[name] = types.ModuleType(name)
    yield
    sys.modules[name] = module


class Finder:
    """An import hook that finds nothing."""

    @staticmethod
    def find_spec(*_arguments: object) -> None:
        """Nothing."""


def with_finder() -> Iterator[None]:
    """Install an import hook."""
    sys.meta_path.insert(0, Finder)
    yield
    sys.meta_path.remove(Finder)


def with_trace() -> Iterator[None]:
    """Trace every line from now on."""
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    yield
    sys.settrace(before)


REPLACED = {
    "time.perf_counter": (time, "perf_counter"),
    "time.monotonic_ns": (time, "monotonic_ns"),
    "torch.softmax": (torch, "softmax"),
    "torch.allclose": (torch, "allclose"),
    "torch.randn": (torch, "randn"),
    "torch.manual_seed": (torch, "manual_seed"),
    "torch.Tensor.sum": (torch.Tensor, "sum"),
    "torch.Tensor.__eq__": (torch.Tensor, "__eq__"),
    "torch.nn.functional.softmax": (functional, "softmax"),
    "torch.nn.modules.module.Module.__call__": (torch.nn.Module, "__call__"),
    "torch.nn.Linear.forward": (torch.nn.Linear, "forward"),
    "torch.cuda.synchronize": (torch.cuda, "synchronize"),
    "torch.cuda.streams.Event": (torch.cuda.streams, "Event"),
    "torch.testing.assert_close": (torch.testing, "assert_close"),
    "random.random": (random, "random"),
    "os.getpid": (os, "getpid"),
    "builtins.isinstance": (builtins, "isinstance"),
    "threading.Thread.start": (threading.Thread, "start"),
    "pipeline.verify.harness.process.serve": (process, "serve"),
    "pipeline.sandbox.processes.channel.Channel.send": (process.Channel, "send"),
}


def with_shadow() -> Iterator[None]:
    """A name of Python's own, in a module that has none of that name."""
    process.range = fake  # type: ignore[attr-defined]
    yield
    del process.range  # type: ignore[attr-defined]


OTHERWISE: dict[str, Callable[[], Iterator[None]]] = {
    "torch.nn.functional.softmax was given other code or defaults": lambda: with_other_code(
        functional.softmax
    ),
    "a kernel of PyTorch was replaced: aten/trapz.dx/CPU": with_new_kernel,
    "pipeline.verify.harness.process.range was replaced": with_shadow,
    "time was replaced": lambda: with_module("time"),
    "an import hook was added: Finder": with_finder,
    "sys.settrace was set": with_trace,
}


@pytest.fixture(scope="module")
def private() -> types.ModuleType:
    """A copy whose own functions do not use what tests replace."""
    return copy_of("pipeline.sandbox.observation.process_state")


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_functions_are_named(
    private: types.ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is found, alone; nothing is left when it is back."""
    owner, attribute = REPLACED[name]
    before = private.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, fake)
        found = private.changes(before)
    assert f"{name} was replaced" in found
    assert all(line.rpartition(".")[2] == f"{attribute} was replaced" for line in found), "under other names"
    assert private.changes(before) == ()


@pytest.mark.parametrize("line", OTHERWISE)
def test_other_ways(private: types.ModuleType, line: str) -> None:
    """Other code in the same function, kernels of the dispatcher, modules and hooks."""
    before = private.snapshot()
    change = OTHERWISE[line]()
    next(change)
    try:
        found = private.changes(before)
    finally:
        next(change, None)
    assert line in found
    assert private.changes(before) == ()


def test_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is gone is named as well."""
    before = process_state.snapshot()
    monkeypatch.delattr(time, "perf_counter")
    assert process_state.changes(before) == ("time.perf_counter was removed",)


def test_added_attributes_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries add names as they are needed."""
    before = process_state.snapshot()
    monkeypatch.setattr(torch, "something_new", fake, raising=False)
    monkeypatch.setattr(torch.nn.Module, "something_new", fake, raising=False)
    assert process_state.changes(before) == ()


def test_a_name_that_hides_a_base_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that gets a method of its own in place of its base's, also where it loses another attribute."""
    monkeypatch.setattr(torch.nn.Linear, "loses", 1, raising=False)
    before = process_state.snapshot()
    names = len(vars(torch.nn.Linear))
    monkeypatch.setattr(torch.nn.Linear, "__call__", fake)
    line = "torch.nn.Linear.__call__ was replaced"
    assert line in process_state.changes(before)
    monkeypatch.delattr(torch.nn.Linear, "loses")
    assert len(vars(torch.nn.Linear)) == names
    assert line in process_state.changes(before)


@pytest.mark.parametrize(("name", "value"), [("__defaults__", (7,)), ("__kwdefaults__", {"dim": 7})])
def test_other_defaults(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones are others as well: what they hold may be changed later."""
    before = process_state.snapshot()
    monkeypatch.setattr(functional.softmax, name, value)
    line = "torch.nn.functional.softmax was given other code or defaults"
    assert line in process_state.changes(before)
    monkeypatch.undo()
    assert process_state.changes(before) == ()
    equal = (*functional.softmax.__defaults__,)
    monkeypatch.setattr(functional.softmax, "__defaults__", equal)
    assert line in process_state.changes(before)


def test_settings() -> None:
    """Global settings are compared by name, and those that a right candidate may change are known."""
    before = process_state.snapshot()
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    try:
        found = process_state.changed_settings(before)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
    assert set(found) == {"torch's default dtype", "torch's deterministic algorithms"}
    assert set(found) - process_state.HARMLESS == {"torch's default dtype"}
    assert process_state.changed_settings(before) == ()
    assert before.settings.keys() >= process_state.HARMLESS


HONEST = """
import os, sys, time
if sys.argv[1] == "interpreter":
    os.environ["TRITON_INTERPRET"] = "1"
import torch, triton, triton.language as tl
from pipeline.sandbox.observation import process_state
if sys.argv[1] == "interpreter":
    from pipeline.backends.triton.interpretation.interpreter import mend
    mend()
before = process_state.snapshot()
started = time.process_time()
process_state.changes(process_state.snapshot())
assert time.process_time() - started < 0.3, "far more than the milliseconds that it takes"
if sys.argv[1] == "interpreter":
    sys.path.insert(0, "kernels/softmax")
    import softmax_triton
    x = torch.randn(8, 64)
    y = torch.empty_like(x)
    softmax_triton.launch(x=x, y=y, algorithm="online", ROWS=4, BLOCK=64, num_warps=4, num_stages=1)
    import triton.testing
else:
    x = torch.randn(30, 30, requires_grad=True)
    torch.nn.Sequential(torch.nn.Linear(30, 3), torch.nn.Softmax(-1))(x @ x).sum().backward()
    import torch.distributions, torch.func, torch.onnx, torch.utils.cpp_extension, torch.utils.benchmark
    torch.func.vmap(torch.sin)(torch.randn(3))
    import numpy, random, scipy.stats
    numpy.random.seed(0), random.seed(0), torch.manual_seed(0)
    import torch._dynamo, torch._inductor.compile_fx
    torch.compile(lambda x: torch.relu(x * 2), backend="eager")(torch.randn(4))
    torch.cuda.is_available()
print(process_state.changes(before), process_state.changed_settings(before))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiler", "interpreter"])
def test_no_false_alarms(mode: str) -> None:
    """Lazy imports, autograd, torch.compile and Triton's interpreter change nothing that counts."""
    command = [sys.executable, "-c", HONEST, mode]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "() ()"
