"""Which text a row has, and under which licence."""

import shutil
from pathlib import Path

import msgspec
import pytest

from pipeline.interop.dataset.source_texts import REMEMBERED, UNLICENSED, project_licence
from pipeline.records.layout import entry_path
from pipeline.records.record import digest_bytes, digest_parts
from pipeline.records.results.variant import Variant
from pipeline.records.search.written_source import Author, KeptSource, SourceRecord
from pipeline.store.entries import new_entry, put_record
from tests.interop.dataset.made_up import ROOT, texts

MAIN = "kernels/softmax/softmax.cpp"
DECLARED = Variant(
    kernel="softmax", implementation="cpp", backend="cpp", source_digest="gone", attributes={}, tunables={}
)


def written(
    root: Path, text: str, writer: str, *, derived: bool = False, **details: str
) -> tuple[Variant, SourceRecord]:
    """A source in the store, as a search leaves it there."""
    files = {MAIN: digest_bytes(text.encode())}
    entry = digest_parts(files)
    with new_entry(root, "generate", entry) as folder:
        (folder / "files" / MAIN).parent.mkdir(parents=True)
        (folder / "files" / MAIN).write_text(text)
        put_record(folder, KeptSource(main=MAIN, files=files))
    variant = msgspec.structs.replace(DECLARED, source_digest=entry, written=True)
    author = Author(writer=writer, name="somebody", details=details, derived=derived)
    return variant, SourceRecord(entry=entry, implementation="cpp", author=author)


def test_a_changed_source_is_absent(tmp_path: Path) -> None:
    """The checkout's text is not the one that was judged, and no copy is kept."""
    source = texts(tmp_path).source(DECLARED, None, None)
    assert (source.text, source.absent) == (None, "it has changed since, and the store keeps no copy of it")
    assert source.licence == "Apache-2.0"


def test_a_changed_source_comes_from_the_store(tmp_path: Path) -> None:
    """Compile kept what it compiled; it counts if all of it is still what the variant names."""
    copies = entry_path(tmp_path, "compile", "ce") / "sources"
    (copies / MAIN).parent.mkdir(parents=True)
    (copies / MAIN).write_text("int old;\n")
    digest = digest_parts({MAIN: digest_bytes(b"int old;\n")})
    variant = msgspec.structs.replace(DECLARED, source_digest=digest)
    assert texts(tmp_path).source(variant, None, "ce").text == "int old;\n"
    (copies / MAIN).write_text("int older;\n")
    assert texts(tmp_path).source(variant, None, "ce").text is None


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["llm", "candidates"])
def test_without_a_licence_only_on_demand(tmp_path: Path, writer: str) -> None:
    """The row says why; --unlicensed gives the text, --declare a licence of whoever had it written."""
    variant, record = written(tmp_path, "int a;\n", writer)
    withheld = texts(tmp_path).source(variant, record, None)
    assert (withheld.text, withheld.absent, withheld.licence) == (None, UNLICENSED, None)
    demanded = texts(tmp_path, unlicensed=True).source(variant, record, None)
    assert (demanded.text, demanded.licence) == ("int a;\n", None)
    declared = texts(tmp_path, declared={writer: "CC0-1.0"}).source(variant, record, None)
    assert (declared.text, declared.licence) == ("int a;\n", "CC0-1.0")
    other = texts(tmp_path, declared={"mutate": "CC0-1.0"}).source(variant, record, None)
    assert other.text is None


def test_a_rewritten_source_keeps_its_licence(tmp_path: Path) -> None:
    """One place of the declared source was changed."""
    source = texts(tmp_path).source(*written(tmp_path, "int b;\n", "mutate", derived=True), None)
    assert (source.text, source.licence) == ("int b;\n", "Apache-2.0")
    assert source.origin == "mutate: somebody, from: this project"


def test_what_the_writer_says_counts(tmp_path: Path) -> None:
    """TorchInductor's texts come with their licence."""
    source = texts(tmp_path).source(*written(tmp_path, "int c;\n", "inductor", licence="BSD-3-Clause"), None)
    assert (source.text, source.licence) == ("int c;\n", "BSD-3-Clause")


def test_a_lost_source_is_absent(tmp_path: Path) -> None:
    """With the reason; the row stays."""
    variant, record = written(tmp_path, "int d;\n", "mutate")
    shutil.rmtree(entry_path(tmp_path, "generate", variant.source_digest))
    assert texts(tmp_path).source(variant, record, None).absent == "the store has lost it"


def test_a_package_has_no_text_of_ours(tmp_path: Path) -> None:
    """What is called is named instead, with the package's licence."""
    variant = msgspec.structs.replace(DECLARED, kernel="liger_softmax", implementation="liger")
    source = texts(tmp_path).source(variant, None, None)
    assert source.text is None
    assert "of the package liger-kernel" in (source.absent or "")
    assert source.licence == "BSD-2-Clause"


def test_a_reference_that_changed_is_absent(tmp_path: Path) -> None:
    """Its digest is not the one that was judged against."""
    named = "kernels.softmax.reference:reference"
    assert texts(tmp_path).reference("softmax", named, "other").absent == "it has changed since"
    assert texts(tmp_path).reference("gone", named, "other").absent == "it is not declared any more"
    assert texts(tmp_path).reference("softmax", None, None).absent == "the plan that names it is not at hand"


def test_only_the_latest_texts_are_in_memory(tmp_path: Path) -> None:
    """However many sources a search wrote."""
    found = texts(tmp_path)
    for number in range(REMEMBERED + 5):
        found.source(msgspec.structs.replace(DECLARED, source_digest=str(number)), None, None)
    assert len(found.remembered) == REMEMBERED


def test_the_project_states_its_licence(tmp_path: Path) -> None:
    """In pyproject.toml; where that says nothing, none is known."""
    assert project_licence(ROOT) == "Apache-2.0"
    assert project_licence(tmp_path) is None


def test_a_part_keeps_its_own_licence(tmp_path: Path) -> None:
    """Whoever had a source written cannot give away what it includes."""
    header = "kernels/vector.hpp"
    files = {MAIN: digest_bytes(b"int e;\n"), header: digest_bytes(b"int f;\n")}
    entry = digest_parts(files)
    with new_entry(tmp_path, "generate", entry) as folder:
        (folder / "files" / MAIN).parent.mkdir(parents=True)
        (folder / "files" / MAIN).write_text("int e;\n")
        (folder / "files" / header).write_text("int f;\n")
        put_record(folder, KeptSource(main=MAIN, files=files))
    variant = msgspec.structs.replace(DECLARED, source_digest=entry, written=True)
    author = Author(writer="llm", name="somebody")
    record = SourceRecord(entry=entry, implementation="cpp", author=author)
    found = texts(tmp_path, declared={"llm": "CC0-1.0"})
    source = found.source(variant, record, None)
    (file,) = found.files()
    assert (source.licence, source.parts[0].path) == ("CC0-1.0", header)
    assert (file.path, file.text, file.licence) == (header, "int f;\n", "Apache-2.0")
