"""A bundle is taken whole or refused in one line."""

import io
import lzma
import tarfile
from pathlib import Path

import msgspec
import pytest

from pipeline.execution.bundle.bundle_file import (
    MANIFEST,
    BundledFile,
    BundleManifest,
    packed,
    read_bundle,
    sha256,
)
from pipeline.records.errors import BundleError
from pipeline.records.record import to_json

CONTENTS = {"generate/k-1/round0.json": b"{}", "logs/a/b.log": b"a line\n" * 500}


def manifest(contents: dict[str, bytes] = CONTENTS) -> BundleManifest:
    """Of these contents."""
    files = tuple(BundledFile(name=n, sha256=sha256(c), size=len(c)) for n, c in contents.items())
    return BundleManifest(
        experiment="e",
        description="d",
        overrides=(),
        created="2026-01-01T00:00:00+00:00",
        git=None,
        device="A GPU",
        environment={},
        tasks=(),
        jobs=(),
        files=files,
        left_out=(),
    )


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A bundle by hand."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(stream.getvalue())


def refused(path: Path, content: bytes) -> str:
    """The text with which a file is refused: one line that begins with its name."""
    path.write_bytes(content)
    with pytest.raises(BundleError) as error:
        read_bundle(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ") and "\n" not in text
    return text


def test_round_trip(tmp_path: Path) -> None:
    """What was packed is read, and equal contents give equal bytes."""
    path = tmp_path / "a.kmb"
    path.write_bytes(packed(manifest(), CONTENTS))
    bundle = read_bundle(path)
    assert bundle.contents == CONTENTS
    assert bundle.manifest == manifest()
    assert packed(manifest(), CONTENTS) == path.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 0.999])
def test_truncated(tmp_path: Path, share: float) -> None:
    """However much is missing at its end."""
    whole = packed(manifest(), CONTENTS)
    text = refused(tmp_path / "a.kmb", whole[: int(len(whole) * share)])
    assert "damaged or truncated" in text or "not a bundle" in text


def test_damaged(tmp_path: Path) -> None:
    """A bit that flipped anywhere."""
    whole = packed(manifest(), CONTENTS)
    for place in range(8, len(whole), 37):
        refused(tmp_path / "a.kmb", whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])


def test_other_content(tmp_path: Path) -> None:
    """A file that was changed, added or taken away after the manifest was written."""
    path = tmp_path / "a.kmb"
    changed = packed(manifest(), {**CONTENTS, "logs/a/b.log": b"other"})
    assert "logs/a/b.log differs from its checksum" in refused(path, changed)
    assert "x.json is not in its manifest" in refused(path, packed(manifest(), {**CONTENTS, "x.json": b""}))
    missing = packed(manifest(), {"logs/a/b.log": CONTENTS["logs/a/b.log"]})
    assert "generate/k-1/round0.json is missing" in refused(path, missing)


def test_other_version(tmp_path: Path) -> None:
    """Another schema: it says so, although it knows nothing of its fields."""
    content = msgspec.json.encode({"schema_version": 99, "something": "new"})
    text = refused(tmp_path / "a.kmb", tar((tarfile.TarInfo(MANIFEST), content)))
    assert "schema version 99, this Kernelmill reads 1" in text


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up", "a/../../up", "a//b", ".hidden", "a/.git/config", "a\\b", "ä", "a/"]
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    """Absolute, upwards, hidden, or in letters that no bundle uses."""
    member = tarfile.TarInfo(name)
    assert "not a name that a bundle can hold" in refused(tmp_path / "a.kmb", tar((member, b"x")))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_no_links(tmp_path: Path, kind: bytes) -> None:
    """Links, pipes and folders are no files."""
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    assert "a link or something not a file" in refused(tmp_path / "a.kmb", tar((member, b"")))


def test_twice(tmp_path: Path) -> None:
    """One name twice."""
    members = [(tarfile.TarInfo("a"), b"1"), (tarfile.TarInfo("a"), b"2")]
    assert "holds a twice" in refused(tmp_path / "a.kmb", tar(*members))


def test_something_else(tmp_path: Path) -> None:
    """Not a bundle at all, no manifest, no file."""
    assert "not a bundle" in refused(tmp_path / "a.kmb", b"hello")
    assert f"no {MANIFEST}" in refused(tmp_path / "a.kmb", tar((tarfile.TarInfo("a"), b"")))
    broken = tar((tarfile.TarInfo(MANIFEST), to_json({"schema_version": 1})))
    assert "cannot be read" in refused(tmp_path / "a.kmb", broken)
    with pytest.raises(BundleError, match="No such file"):
        read_bundle(tmp_path / "none.kmb")
