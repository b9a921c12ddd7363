"""What a terminal shows of a run: the lines that matter, failures with their reason, progress within jobs."""

import io
import re
import time
from pathlib import Path

import pytest

from pipeline.execution import run_display
from pipeline.execution.run_display import JobLabels, RunDisplay, RunProgress
from pipeline.records import environment
from pipeline.records.errors import StoreError
from pipeline.records.outcome import Failure, Outcome
from pipeline.sandbox.progress_messages import StageProgress, send

TEXT = b"""\
Using workflow specific profile profiles/default for setting default command line arguments.
Assuming unrestricted shared filesystem usage.
/usr/lib/python3/site-packages/thing.py:105: FutureWarning: deprecated
  return thing
waiting for another run in this checkout (process 7)
compile softmax for x86-64: 2 variants: 1 passed, 1 compile_error 1.0 s
Traceback (most recent call last):
  File "stage.py", line 1, in <module>
"""
LABELS = JobLabels(titles={("compile", "c-1"): "softmax bert_base cpu"}, variants={("compile", "c-1"): 4})
OUTPUT = "artifacts/compile/c-1/round0.json"


def job(log: str) -> dict[str, object]:
    """The event of a job that begins."""
    names = {"rule": "compile_variants", "output": [OUTPUT], "log": [log]}
    return {"event": "job_info", "jobid": 3, **names}


def shown(text: bytes, *messages: dict[str, object], code: int = 0, quiet: bool = False) -> None:
    """A display of this text and these events, to its end."""
    display = RunDisplay(LABELS, quiet=quiet)
    for message in messages:
        display.progress.take(message)
    display.follow(io.BytesIO(text))
    display.close(code)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs go to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def test_noise_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """What stages report and what a user waits for stays; the file has everything."""
    shown(TEXT)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["waiting", "compile"]
    assert Path("artifacts/logs/snakemake.log").read_bytes() == TEXT


def test_quiet_leaves_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """No progress, and still the one line that matters."""
    shown(TEXT + b"error: kernel=x: unknown kernel\n", code=1, quiet=True)
    assert capsys.readouterr().err == "error: kernel=x: unknown kernel\n"


def test_what_ctrl_c_makes_of_snakemake_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines may arrive before this process has noticed the signal."""
    display = RunDisplay(LABELS, quiet=False)
    display.follow(io.BytesIO(b"KeyboardInterrupt\nRuleException:\nCalledProcessError in file x, line 4:\n"))
    time.sleep(0.1)
    display.stop()
    display.close(130)
    assert capsys.readouterr().err == ""


def test_a_run_that_takes_long_to_stop_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the jobs that it waits for."""
    monkeypatch.setattr(run_display, "STOP_SECONDS", 0.0)
    monkeypatch.setattr(run_display, "POLL_SECONDS", 0.05)
    display = RunDisplay(LABELS, quiet=False)
    display.progress.take(job("x.log"))
    display.follow(io.BytesIO())
    display.stop()
    time.sleep(0.5)
    display.close(130)
    assert capsys.readouterr().err == (
        "stopping in compile softmax bert_base cpu: finished results are kept\n"
    )


def test_a_wrong_argument(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the hundred lines of usage before it."""
    shown(
        b"usage: snakemake [-h]\n   [--cores N]\n__main__.py: error: unrecognized arguments: --cors\n", code=2
    )
    assert capsys.readouterr().err == "error: snakemake: unrecognized arguments: --cors (snakemake --help)\n"


def test_a_failed_job_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which job, the last error of its log, and the log's path."""
    log = tmp_path / "job.log"
    log.write_text("Traceback:\n  File x\nRuntimeError: the reason\nends here\n")
    error = {"event": "job_error", "jobid": 3, "rule": "compile_variants", "output": [OUTPUT], "log": []}
    shown(TEXT, job(str(log)), error, code=1)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"error: compile softmax bert_base cpu: RuntimeError: the reason (log: {log})"


def test_snakemake_that_says_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """An exit code without a reason comes with the end of its output."""
    shown(b"  ModuleNotFoundError in the Snakefile\n", code=1)
    lines = capsys.readouterr().err.splitlines()
    assert "ModuleNotFoundError" in lines[0]
    assert "exit code 1" in lines[-1]


def test_a_log_that_cannot_be_written() -> None:
    """One line with its path, before anything runs."""
    Path("artifacts").write_text("in the way")
    with pytest.raises(StoreError, match=r"^artifacts/logs/snakemake\.log: cannot be written: "):
        RunDisplay(LABELS, quiet=True)


def test_progress_within_a_job() -> None:
    """Variant k of n, failures so far, and steps."""
    progress = RunProgress(LABELS)
    progress.take({"event": "run_info", "stats": {"compile_variants": 2, "all": 1, "total": 3}})
    progress.take(job("x.log"))
    counts = {"done": 2, "total": 4, "failed": 1, "time_limit": 60.0}
    progress.take({"event": "variants", "output": OUTPUT, **counts})
    (running,) = progress.running()
    assert (running.name, running.state) == ("compile softmax bert_base cpu", "2 of 4 variants, 1 failed")
    progress.take({"event": "job_finished", "jobid": 3})
    # `all` makes nothing and is no step.
    assert (progress.running(), progress.steps, progress.total, progress.failures) == ([], 1, 2, 1)


def test_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the pace of each stage: what a quick one took says nothing of a slow one that follows."""
    now = 0.0
    monkeypatch.setattr("pipeline.execution.run_display.time.monotonic", lambda: now)
    output = "artifacts/profile/p-1/round0.json"
    progress = RunProgress(JobLabels(variants={("compile", "c-1"): 4, ("profile", "p-1"): 9}))
    stats = {"compile_variants": 2, "profile_variants": 2, "report": 1, "all": 1, "total": 6}
    progress.take({"event": "run_info", "stats": stats})
    for number in (1, 2):
        progress.take(job("x.log") | {"jobid": number})
    now = 10.0
    for number in (1, 2):
        progress.take({"event": "job_finished", "jobid": number})
    assert progress.seconds_left() is None
    progress.take({**job("x.log"), "jobid": 3, "rule": "profile_variants", "output": [output]})
    now = 40.0
    progress.take(
        {"event": "variants", "output": output, "done": 2, "total": 9, "failed": 0, "time_limit": 9.0}
    )
    assert progress.seconds_left() == 30.0 * (20 - 2) / 2


def test_steps_are_numbered_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs that end close together, and one with two lines: each number once, up to the total."""
    first = "compile softmax for x86-64: a remark\ncompile softmax for x86-64: 4 passed\n"
    second = "compile softmax for x86-64: 3 passed\n"
    (tmp_path / "1.log").write_text(first)
    (tmp_path / "2.log").write_text(second)
    display = RunDisplay(LABELS, quiet=False)
    display.progress.take({"event": "run_info", "stats": {"compile_variants": 2, "all": 1, "total": 3}})
    display.follow(io.BytesIO((first + second).encode()))
    for number in (1, 2):
        send(display.address, job(f"{number}.log") | {"jobid": number})
    for number in (1, 2):
        send(display.address, {"event": "job_finished", "jobid": number})
    send(display.address, {"event": "job_finished", "jobid": 0})
    display.close(0)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] compile softmax bert_base cpu: a remark",
        "      compile softmax bert_base cpu: 4 passed",
        "[2/2] compile softmax bert_base cpu: 3 passed",
    ]


def test_silence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain lines say what a run without news waits for, and until when."""
    monkeypatch.setattr(run_display, "SILENT_SECONDS", 0.0)
    display = RunDisplay(LABELS, quiet=False)
    display.progress.take(job("x.log"))
    counts = {"done": 2, "total": 4, "failed": 0, "time_limit": 60.0}
    display.progress.take({"event": "variants", "output": OUTPUT, **counts})
    display.follow(io.BytesIO())
    display.close(0)
    line = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        r"waiting for compile softmax bert_base cpu, 2 of 4 variants, the next one until \d\d:\d\d:\d\d "
        r"\(time_limit 60 s, 2 attempts\)",
        line,
    )


def test_silence_beyond_the_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time that has passed is not promised again."""
    monkeypatch.setattr(run_display, "SILENT_SECONDS", 0.0)
    display = RunDisplay(LABELS, quiet=False)
    display.progress.take(job("x.log"))
    counts = {"done": 2, "total": 4, "failed": 0, "time_limit": 1e-9}
    display.progress.take({"event": "variants", "output": OUTPUT, **counts})
    display.follow(io.BytesIO())
    display.close(0)
    line = capsys.readouterr().err.splitlines()[0]
    assert line.endswith("2 of 4 variants, longer than time_limit 1e-09 s, 2 attempts")


def test_silence_without_a_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate's limits do not say when it ends; they are said as they are."""
    monkeypatch.setattr(run_display, "SILENT_SECONDS", 0.0)
    display = RunDisplay(LABELS, quiet=False)
    display.progress.take(job("x.log"))
    counts = {"done": 2, "total": 4, "failed": 0, "time_limit": 0.0}
    display.progress.take({"event": "variants", "output": OUTPUT, "limits": "60 s each", **counts})
    display.follow(io.BytesIO())
    display.close(0)
    line = capsys.readouterr().err.splitlines()[0]
    assert line == "waiting for compile softmax bert_base cpu, 2 of 4 variants, 60 s each"


def test_a_stage_reports_to_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the socket; what runs candidates does not get its address."""
    display = RunDisplay(LABELS, quiet=True)
    monkeypatch.setenv(environment.FRONT, display.address)
    display.follow(io.BytesIO())
    send(display.address, job("x.log"))
    stage = StageProgress(Path(OUTPUT), 4)
    assert environment.front_address() is None
    stage.finished(Failure(outcome=Outcome.WRONG_VALUE, reason="y[0]"))
    stage.finished(Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason="no GPU"))
    display.close(0)
    (running,) = display.progress.running()
    assert (running.done, running.total, running.failed) == (2, 4, 1)


def test_results_that_were_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count in all that is said, and so do equal candidates, of which one is tried."""
    display = RunDisplay(LABELS, quiet=True)
    monkeypatch.setenv(environment.FRONT, display.address)
    display.follow(io.BytesIO())
    send(display.address, job("x.log"))
    stage = StageProgress(Path(OUTPUT), 6, known=[Outcome.PASSED, Outcome.COMPILE_ERROR])
    stage.finished(Outcome.PASSED, count=3)
    display.close(0)
    (running,) = display.progress.running()
    assert running.state == "5 of 6 variants, 1 failed"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run through Snakemake alone, or a display that is gone, costs nothing and breaks nothing."""
    monkeypatch.setenv(environment.FRONT, str(tmp_path / "gone"))
    StageProgress(Path(OUTPUT), 1).finished(Outcome.PASSED)
    monkeypatch.delenv(environment.FRONT, raising=False)
    StageProgress(Path(OUTPUT), 1).finished(Outcome.PASSED)
