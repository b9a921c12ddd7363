"""What is imported once: in the warm worker, in its branches, and not again in the jobs."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.execution.workers import submit
from pipeline.execution.workers.submit import BEGIN, WARM
from pipeline.execution.workers.zygote import PRELOAD
from pipeline.sandbox.processes.fork_server import ForkServer, Limits
from pipeline.sandbox.processes.worker_client import NO_DRIVER, fork_server

TORCH, TRITON = "torch._C", "triton"
"""What only an import of torch, and of Triton, imports."""
PREPARE = "tests.sandbox.children:import_colorsys"
TELL = "tests.sandbox.children:tell_surroundings"
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)


class Worker:
    """A warm worker in a folder of its own; every process prints what it imports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def submit(self, *arguments: str) -> list[str]:
        """Run one job; what it and its client imported."""
        ended = subprocess.run(
            [sys.executable, "-m", "pipeline.execution.workers.submit", *arguments],
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self._folder), "PYTHONPROFILEIMPORTTIME": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return IMPORTED.findall(ended.stderr)

    def logs(self) -> list[list[str]]:
        """What each zygote imported, the one with the most first."""
        found = [IMPORTED.findall(path.read_text()) for path in self._folder.glob("*/*.log")]
        return sorted(found, key=len, reverse=True)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One for all tests, which import torch otherwise; its socket goes with its folder, and then it ends."""
    with tempfile.TemporaryDirectory(prefix="km-", ignore_cleanup_errors=True) as folder:
        yield Worker(Path(folder))


@pytest.mark.slow
def test_torch_is_imported_once_for_all_jobs(worker: Worker) -> None:
    """Jobs of several stages find torch and their stage imported; the client has next to nothing.

    The call returns when all of it is there.
    """
    worker.submit(BEGIN)
    begun = worker.logs()
    for stage in ("generate", "compile", "verify", "profile", "compile"):
        imported = worker.submit(stage, "--help")
        assert not {"torch", "numpy", "msgspec"} & {name.partition(".")[0] for name in imported}
    (log,) = worker.logs()
    assert log.count(TORCH) == 1
    assert "triton" not in log
    assert begun == [log]


@pytest.fixture
def spec(tmp_path: Path) -> str:
    """What a spec of compile says of its backends."""
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"target": {"kind": "cuda"}, "builds": {"triton": {}}}))
    return str(path)


@pytest.mark.slow
def test_a_branch_has_triton_imported(worker: Worker, spec: str) -> None:
    """It comes from the same zygote: torch is not imported again, and other jobs do not have Triton."""
    pytest.importorskip("triton")
    for _ in range(2):
        assert TRITON not in worker.submit(WARM, spec, "compile", "--help")
    base, branch = worker.logs()
    assert base.count(TORCH) == 1 and TRITON not in base
    assert branch.count(TRITON) == 1 and TORCH not in branch


@pytest.mark.parametrize(
    "text", [json.dumps({"target": {"kind": "cpu"}, "builds": {"cpp": {}}}), "broken", "[]", "{}"]
)
def test_no_branch_is_needed(text: str, tmp_path: Path) -> None:
    """The C++ compiler is a program of its own; a broken spec is the stage's to tell."""
    path = tmp_path / "spec.json"
    path.write_text(text)
    assert submit._backends(path) == []
    assert submit._backends(tmp_path / "absent") == []


@pytest.mark.slow
def test_a_branch_that_cannot_import(worker: Worker, tmp_path: Path) -> None:
    """One line says where to look, and the base goes on."""
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"target": {"kind": "cuda"}, "builds": {"no_such_backend": {}}}))
    with pytest.raises(AssertionError, match=r"the warm worker did not start( \(.+\))?; its log: \S+\.log"):
        worker.submit(WARM, str(spec), "compile", "--help")
    assert worker.submit("compile", "--help")


@pytest.mark.slow
def test_preloading_imports_no_triton_and_no_tables() -> None:
    """Triton compiles or interprets from its import on; the tables' libraries serve one job of a run."""
    program = (
        "import sys, importlib\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *PRELOAD], capture_output=True, text=True, check=True
    )
    heavy = {"triton", "pandas", "pyarrow", "mlflow", "hydra", "snakemake", "scipy"}
    assert not heavy & set(ended.stdout.split())


def test_edited_code_gets_a_worker_of_its_own(tmp_path: Path) -> None:
    """The address of the worker has the state of the code in it, so that none runs what was edited since."""
    module = tmp_path / "pipeline" / "stages" / "compile.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    before = submit._stamps(tmp_path / "pipeline")
    module.write_text("EDITED = 1\n")
    edited = submit._stamps(tmp_path / "pipeline")
    (module.parent / "new.py").write_text("")
    assert len({*map(tuple, (before, edited, submit._stamps(tmp_path / "pipeline")))}) == 3


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """Where a warm worker of the tests below listens."""
    with tempfile.TemporaryDirectory(prefix="km-", ignore_cleanup_errors=True) as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", folder)
            patch.setattr(tempfile, "tempdir", None)
            assert submit.main([BEGIN]) == 0
        (path,) = Path(folder).glob("*/*.sock")
        yield path


def surroundings(worker: Path, log: Path) -> Any:
    """What a child of a fork server in a branch finds."""
    control = fork_server(worker, PREPARE)
    assert control is not None
    with ForkServer.at(control) as server:
        child = server.start(TELL, limits=Limits(seconds=60.0), log=log)
        found = child.receive(60.0)
        assert child.stop().kind == "ok"
    return found


@pytest.mark.slow
def test_a_fork_server_in_a_branch(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children have imported what the branch prepared, see the job's variables; the next job's
    server comes from the same branch."""
    before = listening(warm)
    for test in ("one", "two"):
        monkeypatch.setenv("KERNELMILL_TEST", test)
        assert surroundings(warm, tmp_path / "log.txt") == {
            "imported": ["colorsys", "torch"],
            "folder": str(Path.cwd()),
            "variables": {"KERNELMILL_TEST": test, **NO_DRIVER},
        }
    assert listening(warm) == before + 1


def listening(worker: Path) -> int:
    """How many listen: the worker, and its branches."""
    return len(list(worker.parent.glob("*.sock")))


@pytest.mark.slow
def test_what_torch_reads_at_its_import(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another value needs another branch."""
    surroundings(warm, tmp_path / "log.txt")
    before = listening(warm)
    monkeypatch.setenv("TORCH_TEST", "1")
    assert surroundings(warm, tmp_path / "log.txt")["variables"] == {"TORCH_TEST": "1", **NO_DRIVER}
    assert listening(warm) == before + 1


@pytest.mark.slow
def test_a_branch_that_cannot_be_prepared(warm: Path) -> None:
    """There is no server, and whoever asked goes on with its own; a log says why. Nor is there one where no
    worker listens."""
    assert fork_server(warm, "tests.sandbox.children:nothing_of_that_name") is None
    assert any("nothing_of_that_name" in log.read_text() for log in warm.parent.glob("*.log"))
    assert fork_server(warm.with_name("absent.sock"), PREPARE) is None
