"""A private copy of the project at one path, with trees prepared up to each stage, that faults are put into.

In: a folder. Out: runs of Snakemake whose output and end are kept, and the tree as it was before each.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests import warm_commands
from tests.end_to_end.checkout import Checkout
from tests.faults import processes

SMALL = Path(__file__).parent / "small"
GROUPS = ("kernel", "workload", "optimization", "verify", "profile", "experiment")
STAGES = ("plan", "generate", "compile", "verify", "profile", "aggregate", "track")
"""What a tree is prepared up to; the rest is up to the run that a fault is put into."""
TARGETS = {stage: (stage,) for stage in STAGES}
KEPT = ("artifacts", ".snakemake")
MARK = "KERNELMILL_FAULTS"
"""In the environment of all processes that come from here: how they are found again."""
HEARING = ("env", "--default-signal=INT")
"""A shell starts what is in the background with this signal ignored, which a run would inherit."""
LONGEST = 150.0  # seconds for a run that takes a few on a quiet machine
PATIENCE = 3.0  # times what an undisturbed run takes here and now: the machine may do other things as well
MOST = 550.0  # seconds


class Ended:
    """How a run ended: its exit code and all that it said."""

    def __init__(self, code: int, output: str, seconds: float) -> None:
        self.code = code
        self.output = output
        self.seconds = seconds

    @property
    def said(self) -> str:
        """The line that tells the user what is wrong: ours, or else the last one that looks like an error."""
        if self.code < 0:
            return f"(killed by signal {-self.code})"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        for pattern in (r"^error: ", r"damaged", r"^waiting ", r"[Ee]rror|No space|denied|Terminat|[Ss]hut"):
            for line in lines:
                if re.search(pattern, line):
                    return line
        return "(nothing)" if self.code == 0 or not lines else lines[-1]

    @property
    def traceback(self) -> str | None:
        """The first line of a traceback through the project's code, where one was shown."""
        if "Traceback (most recent call last)" not in self.output:
            return None
        ours = [line.strip() for line in self.output.splitlines() if "/pipeline/" in line and "File" in line]
        return ours[-1] if ours else None


class Run:
    """A run that goes on while a fault is put into it."""

    def __init__(
        self, command: list[str], folder: Path, environment: dict[str, str], longest: float = LONGEST
    ) -> None:
        self._started = time.monotonic()
        self._longest = longest
        self._lines: list[str] = []
        self.process = subprocess.Popen(
            [*HEARING, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """What it said so far."""
        return "".join(self._lines)

    @property
    def goes_on(self) -> bool:
        """Whether Snakemake still lives."""
        return self.process.poll() is None

    def until(self, event: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for an event; False where the run ended before."""
        deadline = time.monotonic() + (self._longest if seconds is None else seconds)
        while time.monotonic() < deadline:
            if event():
                return True
            if not self.goes_on:
                return False
            time.sleep(0.002)
        return False

    def end(self) -> Ended:
        """Wait for its end; one that hangs is killed, with the exit code of a time limit."""
        try:
            code = self.process.wait(self._longest)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = 124
        self._reader.join(2.0)
        return Ended(code, self.output, time.monotonic() - self._started)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)


class _NewCheckout(Checkout):
    prepared = False  # its processes are found by their environment, and the store is made under faults


class Scene:
    """The copy, its prepared trees, and what an undisturbed run leaves."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.base = folder
        self.temporary = folder / "t"  # short: the path of a socket is limited
        self.temporary.mkdir(exist_ok=True)
        self.folder = folder / "p"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.checkout = _NewCheckout(self.folder)
        for group in GROUPS:
            shutil.copy(SMALL / f"{group}.yaml", self.folder / "conf" / group / "small.yaml")
        self.mark = f"{os.getpid()}-{folder.name}"
        self.environment = self.checkout.environment | {MARK: self.mark, "TMPDIR": str(self.temporary)}
        self.wrapper: tuple[str, ...] = ()
        """Put before the command of a run: with fewer rights, with lower limits."""
        self.seconds = 0.0
        """Of an undisturbed run, its measurements left out."""

    @property
    def longest(self) -> float:
        """Seconds after which a run counts as hanging, by what an undisturbed one takes here and now."""
        return min(LONGEST + PATIENCE * self.seconds, MOST)

    @property
    def artifacts(self) -> Path:
        """The store."""
        return self.folder / "artifacts"

    def prepare(self) -> None:
        """Run every stage once undisturbed and keep the tree after each."""
        for stage in STAGES:
            self._run_whole(*(("-n",) if stage == "plan" else (stage,)))
            self._keep(stage)
        self._run_whole()
        self._keep("report")

    def _run_whole(self, *arguments: str) -> None:
        ended = self.run_undisturbed(*arguments)
        assert ended.code == 0, ended.output
        if arguments != ("profile",):  # there the ceilings are measured, which later runs find
            self.seconds += ended.seconds

    def _keep(self, name: str) -> None:
        target = self.base / "kept" / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for part in KEPT:
            if (self.folder / part).exists():
                _copy(self.folder / part, target / part)

    def restore(self, name: str | None) -> None:
        """The tree as it was after a stage; None: nothing was made but the ceilings, which take longest."""
        for part in KEPT:
            shutil.rmtree(self.folder / part, ignore_errors=True)
            if name is not None and (self.base / "kept" / name / part).exists():
                _copy(self.base / "kept" / name / part, self.folder / part)
        self.artifacts.mkdir(exist_ok=True)
        ceilings = self.base / "kept" / "profile" / "artifacts" / "cache"
        if name is None and ceilings.exists():
            _copy(ceilings, self.artifacts / "cache")
        elif name in STAGES[: STAGES.index("profile")]:
            shutil.rmtree(self.artifacts / "cache", ignore_errors=True)
            _copy(ceilings, self.artifacts / "cache")

    def command(self, *arguments: str) -> list[str]:
        """Snakemake's, for the small experiment."""
        config = ("--config", "experiment=small")
        return [*self.wrapper, sys.executable, "-m", "snakemake", "--cores", "2", *arguments, *config]

    def run(self, *arguments: str, **environment: str) -> Run:
        """Start Snakemake."""
        return Run(self.command(*arguments), self.folder, self.environment | environment, self.longest)

    def run_undisturbed(self, *arguments: str) -> Ended:
        """Run Snakemake to its end, in a process that finds libraries imported and that no fault can find."""
        started = time.monotonic()
        code, output = 124, ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            ended = warm_commands.run(
                self.command(*arguments)[1:],
                cwd=self.folder,
                env=self.environment,
                timeout=self.longest,
                one_stream=True,
            )
            code, output = ended.returncode, ended.stdout
        return Ended(code, output, time.monotonic() - started)

    def module(self, *arguments: str) -> Ended:
        """Run one of the project's commands to its end."""
        return Run([sys.executable, "-m", *arguments], self.folder, self.environment, self.longest).end()

    def members(self) -> list[processes.Member]:
        """All processes that came from here."""
        return processes.members(MARK, self.mark)

    def end_all(self) -> None:
        """Kill whatever runs still."""
        processes.kill_all(self.members)

    def tidy(self) -> None:
        """Nothing of an earlier fault is left in the folder for temporary files."""
        for path in self.temporary.iterdir():
            if not re.match(r"kernelmill-(\d+|locks)$", path.name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def fresh_worker(self) -> None:
        """Nothing runs, so that the next run starts its warm worker: with its own rights and limits."""
        self.end_all()


def _copy(source: Path, target: Path) -> None:
    """With time stamps, which Snakemake compares."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
