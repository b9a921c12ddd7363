"""Compiling what nobody trusts: what comes home of it."""

from pathlib import Path

import pytest

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest_bytes
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.sandbox.untrusted_compilation import LOG, taken

BINARY = b"binary"


def compiled(*files: str, artifact: str = "kernel.so", digest: str = digest_bytes(BINARY)) -> Compiled:
    """What a compiling process may say."""
    return Compiled(
        artifact=artifact,
        artifact_digest=digest,
        functions=("x",),
        facts=StaticFacts(code_bytes=1),
        files=files,
    )


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """What the process left, and the entry that is being made."""
    out, entry = tmp_path / "out", tmp_path / "entry"
    (out / "sources").mkdir(parents=True)
    entry.mkdir()
    (out / "kernel.so").write_bytes(BINARY)
    (out / "sources" / "kernel.cpp").write_text("int x;")
    (out / "unnamed").write_text("nobody asked for it")
    return out, entry


def test_what_the_answer_names_comes_home(folders: tuple[Path, Path]) -> None:
    """Plain files, in the folders that they were in, and nothing else."""
    out, entry = folders
    answer = compiled("kernel.so", "sources/kernel.cpp")
    assert taken(answer, out, entry, digest_bytes) == answer
    assert sorted(path.name for path in entry.rglob("*") if path.is_file()) == ["kernel.cpp", "kernel.so"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (compiled("kernel.so", "link"), "link is no plain file"),
        (compiled("kernel.so", "folder/hostname"), "folder/hostname lies behind a link"),
        (compiled("kernel.so", "../entry"), "a file called '../entry'"),
        (compiled("kernel.so", "/etc/hostname"), "a file called '/etc/hostname'"),
        (compiled("kernel.so", "absent"), "No such file"),
        (compiled("sources/kernel.cpp"), "its artifact 'kernel.so' is not among its files"),
        (compiled("kernel.so", digest="0" * 20), "the digest of another artifact"),
        (compiled(*("kernel.so" for _ in range(1001))), "1001 files, expected at most 1000"),
    ],
)
def test_a_strange_answer_is_tampered(folders: tuple[Path, Path], answer: Compiled, reason: str) -> None:
    """A process that was taken over cannot put what it may read into the store."""
    out, entry = folders
    (out / "link").symlink_to("/etc/hostname")
    (out / "folder").symlink_to("/etc")
    found = taken(answer, out, entry, digest_bytes)
    assert isinstance(found, Failure)
    assert found.outcome is Outcome.TAMPERED
    assert reason in found.reason
    assert {path.name for path in entry.iterdir()} <= {"kernel.so", LOG}


def test_a_log_may_be_a_link_too(folders: tuple[Path, Path]) -> None:
    """A failure brings its log, if that is a file, and a reason of a readable length."""
    out, entry = folders
    said = Failure(outcome=Outcome.COMPILE_ERROR, reason="x" * 10_000, log=LOG)
    (out / LOG).write_text("error: x")
    found = taken(said, out, entry, digest_bytes)
    assert (entry / LOG).read_text() == "error: x"
    assert isinstance(found, Failure)
    assert len(found.reason) == 500
    (out / LOG).unlink()
    (out / LOG).symlink_to("/etc/hostname")
    found = taken(said, out, entry, digest_bytes)
    assert isinstance(found, Failure)
    assert found.outcome is Outcome.TAMPERED
