"""What travels between stores arrives as it was, or not at all."""

import gzip
import io
import tarfile

import pytest

from pipeline.records.errors import StoreError
from pipeline.records.record import to_json
from pipeline.store.archive import MANIFEST, Manifest, pack, unpack

CONTENTS = {"record.json": b"{}", "sources/a.cpp": b"int x;", "kernel.so": bytes(range(256)) * 40}


def _tar(files: dict[str, bytes], link: str | None = None) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link is not None:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return gzip.compress(stream.getvalue())


def test_it_comes_out_as_it_went_in() -> None:
    """Folders and binaries too; and equal contents give equal bytes."""
    parcel = pack("store/compile/ab/abcd.tar.gz", CONTENTS)
    assert unpack("store/compile/ab/abcd.tar.gz", parcel) == CONTENTS
    assert pack("store/compile/ab/abcd.tar.gz", CONTENTS) == parcel


@pytest.mark.parametrize("end", [0, 1, 100, -1])
def test_a_part_of_it_is_refused(end: int) -> None:
    """An upload that was cut off."""
    with pytest.raises(StoreError, match="^x: damaged: "):
        unpack("x", pack("x", CONTENTS)[:end])


def test_every_flipped_byte_is_noticed() -> None:
    """Wherever it lies: the file then cannot be read, or is read as it was."""
    parcel = pack("x", CONTENTS)
    for place in range(10, len(parcel), 7):
        changed = bytearray(parcel)
        changed[place] ^= 0xFF
        with pytest.raises(StoreError):
            unpack("x", bytes(changed))


def test_another_ones_parcel_is_refused() -> None:
    """Copied to the wrong name, it is no less whole."""
    with pytest.raises(StoreError, match="^y: damaged: it is x$"):
        unpack("y", pack("x", CONTENTS))


def test_a_file_that_its_manifest_does_not_name_is_refused() -> None:
    """And one that is missing, and one that was changed before it was packed."""
    manifest = to_json(Manifest(name="x", files={"a": "0" * 64}))
    for files in ({MANIFEST: manifest}, {MANIFEST: manifest, "a": b"1"}, {MANIFEST: manifest, "b": b""}):
        with pytest.raises(StoreError, match="is not what its manifest says"):
            unpack("x", _tar(files))


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", ".hidden", "a//b", ""])
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    """When it is packed and when it is unpacked."""
    with pytest.raises(StoreError, match="cannot be shared: a file is called"):
        pack("x", {name: b""})
    with pytest.raises(StoreError, match="damaged"):
        unpack("x", _tar({MANIFEST: to_json(Manifest(name="x", files={})), name: b""}))


def test_a_link_is_refused() -> None:
    """Files only."""
    manifest = to_json(Manifest(name="x", files={}))
    with pytest.raises(StoreError, match="no plain file"):
        unpack("x", _tar({MANIFEST: manifest}, link="/etc/passwd"))


def test_another_format_is_told() -> None:
    """A later version may change it."""
    manifest = to_json(Manifest(format=2, name="x", files={}))
    with pytest.raises(StoreError, match="^x: of format 2, this version reads 1$"):
        unpack("x", _tar({MANIFEST: manifest}))
