"""The process that a profiler watches: one warm call of a callable, told through its exit code."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.backends.devices.device import CALL_REFUSED
from pipeline.measure.hosting import single_call
from pipeline.measure.hosting.measuring_messages import Go, Load, Loaded, Prepare, Prepared, Ran, Refused
from pipeline.records.record import to_json
from pipeline.records.results.profiled import Peak
from tests.measure.problems import set_up
from tests.paths import ROOT


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m pipeline.measure.hosting.single_call` on one of `tests.measure.callables`."""
    request = folder / "request.json"
    request.write_bytes(to_json(single_call.SingleCallRequest(set_up=set_up(name))))
    command = [sys.executable, "-m", "pipeline.measure.hosting.single_call", str(request)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_callable_that_works(tmp_path: Path):
    """It is loaded, warmed up and called; nothing is printed."""
    ended = run("plain", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_a_callable_that_refuses(tmp_path: Path):
    """A code of its own; the reason is the last line."""
    ended = run("refusing", tmp_path)
    assert ended.returncode == CALL_REFUSED
    assert ended.stderr.splitlines()[-1] == "ValueError: no such size"


def test_the_profiler_sees_the_last_call_alone(monkeypatch: pytest.MonkeyPatch):
    """Not the first one, nor the warm-up: it is started before the last command, stopped with its answer."""
    events: list[str] = []
    cudart = SimpleNamespace(
        cudaProfilerStart=lambda: events.append("start"), cudaProfilerStop=lambda: events.append("stop")
    )
    torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: None, cudart=lambda: cudart))
    monkeypatch.setitem(sys.modules, "torch", torch)
    import msgspec

    script = single_call._Script(msgspec.structs.replace(set_up("plain"), kind="cuda"))
    answers = {
        Load: Loaded(setup_seconds=0, first_call_seconds=0, first_peak=Peak(), facts={}),
        Prepare: Prepared(),
        Go: Ran(seconds=1),
    }
    script.receive()
    for kind, answer in answers.items():
        command = script.receive()
        assert isinstance(command, kind)
        events.append(kind.__name__)
        script.send(answer)
    assert events == ["Load", "Prepare", "start", "Go", "stop"]
    with pytest.raises(EOFError):
        script.receive()


def test_after_a_refusal_there_are_no_commands():
    """The child has ended."""
    script = single_call._Script(set_up("plain"))
    script.receive()
    script.receive()
    script.send(Refused(reason="no"))
    with pytest.raises(EOFError):
        script.receive()
    assert script.refused == "no"
