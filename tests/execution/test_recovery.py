"""Before a run: what is damaged goes, with all that was made from it, and nothing else."""

import os
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.recovery import recover
from pipeline.records.layout import output_path
from pipeline.records.planning.planned_tasks import Plan
from pipeline.store.integrity import is_damaged, write_sealed
from tests.execution.bundle.made_up import make_run

OUTPUTS = ("generate", "compile", "verify", "profile")
LAST = ("aggregate/{}/summary.json", "track/{}/tracked.json", "report/{}/report.html")


def finished(root: Path) -> Plan:
    """A store in which everything was made; sealed as the stages do."""
    plan = make_run(root).plan
    for path in outputs(root, plan):
        write_sealed(path, path.read_bytes() if path.is_file() else not_tracked(path))
    return plan


def not_tracked(path: Path) -> bytes:
    """Content of what comes last."""
    if path.name != "tracked.json":
        return b"content"
    return b'{"experiment":"smoke","result":{"type":"not_tracked","reason":"a test"}}'


def outputs(root: Path, plan: Plan) -> list[Path]:
    """All outputs of the plan, in order."""
    row = plan.tasks[0].row
    found = [output_path(root, stage, getattr(row, stage), 0) for stage in OUTPUTS]
    return found + [root / pattern.format(plan.aggregate) for pattern in LAST]


def test_a_whole_store_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is removed and nothing said."""
    plan = finished(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    recover(plan, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("content", [None, b"", b"{", b"other"])
def test_what_follows_damage_goes(tmp_path: Path, number: int, content: bytes | None) -> None:
    """Of the outputs, those from the damaged or missing one on; the store keeps every entry."""
    plan = finished(tmp_path)
    paths = outputs(tmp_path, plan)
    paths[number].unlink() if content is None else paths[number].write_bytes(content)
    entries = sorted((tmp_path / "store").rglob("*"))
    recover(plan, tmp_path)
    assert [path.is_file() for path in paths] == [earlier < number for earlier in range(len(paths))]
    assert sorted((tmp_path / "store").rglob("*")) == entries


def test_a_damaged_binary_goes_where_it_is_still_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its verdict is still to come: the entry and the output that names it go, and the user knows."""
    plan = finished(tmp_path)
    paths = outputs(tmp_path, plan)
    paths[3].unlink()
    binary = next((tmp_path / "store" / "compile").rglob("kernel.so"))
    binary.write_bytes(b"flipped")
    recover(plan, tmp_path)
    assert not binary.parent.exists()
    assert [path.is_file() for path in paths[:4]] == [True, False, False, False]
    assert "damaged (kernel.so is not what was written), made again" in capsys.readouterr().err


def test_half_made_things_go(tmp_path: Path) -> None:
    """In every folder in which something is made; what another machine makes at this moment stays."""
    plan = finished(tmp_path)
    paths = outputs(tmp_path, plan)
    entry = next((tmp_path / "store" / "compile").rglob("kernel.so")).parent
    folders = (*(path.parent for path in paths), entry.parent, tmp_path / "plan" / "compile")
    for folder in folders:
        (folder / ".half.json.01234567.1-abc").write_text("young")
        (folder / ".half.json.01234567.2-abc").write_text("old")
        os.utime(folder / ".half.json.01234567.2-abc", (0, 0))
    recover(plan, tmp_path)
    assert all((folder / ".half.json.01234567.1-abc").exists() for folder in folders)
    assert not any((folder / ".half.json.01234567.2-abc").exists() for folder in folders)


def test_check_looks_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also at what no stage will use: what is damaged goes, and exit code 1 says so; then all is well."""
    finished(tmp_path)
    assert main(["check", "--root", str(tmp_path)]) == 0
    capsys.readouterr()
    binary = next((tmp_path / "store" / "compile").rglob("kernel.so"))
    binary.write_bytes(b"flipped")
    assert main(["check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "kernel.so is not what was written" in said.err and "damaged or missing; run again" in said.out
    assert not binary.exists()
    assert main(["check", "--root", str(tmp_path)]) == 0
    assert not is_damaged(tmp_path / "nothing")
