"""What a candidate imports belongs to its verdict's key."""

from pathlib import Path

import pytest

from pipeline.verify.candidates import imported_packages
from pipeline.verify.candidates.kernelbench import scan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A problem whose candidate wraps a package."""
    package = tmp_path / "site" / "some_kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from some_kernels.impl import run\n")
    (package / "impl.py").write_text("import triton\n\ndef run(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    problem = tmp_path / "problems" / "identity"
    (problem / "solutions").mkdir(parents=True)
    (problem / "problem.py").write_text("class Model: ...\ndef get_inputs(): ...\n")
    wrapper = "def f():\n    from some_kernels import run\nclass ModelNew: ...\n"
    (problem / "solutions" / "wrapper.py").write_text(wrapper)
    (problem / "solutions" / "plain.py").write_text("import math, torch\nclass ModelNew: ...\n")
    return tmp_path


def scanned(folder: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Candidate -> its digest and languages, as a new process finds them."""
    for function in ("package_digests", "names_module", "_files"):
        getattr(imported_packages, function).cache_clear()
    (problem,) = scan(folder / "problems")
    return {each.name: (each.digest, each.languages) for each in problem.candidates}


def test_a_package_that_changes_is_another_candidate(folder: Path) -> None:
    """Also in a module that the candidate does not name; others keep their verdicts."""
    before = scanned(folder)
    module = folder / "site" / "some_kernels" / "impl.py"
    module.write_text("import triton\n\ndef run(x):\n    return 2 * x\n")
    after = scanned(folder)
    assert after["wrapper"][0] != before["wrapper"][0]
    assert after["plain"] == before["plain"]


def test_the_language_of_a_package_is_the_candidates(folder: Path) -> None:
    """Its own text does not name Triton."""
    found = scanned(folder)
    assert found["wrapper"][1] == ("triton",)
    assert found["plain"][1] == ()
