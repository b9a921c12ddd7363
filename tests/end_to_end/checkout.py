"""A private copy of the project in which a test may break things."""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.track.stores.mlflow_store import database, make_embedded
from tests import warm_commands
from tests.paths import ROOT

PARTS = (
    "Snakefile",
    "pyproject.toml",
    "conf",
    "kernels",
    "pipeline",
    "profiles",
    "workflows",
    "hydra_plugins",
)


def _empty_store() -> Path:
    """An MLflow database without runs, which takes seconds to make; one for a session of tests."""
    kept = Path(os.environ["XDG_CACHE_HOME"]) / "mlflow"
    with kept.with_suffix(".lock").open("w") as lock, tempfile.TemporaryDirectory() as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait for it
        if not kept.exists():
            root = Path(scratch)
            make_embedded(root)
            copy = Path(tempfile.mkdtemp(dir=kept.parent))
            made, empty = sqlite3.connect(database(root)), sqlite3.connect(copy / database(root).name)
            with contextlib.closing(made), contextlib.closing(empty):
                made.backup(empty)
            copy.rename(kept)
    return kept


class Checkout:
    """A copy of the sources with an empty artifacts/ folder."""

    imported_before = True
    """Whether a test's commands may find libraries imported (`warm_commands`)."""
    prepared = True
    """Whether its warm workers may find them imported, too, and its MLflow store is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part)
            elif source.is_file():
                shutil.copy2(source, folder / part)
        (folder / "artifacts").mkdir()
        # The short folder keeps the path of the warm worker's socket below the system's limit.
        self.environment = {**os.environ, "PYTHONPATH": str(folder)}
        if self.prepared and "pytest" in sys.modules:
            self.environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(warm_commands.WARM_SITE)])
            self.environment["KERNELMILL_TEST_WORKERS"] = warm_commands.workers_address()
        if "pytest" not in sys.modules:  # a benchmark starts cold; tests share the cache of their session
            self.environment["XDG_CACHE_HOME"] = str(folder.parent / f"{folder.name}-user-cache")
        else:
            self._share("cache/inductor")
            if self.prepared:
                self._share("plan/cache/code")
                shutil.copytree(_empty_store(), folder / "artifacts" / "mlflow")

    def _share(self, part: str) -> None:
        """A folder of artifacts/ is the session's, where all that is in it is kept by its content."""
        shared = Path(os.environ["XDG_CACHE_HOME"]) / Path(part).name
        shared.mkdir(exist_ok=True)
        link = self.folder / "artifacts" / part
        link.parent.mkdir(parents=True)
        link.symlink_to(shared)

    def command(self, *arguments: str) -> list[str]:
        """The command line of Snakemake with these arguments."""
        return [sys.executable, "-m", "snakemake", "--cores", "all", *arguments]

    def snakemake(self, *arguments: str, check: bool = True, seconds: float = 200) -> str:
        """Run Snakemake to its end; its whole output."""
        return self._ended(self.command(*arguments)[1:], check=check, seconds=seconds)

    def module(self, name: str, *arguments: str, check: bool = True, seconds: float = 200) -> str:
        """Run one of the project's commands to its end; its whole output."""
        return self._ended(["-m", name, *arguments], check=check, seconds=seconds)

    def _ended(self, arguments: list[str], *, check: bool, seconds: float) -> str:
        """Run Python with these arguments; a benchmark starts it cold."""
        if self.imported_before and "pytest" in sys.modules:
            ended = warm_commands.run(
                arguments, cwd=self.folder, env=self.environment, timeout=seconds, one_stream=True
            )
        else:
            ended = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
                check=False,
            )
        assert not check or ended.returncode == 0, ended.stdout
        return ended.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake in a session of its own, so that a test can kill it whole."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is there exactly once."""
        file = self.folder / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
        file.write_text(text.replace(old, new))

    def entries(self, stage: str) -> dict[str, float]:
        """Store entries of a stage: identity -> time of its record."""
        records = (self.folder / "artifacts" / "store" / stage).glob("*/*/record.json")
        return {record.parent.name: record.stat().st_mtime_ns for record in records}

    def records(self, stage: str) -> list[dict]:
        """The stored records of a stage."""
        paths = sorted((self.folder / "artifacts" / "store" / stage).glob("*/*/record.json"))
        return [json.loads(path.read_text()) | {"folder": path.parent} for path in paths]
