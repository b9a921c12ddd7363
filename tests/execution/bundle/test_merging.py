"""Bundles in the store: taken once, never over a later result, never a binary that is not there."""

from pathlib import Path

import msgspec
import pytest

from pipeline.execution.bundle import merging
from pipeline.execution.bundle.bundle_file import Bundle
from pipeline.execution.bundle.merging import check
from pipeline.records.errors import BundleError, StoreError
from pipeline.records.layout import output_path
from pipeline.records.provenance import Origin
from pipeline.records.record import read_record
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.profiled import ProfileOutput, ProfileRecord
from pipeline.store.entries import find_entry
from tests.execution.bundle.made_up import BINARY, EARLY, LATE, read_made_up


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle without binaries."""
    folder = tmp_path_factory.mktemp("early")
    return read_made_up(folder / "artifacts", folder / "early.kmb")


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The same work on an equal machine, a month later, with binaries."""
    folder = tmp_path_factory.mktemp("late")
    return read_made_up(folder / "artifacts", folder / "late.kmb", binaries=True, created=LATE)


def merge(bundle: Bundle, root: Path, *, replace: bool = False) -> dict[str, int]:
    """Merge, and count what was done."""
    checked = check(bundle)
    decided = merging.decide(bundle, checked, root, replace=replace)
    merging.write(bundle, checked, decided, root)
    return decided.counts()


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def measured(bundle: Bundle, root: Path) -> ProfileOutput:
    """The output of profile in the store."""
    row = check(bundle).plan.tasks[0].row
    return read_record(output_path(root, "profile", row.profile, 0), ProfileOutput)


def test_new_then_known(early: Bundle, tmp_path: Path) -> None:
    """Everything is new once; the second time nothing changes, not even a byte."""
    counts = merge(early, tmp_path)
    assert counts == {"new": 10, "partial": 1}
    before = snapshot(tmp_path)
    assert merge(early, tmp_path) == {"known": 11}
    assert snapshot(tmp_path) == before


def test_where_it_comes_from(early: Bundle, tmp_path: Path) -> None:
    """Each entry says which machine and bundle it is from; the store finds its record."""
    merge(early, tmp_path)
    record = measured(early, tmp_path).records[0]
    assert find_entry(tmp_path, "profile", record.entry, ProfileRecord) == record
    folder = tmp_path / "store" / "profile" / record.entry[:2] / record.entry
    origin = read_record(folder / merging.ORIGIN, Origin)
    assert origin.bundle == early.manifest.identity
    assert (merging.bundle_folder(tmp_path, origin.bundle) / "manifest.json").is_file()


def test_without_a_binary_it_is_not_compiled(early: Bundle, late: Bundle, tmp_path: Path) -> None:
    """An entry without its binary is no entry for a run here; one with it takes its place."""
    merge(early, tmp_path)
    (folder,) = (tmp_path / "store" / "compile").glob("*/*")
    assert (folder / merging.PARTIAL).is_file() and not (folder / "kernel.so").exists()
    assert merge(late, tmp_path)["new"] == 1
    assert (folder / "kernel.so").read_bytes() == BINARY
    record = find_entry(tmp_path, "compile", folder.name, CompileRecord)
    assert record is not None and record.provenance.created == LATE
    merge(late, tmp_path)
    assert merge_of_partial_again(early, tmp_path) == "known", "the whole entry stays"


def merge_of_partial_again(early: Bundle, root: Path) -> str:
    """What an entry without its binary would do to a whole one."""
    decided = merging.decide(early, check(early), root, replace=True)
    return next(action for folder, action in decided.entries.items() if "compile" in folder)


def test_a_partial_entry_is_compiled_anew(early: Bundle, tmp_path: Path) -> None:
    """A run here does not take it, and can put its own in its place."""
    merge(early, tmp_path)
    (folder,) = (tmp_path / "store" / "compile").glob("*/*")
    assert find_entry(tmp_path, "compile", folder.name, CompileRecord) is None
    assert not folder.exists()


def test_a_later_result_replaces_and_the_old_one_is_kept(early: Bundle, late: Bundle, tmp_path: Path) -> None:
    """Two measurements of the same work: the later one counts, the other lies aside."""
    merge(early, tmp_path)
    old = measured(early, tmp_path)
    counts = merge(late, tmp_path)
    assert counts["replaced"] == 2  # profile's entry and output; verdicts and binaries are as good as ours
    assert measured(late, tmp_path).records[0].provenance.created == LATE
    kept = merging.bundle_folder(tmp_path, late.manifest.identity) / "replaced"
    assert measured(late, kept) == old
    assert len(list((kept / "store" / "profile").glob("*/*/record.json"))) == 1


def test_an_earlier_result_is_refused_unless_asked_for(early: Bundle, late: Bundle, tmp_path: Path) -> None:
    """Nothing is written when it is refused; --replace takes it."""
    merge(late, tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(BundleError, match=r"early\.kmb: the store has a later result .* --replace"):
        merge(early, tmp_path)
    assert snapshot(tmp_path) == before
    assert merge(early, tmp_path, replace=True)["replaced"] == 2
    assert measured(early, tmp_path).records[0].provenance.created == EARLY


def test_interrupted(early: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after any number of writes, it goes on, and the store is as if nothing had happened."""
    whole = tmp_path / "whole"
    merge(early, whole)
    real = merging.write_atomic
    root = tmp_path / "interrupted"
    for allowed in (0, 3, 6):
        left = iter(range(allowed))

        def failing(path: Path, content: bytes, left: object = left) -> None:
            if next(left, None) is None:
                raise StoreError(f"{path}: cannot be written: No space left on device")
            real(path, content)

        monkeypatch.setattr(merging, "write_atomic", failing)
        with pytest.raises(StoreError, match="No space left"):
            merge(early, root)
    monkeypatch.setattr(merging, "write_atomic", real)
    merge(early, root)
    assert snapshot(root) == snapshot(whole)


def renamed(bundle: Bundle, old: str, new: str) -> Bundle:
    """The bundle with one file under another name."""
    contents = {name.replace(old, new): content for name, content in bundle.contents.items()}
    assert contents.keys() != bundle.contents.keys()
    return msgspec.structs.replace(bundle, contents=contents)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("plan/profile/softmax", "plan/profile/matmul"),
        ("profile/softmax", "verify/softmax"),
        ("round0.json", "round1.json"),
        ("store/profile/", "store/cache/"),
        ("store/verify/", "store/profile/"),
        ("logs/", "elsewhere/"),
    ],
)
def test_a_file_in_the_wrong_place(early: Bundle, old: str, new: str) -> None:
    """What a file holds has to be what its name says."""
    with pytest.raises(BundleError, match="refused: "):
        check(renamed(early, old, new))


def test_a_finished_task_is_there(early: Bundle) -> None:
    """A spec that names a task whose output did not travel."""
    contents = {name: each for name, each in early.contents.items() if not name.startswith("verify/")}
    with pytest.raises(BundleError, match=r"verify/softmax.* of a finished task is missing"):
        check(msgspec.structs.replace(early, contents=contents))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"artifact":"kernel.so"', b'"artifact":"../../../../mlflow/mlflow.db"'),
        (b'"files":["kernel.so"', b'"files":["/etc/passwd"'),
        (b'"experiment":"smoke"', b'"experiment":"../../smoke"'),
        (b'"experiment":"smoke"', b'"experiment":"a/b"'),
    ],
)
def test_records_name_no_files_elsewhere(early: Bundle, old: bytes, new: bytes) -> None:
    """What a record or the spec names becomes a path here: it must not lead out of its folder."""
    contents = {name: content.replace(old, new) for name, content in early.contents.items()}
    assert contents != early.contents
    with pytest.raises(BundleError, match="refused: "):
        check(msgspec.structs.replace(early, contents=contents))
