"""The one module that touches Snakemake's internals, each behind a guard: without them, runs are only slower.

Public ways do not exist: `--max-jobs-per-timespan` can change the limit that `start_at_once` removes, but not
remove it, and `--quiet rules` would hide failures as well as the lines that `only_progress` hides.
"""

import gc
import importlib.metadata
import logging
from typing import Any

TRIED = ("9.",)
"""Versions of Snakemake whose internals were looked at."""
BY_DEFAULT = (100, 1)
"""Jobs within seconds, by default; a limit that the user asks for stays."""
_HANDLER = "DefaultStreamHandler"  # Snakemake's name of its terminal output
_EVENTS = ("job_info", "job_finished", "resources_info", "group_info")
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


def only_progress() -> None:
    """Reduce the terminal output of a Snakemake that runs in this process to progress and failures.

    The log file under .snakemake/log keeps everything. A Snakemake that names its handler differently prints
    everything.
    """
    names = [name for name in logging.root.manager.loggerDict if name.startswith("snakemake")]
    for handler in (handler for name in names for handler in logging.getLogger(name).handlers):
        if handler.name == _HANDLER:
            handler.addFilter(_Filter())
