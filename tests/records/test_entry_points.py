"""Entry points: those that pyproject.toml of a checkout declares, and those of installed packages."""

from pathlib import Path

import pytest

from pipeline.records import entry_points

GROUP = "kernelmill.tested"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a file of its own."""
    path = tmp_path / "pyproject.toml"
    monkeypatch.setattr(entry_points, "PYPROJECT", path)
    entry_points.entry_points.cache_clear()
    yield path
    entry_points.entry_points.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package that registers two members."""
    folder = tmp_path / "site" / "other-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\nzeta = math:tau\nours = math:e\n")
    monkeypatch.syspath_prepend(str(folder.parent))


def test_our_own_are_those_of_the_checkout(project: Path, installed: None) -> None:
    """In their order, before those of other packages, which cannot replace them."""
    members = f'[project.entry-points."{GROUP}"]\nours = "math:pi"\nalso = "math:inf"\n'
    project.write_text(f'[project]\nname = "kernelmill"\n{members}')
    found = entry_points.entry_points(GROUP)
    assert {name: entry.value for name, entry in found.items()} == {
        "ours": "math:pi",
        "also": "math:inf",
        "zeta": "math:tau",
    }
    assert list(found) == ["ours", "also", "zeta"]


@pytest.mark.parametrize("text", [None, "[project]\nname = 'another'\n", "not toml ["])
def test_without_a_checkout_the_installed_metadata_counts(
    project: Path, installed: None, text: str | None
) -> None:
    """No file, one of another project, and a damaged one."""
    if text is not None:
        project.write_text(text)
    assert set(entry_points.entry_points(GROUP)) == {"zeta", "ours"}
