"""A new kernel: files that are right at once, and one line for what cannot be written."""

import re
import shutil
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.scaffolding.function_graph import POINTWISE, REDUCTIONS
from pipeline.execution.scaffolding.kernel_files import EXAMPLES, KernelRequest, write_kernel
from pipeline.records.errors import ConfigError
from tests.end_to_end.checkout import Checkout
from tests.paths import ROOT
from tests.plan.project import Project

FUNCTIONS = """
import torch
import torch.nn.functional as F

LIMIT = 3

def gated(gate, up):
    return F.silu(gate) * up

def normalized(x, weight):
    centered = x - x.mean(-1, keepdim=True)
    return centered * torch.rsqrt(torch.square(centered).mean(-1, keepdim=True) + 1e-5) * weight

def soft(x):
    return torch.softmax(x.abs(), dim=-1)

def curved(x):
    return torch.tanh(x)

def product(a, b):
    return a @ b.T

def limited(x):
    return x + LIMIT

def summed(x):
    return x.sum(-1)
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's next to the project."""
    name = f"functions_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Path(name)


def made(root: Path, functions: Path, name: str, **more: object) -> set[str]:
    """Names of the files that were written."""
    request = KernelRequest(name=name, function=f"{functions}:{name}", **more)
    return {path.name for path in write_kernel(request, root)}


@pytest.mark.parametrize("name", ["gated", "soft"])
def test_a_function_becomes_a_kernel(tmp_path: Path, functions: Path, name: str) -> None:
    """Yaml, a reference that stands alone, and a source for each language."""
    files = made(tmp_path, functions, name)
    assert files == {f"{name}.yaml", "reference.py", f"{name}.cpp", f"{name}_triton.py"}
    scope: dict[str, object] = {}
    exec((tmp_path / "kernels" / name / "reference.py").read_text(), scope)
    assert "reference" in scope


def test_operations_are_documented() -> None:
    """By their names, because a function with another one is refused."""
    text = (ROOT / "docs" / "guide" / "declare.md").read_text()
    words = re.findall(r"\w+", text.partition("With `--from`")[2].partition("\n\n")[0])
    assert set(words) >= {*POINTWISE, *REDUCTIONS, "softmax"}


def test_a_language_that_lacks_an_operation(tmp_path: Path, functions: Path) -> None:
    """Its source is left out."""
    assert "curved_triton.py" not in made(tmp_path, functions, "curved")


@pytest.mark.parametrize(
    ("name", "text"),
    [("product", r"uses \.T"), ("limited", "LIMIT"), ("summed", "keepdim"), ("absent", "module:function")],
)
def test_what_cannot_be_translated(tmp_path: Path, functions: Path, name: str, text: str) -> None:
    """One line that names it; nothing is written."""
    with pytest.raises(ConfigError, match=text):
        made(tmp_path, functions, name)
    assert not (tmp_path / "kernels").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A kernel of that name stays as it is."""
    write_kernel(KernelRequest(name="swish"), tmp_path)
    (tmp_path / "kernels" / "swish" / "swish.cpp").write_text("mine")
    with pytest.raises(ConfigError, match="exists"):
        write_kernel(KernelRequest(name="swish", kind="reduction"), tmp_path)
    assert (tmp_path / "kernels" / "swish" / "swish.cpp").read_text() == "mine"


def test_the_plan_takes_it(tmp_path: Path, functions: Path) -> None:
    """Its yaml has no mistake."""
    project = Project(tmp_path / "project")
    made(project.folder, functions, "normalized", vectors=("weight",))
    assert [task.row.kernel for task in project.plan("kernel=normalized", "hardware=cpu").tasks]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_verify_accepts_the_example(tmp_path: Path, kind: str) -> None:
    """What `kernelmill new` writes, `kernelmill verify` accepts; a mistake in it is refused with a reason.

    That of one kind is enough.
    """
    checkout = Checkout(tmp_path / "checkout")
    checkout.module("pipeline", "new", "kernel", "fresh", "--kind", kind)
    text = checkout.module("pipeline", "verify", "fresh", seconds=600)
    assert text.splitlines()[-1] == "2 of 2 variants passed"
    if kind != "elementwise":
        return
    checkout.edit("kernels/fresh/fresh.cpp", "vec::to_element(mul", "vec::to_element(1.5f * mul")
    text = checkout.module("pipeline", "verify", "fresh", check=False, seconds=600)
    assert text.splitlines()[-1] == "1 of 2 variants passed"
    assert "fresh awkward cpu cpp: wrong_value: y[" in text


def test_without_a_terminal_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first kind is taken, and the next command is printed."""
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "kernels", ignore_errors=True)
    assert main(["new", "kernel", "first"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "next: kernelmill verify first"
