"""The shared store by hand."""

from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.records import environment
from pipeline.store.entries import find_entry
from pipeline.store.shared_store import entry_name, shared_store
from tests.store import file_systems
from tests.store.test_shared_store import Note, _store, _write


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket in memory, named on the command line."""
    file_systems.register()
    monkeypatch.setenv(environment.SHARED_STORE, "")
    return f"memory://bucket/{tmp_path.name}"


@pytest.fixture
def root(tmp_path: Path, url: str) -> Path:
    """A checkout that made two entries and an output before it heard of a shared store."""
    root = tmp_path / "artifacts"
    _write(root, (_store(root, "abcd"), _store(root, "abce")))
    return root


def _run(url: str, root: Path, *arguments: str) -> int:
    return main(["store", *arguments, "--store", url, "--root", str(root)])


def test_everything_goes_and_comes(
    url: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second time, there is nothing to send."""
    assert _run(url, root, "push") == 0
    assert capsys.readouterr().out == f"3 sent to {url}, 0 kept here\n"
    assert _run(url, root, "push") == 0
    assert capsys.readouterr().out == f"0 sent to {url}, 0 kept here\n"
    assert _run(url, tmp_path / "other", "pull", "--all") == 0
    assert capsys.readouterr().out.startswith("2 entries and 1 stage outputs came from ")
    assert find_entry(tmp_path / "other", "compile", "abce", Note) is not None


def test_status_counts(
    url: str,
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here, there, and only on one side."""
    _run(url, root, "push")
    monkeypatch.setenv(environment.SHARED_STORE, "")
    _store(tmp_path / "artifacts", "abcf")
    capsys.readouterr()
    assert _run(url, root, "status") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{url}: 3 files, ")
    assert [line.split() for line in lines[2:]] == [
        ["compile", "entries", "3", "2", "1", "0"],
        ["compile", "outputs", "1", "1", "0", "0"],
    ]


def test_check_takes_damage_away(url: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next push sends it again."""
    _run(url, root, "push")
    shared = shared_store()
    assert shared is not None
    shared.place.put(entry_name("compile", "abcd"), b"not a parcel")
    capsys.readouterr()
    assert _run(url, root, "check") == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 of 3 are whole")
    assert "abcd.tar.gz: damaged" in said.err
    _run(url, root, "push")
    assert capsys.readouterr().out.startswith("1 sent to ")


def test_what_may_be_the_machines_fault_is_kept(
    url: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a run."""
    from pipeline.records.outcome import Failure, Outcome

    _store(root, "abd0", Failure(outcome=Outcome.TIMEOUT, reason="busy"))
    assert _run(url, root, "push") == 0
    assert capsys.readouterr().out == f"3 sent to {url}, 1 kept here\n"


def test_a_store_that_refuses_is_exit_code_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its reason."""
    assert _run("refusing://bucket", root, "pull", "--all") == 0  # it lists nothing
    assert _run("refusing://bucket", root, "push") == 1
    assert "refusing://bucket: Access Denied" in capsys.readouterr().err


def test_no_store_is_told(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How to name one."""
    assert main(["store", "status", "--root", str(root)]) == 1
    text = "error: no shared store: name it with --store PATH|URL or $KERNELMILL_STORE\n"
    assert capsys.readouterr().err == text


def test_an_address_that_cannot_be_used_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert _run("carrier-pigeon://coop", root, "status") == 1
    assert capsys.readouterr().err.startswith("error: carrier-pigeon://coop: cannot be opened: Protocol not")


def test_overrides_belong_to_pull() -> None:
    """The others look at everything."""
    assert main(["store", "push", "kernel=softmax"]) == 2
