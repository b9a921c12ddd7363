"""Shows a run of Snakemake: its events, the stages' progress and its text in; a few lines, or bars, out.

A terminal gets bars, anything else a line for each stage that ended. All of it goes to standard error, and
everything that Snakemake and its jobs print is kept in one file.
"""

import contextlib
import json
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pipeline.performance.quantities import counted
from pipeline.records.errors import one_line
from pipeline.sandbox.progress_messages import send
from pipeline.stages.table import STAGES, final, rounds
from pipeline.store.atomic import unwritable

if TYPE_CHECKING:
    from rich.console import RenderableType

RAW_LOG = Path("artifacts/logs/snakemake.log")
"""Everything that Snakemake and its jobs printed in the latest run."""
REFRESH_PER_SECOND = 4
ESTIMATE_AFTER_SECONDS = 3.0
JOBS_SHOWN = 8
TAIL = 3
"""Lines of the log that are shown if nothing else says why Snakemake failed."""
END_SECONDS = 5.0
SILENT_SECONDS = 10.0
"""Silence after which plain output says what the run waits for; doubled each time."""
POLL_SECONDS = 1.0
HOLD_SECONDS = 1.0
"""How long Snakemake's own lines are held back: what it prints because of Ctrl-C is no news."""
STOP_SECONDS = 2.0
"""How long a run may take to end before it says what it still waits for."""
ATTEMPTS = 2
"""Of a variant that ran out of time: the machine may have been to blame."""
TARGETS = ("all", "mutation", "judge", *(stage.name for stage in rounds()))
"""Rules that make nothing: Snakemake counts them as steps."""
ONCE = ("verdicts", *(stage.name for stage in final()))
"""Rules with one short job."""
_BAR_WIDTH = 16
_STAGE_LINE = re.compile(rf"(?:{'|'.join(STAGES)}) \S")
_ERROR = re.compile(r"(?:error|\w+(?:Error|Exception|Bug)): ")
_REFUSED = re.compile(r"(?:snakemake|__main__\.py): error: (.*)")
"""Snakemake does not take its arguments."""
_NOISE = re.compile(
    r"\s|$|usage: |Using workflow specific profile|Assuming unrestricted|Building DAG|Provided c|"
    r"Rules claiming|Traceback|Warning:|\S+:\d+: \w*Warning|Complete log|Exiting because|"
    r"At least one job|Shutting down|prepared |Will exit|Removing output|Unlocking|WorkflowError:$|"
    r"Error in rule|Trying to restart|\[\w{3} \w{3} "
)


class JobLabels(NamedTuple):
    """What the jobs of a run are called, and how much there is to do in them."""

    titles: Mapping[tuple[str, str], str] = {}
    """Stage and key -> `softmax bert_base cpu`."""
    variants: Mapping[tuple[str, str], int] = {}
    """Stage and key -> how many variants a job of it has at most."""


class FailedJob(NamedTuple):
    """A job that ended without its output."""

    name: str
    reason: str
    log: str

    def __str__(self) -> str:
        """One line: what, why, and where to read on."""
        return f"{self.name}: {self.reason}" + (f" (log: {self.log})" if self.log else "")


class _Job:
    def __init__(self, message: Mapping[str, Any], labels: JobLabels) -> None:
        output = Path(next(iter(message["output"]), message["rule"]))
        parts = output.parts[1:]
        self.rule = str(message["rule"])
        self.stage = parts[0] if len(parts) > 1 else str(message["rule"])
        key = Path(parts[1]).stem if len(parts) > 1 else ""
        title = labels.titles.get((self.stage, key), re.sub(r"-[0-9a-f]{12,}$", "", key))
        round_number = output.stem.removeprefix("round")
        later = f", round {round_number}" if round_number.isdecimal() and int(round_number) else ""
        self.name = (self.stage if title == self.stage else f"{self.stage} {title}".rstrip()) + later
        self.output, self.log = str(output), next(iter(message["log"]), "")
        self.total = labels.variants.get((self.stage, key), 0)
        self.done = self.failed = 0
        self.time_limit = 0.0
        self.limits = ""
        self.changed = time.time()

    @property
    def units(self) -> float:
        """How much work it is, compared with others."""
        return 1.0 + self.total

    @property
    def state(self) -> str:
        """`2 of 24 variants, 1 failed`: those that ended, as several may run."""
        if not self.total:
            return ""
        noun = "candidate" if self.stage in ("judge", "timing") else "variant"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {counted(self.total, noun)}{failed}"


class _Pace:
    """What jobs of one rule have done, and how long at least one of them ran."""

    def __init__(self, expected: float) -> None:
        self.expected = expected
        self.ended = 0.0
        self._seconds, self._since, self._jobs = 0.0, 0.0, 0

    def begin(self) -> None:
        """A job began."""
        if not self._jobs:
            self._since = time.monotonic()
        self._jobs += 1

    def end(self, units: float) -> None:
        """One ended."""
        self.ended += units
        self._jobs -= 1
        if not self._jobs:
            self._seconds += time.monotonic() - self._since

    def seconds_left(self, running: float) -> float | None:
        """By what is done; `running`: in jobs that have not ended. None where nothing is."""
        done = self.ended + running
        left = max(self.expected - done, 0.0)
        if not left:
            return 0.0
        seconds = self._seconds + (time.monotonic() - self._since if self._jobs else 0.0)
        return seconds * left / done if done else None


class RunProgress:
    """What is known of a run; messages arrive in another thread than that which shows it."""

    def __init__(self, labels: JobLabels) -> None:
        self._labels = labels
        self._lock = threading.Lock()
        self._jobs: dict[int, _Job] = {}
        self._started = time.monotonic()
        self._paces: dict[str, _Pace] = {}
        self._sizes = {
            stage: [count for (each, _), count in labels.variants.items() if each == stage]
            for stage, _ in labels.variants
        }
        self.steps = self.total = self.failures = 0
        self.failed_jobs: list[FailedJob] = []

    def take(self, message: Mapping[str, Any]) -> _Job | None:
        """Update by one message; the job that has ended well, if it is of one."""
        with self._lock:
            ended: _Job | None = getattr(self, f"_{message.get('event')}", lambda _: None)(message)
            return ended

    def running(self) -> list[_Job]:
        """Jobs that run now."""
        with self._lock:
            return list(self._jobs.values())

    def seconds_left(self) -> float | None:
        """By the pace of each stage, as they take turns; None until each has done something.

        What comes once, at the end, does not count.
        """
        with self._lock:
            if self.elapsed < ESTIMATE_AFTER_SECONDS:
                return None
            total = 0.0
            for rule, pace in self._paces.items():
                running = sum(job.done for job in self._jobs.values() if job.rule == rule)
                left = pace.seconds_left(running)
                if left is None:
                    return None
                total += left
            return total or None

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    def _run_info(self, message: Mapping[str, Any]) -> None:
        rules = {name: count for name, count in message["stats"].items() if name not in ("total", *TARGETS)}
        self.total = sum(rules.values())
        self._paces = {
            name: _Pace(count * self._weight(name)) for name, count in rules.items() if name not in ONCE
        }

    def _weight(self, rule: str) -> float:
        sizes = self._sizes.get(rule.partition("_")[0]) or [0]
        return 1.0 + sum(sizes) / len(sizes)

    def _job_info(self, message: Mapping[str, Any]) -> None:
        if message["rule"] not in TARGETS:
            self._jobs[message["jobid"]] = _Job(message, self._labels)
            if message["rule"] in self._paces:
                self._paces[message["rule"]].begin()

    def _job_finished(self, message: Mapping[str, Any]) -> _Job | None:
        job = self._ended_job(message)
        if job is not None:
            self.steps += 1
            self.failures += job.failed
        return job

    def _ended_job(self, message: Mapping[str, Any]) -> _Job | None:
        job = self._jobs.pop(message["jobid"], None)
        if job is not None and job.rule in self._paces:
            self._paces[job.rule].end(job.units)
        return job

    def _job_error(self, message: Mapping[str, Any]) -> None:
        job = self._ended_job(message)
        if job is not None:
            self.failed_jobs.append(FailedJob(job.name, _last_words(job.log), job.log))

    def _variants(self, message: Mapping[str, Any]) -> None:
        for job in self._jobs.values():
            if job.output == message["output"]:
                job.done, job.total, job.failed = message["done"], message["total"], message["failed"]
                job.time_limit, job.changed = message["time_limit"], time.time()
                job.limits = message.get("limits", "")


def _last_words(log: str) -> str:
    """Why a job failed: its last line that is an error, or else its last line."""
    lines = _lines(log)
    if lines is None:
        return "it wrote no log"
    errors = [line for line in lines if _ERROR.match(line)]
    return one_line((errors or lines or ["it ended without a line"])[-1].removeprefix("error: "))


def _lines(log: str) -> list[str] | None:
    """Those of a log that are not empty; None if there is none."""
    try:
        lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines()]
    except OSError:
        return None
    return [line for line in lines if line]


def _waiting(job: _Job) -> str:
    """`verify softmax bert_base cpu, 2 of 24 variants, the next one until 10:31:05 (time_limit 60 s, …)`."""
    parts = [job.name, *([job.state] if job.total else [])]
    if job.time_limit and job.done < job.total:
        limit = f"time_limit {job.time_limit:g} s, {ATTEMPTS} attempts"
        end = job.changed + ATTEMPTS * job.time_limit
        if time.time() < end:
            parts.append(f"the next one until {time.strftime('%H:%M:%S', time.localtime(end))} ({limit})")
        else:
            parts.append(f"longer than {limit}")
    elif job.limits and job.done < job.total:
        parts.append(job.limits)
    return ", ".join(parts)


class RunDisplay:
    """Listens to a run and shows it; a context manager around Snakemake's process."""

    def __init__(self, labels: JobLabels, *, quiet: bool) -> None:
        self.progress = RunProgress(labels)
        self._quiet = quiet
        self._errors = 0
        self._held: list[tuple[float, str]] = []
        """Lines with the time at which each is shown."""
        self._holding = threading.Lock()
        self._stopping = False
        self._say_stopping = 0.0
        """When; 0: not."""
        self._spoke, self._patience = time.monotonic(), SILENT_SECONDS
        self._log = _open_log()  # before a process is there that would have to be ended
        self._folder = tempfile.TemporaryDirectory(prefix="kernelmill-")
        self.address = f"{self._folder.name}/front"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._threads: list[threading.Thread] = []
        self._bars = contextlib.ExitStack()
        self._write = _to_stderr

    def follow(self, stream: IO[bytes]) -> None:
        """Show what arrives here and on the socket until both end; call it once the process is there."""
        if not self._quiet and sys.stderr.isatty():
            self._open_bars()
        for work in (lambda: self._read(stream), self._listen):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def say(self, line: str) -> None:
        """Show a line, above the bars if there are any."""
        self._spoke, self._patience = time.monotonic(), SILENT_SECONDS
        self._write(line)

    def stop(self) -> None:
        """The user ends the run: jobs that end without their output from now on have not failed."""
        with self._holding:
            self._stopping = True
            self._held.clear()
        self._say_stopping = time.monotonic() + STOP_SECONDS

    def close(self, code: int) -> list[FailedJob]:
        """Show the rest, and why Snakemake failed if it did; the jobs that failed."""
        self._threads[0].join(END_SECONDS)  # a process that jobs left behind may hold the pipe
        send(self.address, {"event": "end"})
        self._threads[1].join()
        self._show_held(everything=True)
        self._bars.close()
        self._write = _to_stderr
        self._socket.close()
        self._folder.cleanup()
        if self._stopping:
            return []
        for line in dict.fromkeys(f"error: {job}" for job in self.progress.failed_jobs):
            self.say(line)
        if code not in (0, 130) and not self.progress.failed_jobs and not self._errors:
            for line in _tail(RAW_LOG):
                self.say(line)
            self.say(f"error: Snakemake ended with exit code {code} (log: {RAW_LOG})")
        return self.progress.failed_jobs

    def _open_bars(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, highlight=False)
        live = Live(
            get_renderable=lambda: _bars(self.progress),
            console=console,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bars.enter_context(live)
        self._write = lambda line: console.print(line, markup=False, soft_wrap=True)

    def _listen(self) -> None:
        self._socket.settimeout(POLL_SECONDS)
        plain = not self._quiet and not sys.stderr.isatty()
        while True:
            self._show_held()
            if self._say_stopping and time.monotonic() > self._say_stopping:
                self._say_stopping = 0.0
                self._tell_what_ends()
            elif plain and not self._stopping and time.monotonic() - self._spoke > self._patience:
                self._tell_what_runs()
            try:
                message = json.loads(self._socket.recv(1 << 20))
            except (ValueError, TimeoutError):
                continue
            if message.get("event") == "end":
                return
            ended = self.progress.take(message)
            if ended is not None and not self._quiet:
                self._show_ended(ended)

    def _tell_what_runs(self) -> None:
        """What a run without news waits for, and until when."""
        patience = 2 * self._patience
        for job in self.progress.running():
            self.say(f"waiting for {_waiting(job)}")
        self._spoke, self._patience = time.monotonic(), patience

    def _tell_what_ends(self) -> None:
        names = ", ".join(dict.fromkeys(job.name for job in self.progress.running()))
        self.say(f"stopping{f' in {names}' if names else ''}: finished results are kept")

    def _hold(self, line: str) -> None:
        """Show a line a little later, unless the user stops the run until then."""
        with self._holding:
            if not self._stopping:
                self._held.append((time.monotonic() + HOLD_SECONDS, line))

    def _show_held(self, *, everything: bool = False) -> None:
        now = time.monotonic()
        with self._holding:
            due = [line for at, line in self._held if everything or at <= now]
            del self._held[: len(due)]
        for line in due:
            self.say(line)

    def _show_ended(self, job: _Job) -> None:
        """What its log says, under the name that the tables have; the number counts jobs, not lines."""
        steps, total = self.progress.steps, self.progress.total
        number = f"[{steps:>{len(str(total))}}/{total}] "
        for line in filter(_STAGE_LINE.match, _lines(job.log) or [f"{job.stage} : done"]):
            stage, _, rest = line.partition(" ")
            own = f"{job.name}: {rest.partition(': ')[2]}" if stage == job.stage else line
            self.say(f"{number}{own}")
            number = " " * len(number)

    def _read(self, stream: IO[bytes]) -> None:
        with self._log as log:
            for raw in stream:
                log.write(raw)
                log.flush()
                self._show(raw.decode(errors="replace").rstrip())

    def _show(self, line: str) -> None:
        if self._stopping and not _STAGE_LINE.match(line):
            return
        refused = _REFUSED.match(line)
        if (refused or line.startswith("error: ")) and not self.progress.running():
            self._errors += 1
            self._hold(f"error: snakemake: {refused[1]} (snakemake --help)" if refused else line)
        elif self._quiet:
            return
        elif _STAGE_LINE.match(line):
            if not self.progress.total:  # otherwise it is shown when its job has ended
                self._show_held(everything=True)
                self.say(line)
        elif not self.progress.running() and not _NOISE.match(line):
            self._hold(line)


def _open_log() -> IO[bytes]:
    try:
        RAW_LOG.parent.mkdir(parents=True, exist_ok=True)
        return RAW_LOG.open("wb")
    except OSError as error:
        raise unwritable(RAW_LOG, error) from error


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _tail(path: Path) -> Iterator[str]:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    yield from lines[-TAIL:]


def _bars(progress: RunProgress) -> "RenderableType":
    """One line for the run and one for each job, cut to the terminal's width."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(no_wrap=True, justify="left")
    running = progress.running()
    for job in running[:JOBS_SHOWN]:
        bar = ProgressBar(total=job.total or 1, completed=job.done, width=_BAR_WIDTH) if job.total else ""
        grid.add_row(Text(job.name), bar, Text(job.state))
    if len(running) > JOBS_SHOWN:
        grid.add_row(Text(f"… and {len(running) - JOBS_SHOWN} more jobs"), "", "")
    title = Text(f"step {progress.steps} of {progress.total}" if progress.total else "planning", style="bold")
    bar = ProgressBar(total=progress.total or 1, completed=progress.steps, width=_BAR_WIDTH)
    grid.add_row(title, bar, Text(_times(progress, running)))
    return grid


def _times(progress: RunProgress, running: list[_Job]) -> str:
    left = progress.seconds_left()
    failed = progress.failures + sum(job.failed for job in running)
    parts = [_clock(progress.elapsed)]
    parts += [f"about {_clock(left)} left"] if left is not None else []
    parts += [f"{failed} failed"] if failed else []
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
