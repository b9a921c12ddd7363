"""Backends by name: this project's, and those of other packages by entry point."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.backends.language import PYTHON
from pipeline.backends.registry import (
    backend,
    backend_names,
    candidate_backends,
    outside_code,
    source_suffixes,
)
from pipeline.plan.identity.tool_versions import find_tools
from pipeline.records.configuration.hardware import Target
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError

CPU = Target(kind="cpu", architecture="x86-64", limits={})
SOURCE = """
from pipeline.backends.backend import Backend


class Other(Backend):
    kinds = frozenset({"cpu"})

    def toolchain(self, target):
        return {"other": "1"}

    def compile(self, job, root, folder):
        raise NotImplementedError

    def load(self, job, compiled, root, folder):
        raise NotImplementedError


class Incomplete(Backend):
    kinds = frozenset({"cpu"})


class Stranger:
    kinds = frozenset({"cpu"})
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that names a backend `other`, and one that leads nowhere; the folder of its modules."""
    metadata = tmp_path / "other_backend-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-backend\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[kernelmill.backends]\nother = other_backend.main:Other\nabsent = other_backend.main:Absent\n"
        "incomplete = other_backend.main:Incomplete\nstranger = other_backend.main:Stranger\n"
    )
    folder = tmp_path / "other_backend"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "part.py").write_text("VALUE = 1\n")
    (folder / "main.py").write_text(f"from other_backend.part import VALUE\n{SOURCE}")
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (entry_points, backend_names, candidate_backends, source_suffixes):
        cached.cache_clear()
    yield folder
    for cached in (entry_points, backend_names, candidate_backends, source_suffixes):
        cached.cache_clear()


def test_own_backends() -> None:
    """They come without a digest of their own: identity follows their imports."""
    assert backend_names()[:3] == ("cpp", "cuda", "triton")
    assert backend("cpp").kinds == {"cpu"}
    assert outside_code("cpp") is None


def test_backend_of_another_package(package: Path) -> None:
    """It is found by its name, and an edit of any module that it imports changes what results depend on."""
    assert "other" in backend_names()
    assert backend("other").kinds == {"cpu"}
    before = find_tools("other", CPU).versions
    assert before["other"] == "1"
    (package / "part.py").write_text("VALUE = 200\n")
    after = find_tools("other", CPU).versions
    assert after != before
    assert after["other"] == "1"


@pytest.mark.usefixtures("package")
def test_errors() -> None:
    """An unknown name, and an entry point that leads nowhere."""
    with pytest.raises(ConfigError, match="expected one of cpp, cuda, triton, .*, got 'tritn'"):
        backend("tritn")
    with pytest.raises(ConfigError, match="backend absent: other_backend.main:Absent cannot be loaded"):
        backend("absent")
    with pytest.raises(ConfigError, match=r"backend stranger: expected a class derived from .*\.Backend"):
        backend("stranger")
    with pytest.raises(ConfigError, match="backend incomplete: .*compile.*load.*toolchain"):
        backend("incomplete")


@pytest.mark.usefixtures("package")
def test_defaults() -> None:
    """A small backend declares only what it has: the rest is said for it."""
    other = backend("other")
    assert other.language is PYTHON
    assert other.interpreter is None
    assert (other.preload, other.packages, other.rules) == ((), (), ())
    assert not (other.shape_matters or other.calls_packages or other.needs_launch or other.in_candidates)
    assert other.count_launches() is None


def test_declared_by_backends() -> None:
    """What other rooms ask instead of comparing names."""
    assert candidate_backends() == ("cpp", "cuda", "triton")
    assert source_suffixes() >= {".py", ".cpp", ".hpp", ".cu"}
    assert {name for name in backend_names() if backend(name).calls_packages} == {"triton"}
    assert {name for name in backend_names() if backend(name).needs_launch} == {"cuda"}
    assert [each.where for name in backend_names() if (each := backend(name).interpreter)] == [
        "emulator", "interpreter",
    ]  # fmt: skip
