"""The one module that touches Snakemake's internals, each behind a guard: without them, runs are only slower.

Public ways do not exist: `--max-jobs-per-timespan` can change the limit that `start_at_once` removes, but not
remove it; nothing makes Snakemake end the jobs that `stop_at_once` ends; and `--quiet rules` would hide
failures as well as the lines that `only_progress` hides.
"""

import contextlib
import gc
import importlib.metadata
import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, NoReturn

from pipeline.records.environment import front_address
from pipeline.sandbox.processes import descendants
from pipeline.sandbox.progress_messages import send

TRIED = ("9.",)
"""Versions of Snakemake whose internals were looked at."""
BY_DEFAULT = (100, 1)
"""Jobs within seconds, by default; a limit that the user asks for stays."""
STOPPING_SECONDS = 0.2
"""From one look for jobs to the next while a run stops: one that was being started gets no signal."""
STOP_AT_MOST_SECONDS = 30
"""Then Snakemake is killed, and its jobs end with it: whatever it waits for, the checkout's lock is free."""
_HANDLER = "DefaultStreamHandler"  # Snakemake's name of its terminal output
_EVENTS = ("job_info", "job_finished", "resources_info", "group_info")
NOTHING_TO_DO = "Nothing to be done"
_MESSAGES = ("Select jobs to execute", "Execute ", "Using shell", "Conda environments", "Elapsed time")


def start_at_once(workflow: Any) -> None:
    """Remove Snakemake's default limit of 100 job starts per second; call it from `onstart`.

    The limit protects a cluster's queue. Its price on a single machine: the scheduler wakes up a second after
    each job that ended, and the process stays until the last of these timers has fired, so every run that has
    nothing to do takes a second longer. Does nothing under versions of Snakemake that were not tried.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if not workflow.local_exec or limit is None or (limit.max_jobs, limit.timespan) != BY_DEFAULT:
        return
    if is_tried() and hasattr(workflow.scheduler, "job_rate_limiter"):
        workflow.scheduler.job_rate_limiter = None


def stop_at_once() -> None:
    """End the running jobs at SIGINT and SIGTERM instead of waiting for them; call it from `onstart`.

    After SIGTERM Snakemake starts no further job, and after SIGINT it cancels those of a cluster, but it
    waits for those of this machine, for minutes: it relies on a terminal, which sends Ctrl-C to its jobs as
    well. With this, either signal stops everything, once: a second one would disturb the cancelling. Does
    nothing under versions of Snakemake that were not tried.
    """
    if not is_tried():
        return
    from snakemake.shell import shell

    if not hasattr(shell, "_processes"):
        return
    stopping = threading.Event()

    def end_jobs() -> NoReturn:
        stopping.wait()
        while True:
            for process in list(shell._processes.values()):
                _terminate_below(process.pid)
            time.sleep(STOPPING_SECONDS)

    def stop(_number: int, _frame: FrameType | None) -> None:
        if not stopping.is_set():
            stopping.set()
            signal.alarm(STOP_AT_MOST_SECONDS)
            raise KeyboardInterrupt

    threading.Thread(target=end_jobs, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for a command that a script started with &
            signal.signal(number, stop)


def _terminate_below(job: int) -> None:
    """What the shell of a job runs, with which it ends; only in this process group, as a terminal does it: a
    warm worker that the job started serves other jobs, too."""
    for process in descendants.below(job):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process) == os.getpgrp():
                os.kill(process, signal.SIGTERM)


def is_tried() -> bool:
    """Whether the internals of the installed Snakemake are known."""
    return importlib.metadata.version("snakemake").startswith(TRIED)


def ends_soon() -> None:
    """Exempt all present objects from garbage collection: a third of a second for 400 jobs.

    Python searches them while jobs are made, and twice when the process ends.
    """
    gc.freeze()


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown."""
        return str(getattr(record, "event", "")) not in _EVENTS and not str(record.msg).startswith(_MESSAGES)


class _Forward(logging.Handler):
    """Sends events to the command that shows the run."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def emit(self, record: logging.LogRecord) -> None:
        """One record; what is of no interest there is not sent."""
        found = _message(record)
        if found is not None:
            send(self._address, {"event": str(getattr(record, "event", "")), **found})


def _message(record: logging.LogRecord) -> dict[str, Any] | None:
    given = record.__dict__
    match str(given.get("event", "")):
        case "run_info":
            return {"stats": dict(given["stats"])}
        case "job_info" | "job_error":
            paths = {name: [str(path) for path in given[name] or ()] for name in ("output", "log")}
            return {"jobid": given["jobid"], "rule": given["rule_name"], **paths}
        case "job_finished":
            return {"jobid": given["job_id"]}
        case _:
            return None


def _is_for_the_front(record: logging.LogRecord) -> bool:
    """Whether text of Snakemake is worth reading where its events are shown: what has no event of its own."""
    event = str(getattr(record, "event", "") or "")
    known = str(record.msg).startswith(NOTHING_TO_DO) or record.levelno >= logging.ERROR
    return known and event not in ("job_error", "group_error")


def only_progress() -> None:
    """Reduce the terminal output of a Snakemake that runs in this process to progress and failures.

    If a command shows the run, it gets the events, and the text has errors alone. The log file under
    .snakemake/log keeps everything. A Snakemake that names its handler differently prints everything.
    """
    address = front_address()
    names = [name for name in logging.root.manager.loggerDict if name.startswith("snakemake")]
    for logger in (logging.getLogger(name) for name in names):
        for handler in [each for each in logger.handlers if each.name == _HANDLER]:
            handler.addFilter(_Filter() if address is None else _is_for_the_front)
            if address is not None:
                logger.addHandler(_Forward(address))
