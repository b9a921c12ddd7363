"""Where ceilings are shared, and what is believed of what lies there."""

import os
from pathlib import Path

import pytest

from pipeline.measure.ceilings import ceiling_measurement
from pipeline.measure.ceilings.ceiling_measurement import KEPT, forget, share, shared, shared_path
from tests.measure.stand_ins import DEVICE

BOOT = {"boot": "4f3c"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where figures are shared, in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = shared_path("key", BOOT)
    assert found is not None
    return found


def test_kept_for_the_user_alone(path: Path, tmp_path: Path) -> None:
    """Below the user's cache, in a folder that nobody else may enter; what was shared comes back."""
    assert shared(path) is None
    share(path, DEVICE)
    assert shared(path) == DEVICE
    assert path.parent == tmp_path / "kernelmill" / "ceilings"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_another_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines with one home folder do not share; one that does not tell its boot shares nothing."""
    assert shared_path("key", {"cores": "0"}) is None
    assert shared_path("other", BOOT) != path
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    assert shared_path("key", BOOT) != path
    share(None, DEVICE)
    forget(None)
    assert shared(None) is None


@pytest.mark.parametrize("content", [b"", b"{", b"{}"])
def test_damaged(path: Path, content: bytes) -> None:
    """What is not what was written is not believed, and is written anew."""
    share(path, DEVICE)
    path.write_bytes(content)
    assert shared(path) is None
    share(path, DEVICE)
    assert shared(path) == DEVICE


def test_a_folder_that_others_can_write_to(path: Path) -> None:
    """Another user's figures are not believed, and ours not left there."""
    share(path, DEVICE)
    path.parent.chmod(0o770)
    assert shared(path) is None
    path.unlink()
    share(path, DEVICE)
    assert not path.exists()


def test_forgotten(path: Path) -> None:
    """Neither the figures nor their seal stay."""
    share(path, DEVICE)
    forget(path)
    assert shared(path) is None
    assert list(path.parent.iterdir()) == []


def test_files_do_not_gather(path: Path) -> None:
    """A boot leaves a file; the oldest go, the newest stays."""
    share(path, DEVICE)
    for number in range(KEPT + 3):
        other = path.with_name(f"{number:02}.json")
        share(other, DEVICE)
        os.utime(other, (number + 1, number + 1))
    os.utime(path, (0, 0))
    share(path.with_name("last.json"), DEVICE)
    left = sorted(each.name for each in path.parent.iterdir())
    assert len(left) == 2 * KEPT
    assert "last.json" in left and path.name not in left and "00.json" not in left


def test_no_place(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that cannot be written to is no error: the checkout has its own copy."""
    (tmp_path / "kernelmill").write_text("in the way")
    share(path, DEVICE)
    assert shared(path) is None
    monkeypatch.setattr(ceiling_measurement, "user_cache", lambda: None)
    assert shared_path("key", BOOT) is None
