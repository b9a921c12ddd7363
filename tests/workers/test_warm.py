"""What is imported once: in the warm worker, in its branches, and not again in the jobs."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.workers.submit import BEGIN, WARM
from pipeline.workers.zygote import PRELOAD

EXTRA, ITS = "xmlrpc.client", "pyexpat"
"""A module that nobody else imports, and what it imports: what `importlib` is asked for is not printed."""
TORCH = "torch._C"
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.MULTILINE)


class Worker:
    """A warm worker in a folder of its own; every process prints what it imports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def submit(self, *arguments: str) -> list[str]:
        """Run one job; what it and its client imported."""
        ended = subprocess.run(
            [sys.executable, "-m", "pipeline.workers.submit", *arguments],
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


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Its socket goes with its folder, and then it ends."""
    with tempfile.TemporaryDirectory(prefix="km-", ignore_cleanup_errors=True) as folder:
        yield Worker(Path(folder))


def test_torch_is_imported_once_for_all_jobs(worker: Worker) -> None:
    """Jobs of several stages find torch and their stage imported; the client has next to nothing."""
    for stage in ("generate", "compile", "verify", "profile", "compile"):
        imported = worker.submit(stage, "--help")
        assert not {"torch", "numpy", "msgspec"} & {name.partition(".")[0] for name in imported}
    (log,) = worker.logs()
    assert log.count(TORCH) == 1
    assert "triton" not in log


def test_a_branch_has_more_imported(worker: Worker) -> None:
    """It comes from the same zygote: torch is not imported again, and other jobs do not have its modules."""
    worker.submit(WARM, EXTRA, "compile", "--help")
    worker.submit(WARM, EXTRA, "compile", "--help")
    base, branch = worker.logs()
    assert base.count(TORCH) == 1
    assert branch.count(ITS) == 1
    assert TORCH not in branch
    assert ITS not in base


def test_begin_starts_it_and_returns(worker: Worker) -> None:
    """The next job finds all of it there."""
    worker.submit(WARM, EXTRA, BEGIN)
    before = [list(log) for log in worker.logs()]
    worker.submit(WARM, EXTRA, "compile", "--help")
    assert worker.logs() == before


def test_a_branch_that_cannot_import(worker: Worker) -> None:
    """One line says where to look, and the base goes on."""
    with pytest.raises(AssertionError, match=r"the warm worker did not start; its log: \S+\.log"):
        worker.submit(WARM, "no_such_module", "compile", "--help")
    assert worker.submit("compile", "--help")


def test_preloading_imports_no_triton_and_no_tables() -> None:
    """Triton compiles or interprets from its import on; the tables' libraries serve one job of a run."""
    program = (
        "import sys, importlib\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *PRELOAD], capture_output=True, text=True, check=True
    )
    heavy = {"triton", "pandas", "pyarrow", "plotly", "mlflow", "hydra", "snakemake", "scipy"}
    assert not heavy & set(ended.stdout.split())


def test_edited_code_gets_a_worker_of_its_own(tmp_path: Path) -> None:
    """The address of the worker has the state of the code in it, so that none runs what was edited since."""
    from pipeline.workers import submit

    module = tmp_path / "pipeline" / "stages" / "compile.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    before = submit._stamps(tmp_path / "pipeline")
    module.write_text("EDITED = 1\n")
    edited = submit._stamps(tmp_path / "pipeline")
    (module.parent / "new.py").write_text("")
    assert len({*map(tuple, (before, edited, submit._stamps(tmp_path / "pipeline")))}) == 3
