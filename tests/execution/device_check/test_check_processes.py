"""However a check ends, there is a line."""

import platform
import time
from pathlib import Path

import pytest

from pipeline.execution.device_check import check_processes
from pipeline.execution.device_check.check_processes import Check, CheckSetting, run_check
from pipeline.execution.device_check.check_report import CheckedLine

ROOM = "tests.execution.device_check.made_up_checks"


def line_of(function: str, folder: Path, seconds: float = 30.0) -> CheckedLine:
    """Of a check that is made up."""
    setting = CheckSetting(kind="cuda", absence="no driver", folder=str(folder), subject="it")
    return run_check(Check(f"made up, {function}", f"{ROOM}:{function}", seconds), setting)


def test_a_check_that_works(tmp_path: Path) -> None:
    """Detail in one line; neither the folder nor the home of this machine."""
    line = line_of("works", tmp_path)
    assert (line.status, line.detail, line.figures) == ("ok", "it works in .", {"size": "1 B"})
    assert line.name == "made up, works" and line.seconds > 0
    assert str(Path.home()) not in line.log and "/somewhere" in line.log


@pytest.mark.parametrize(
    ("function", "status", "detail"),
    [
        ("absent", "absent", "no driver"),
        ("user_error", "failed", "conf/a.yaml: unknown key"),
        ("raises", "failed", "its process ended with code 1: RuntimeError: no such luck"),
        ("crashes", "failed", "its process was ended by signal 6 (Aborted): about to crash"),
        ("ends", "failed", "its process ended with code 0"),
        ("lacks", "failed", "its process ended with code 1: AttributeError: "),
    ],
)
def test_other_ends(function: str, status: str, detail: str, tmp_path: Path) -> None:
    """An exception, a crash, an end without an answer, a function that does not exist."""
    line = line_of(function, tmp_path)
    assert line.status == status
    assert line.detail.startswith(detail)


def test_a_check_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed with what it has started."""
    monkeypatch.setattr(check_processes, "CLEAN_UP_SECONDS", 0.0)
    line = line_of("hangs", tmp_path, seconds=3.0)
    assert (line.status, line.detail) == ("failed", "not finished after 3 s, and killed")
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether it runs; one that was not reaped does not."""
    state = Path(f"/proc/{process}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_name_of_the_machine_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In details and logs."""
    from pipeline.execution.device_check.check_report import CheckAnswer, checked_line

    monkeypatch.setattr(platform, "node", lambda: "gpu-node-17")
    answer = CheckAnswer(status="ok", detail="on gpu-node-17", figures={"a": "gpu-node-17"})
    line = checked_line("a", answer, seconds=1.0, log="gpu-node-17 said")
    assert (line.detail, line.figures, line.log) == ("on <host>", {"a": "<host>"}, "<host> said")
