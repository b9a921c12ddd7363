"""What Snakemake's own process need not wait for. In: its workflow. Out: the same, its scheduler changed.

Snakemake lets at most 100 jobs start within a second, for the sake of a cluster's queue. To do so its
scheduler looks again a second after it looked, as long as jobs wait, and once more for every job that ended
meanwhile: as many looks a second as jobs have ended, while something is measured. And its process stays until
the last of these looks is over, which is a second of every run in which nothing happens.
"""

import gc
from typing import Any

BY_DEFAULT = (100, 1)
"""Jobs within seconds; what somebody asks for with --max-jobs-per-timespan stays."""


def start_at_once(workflow: Any) -> None:
    """Take Snakemake's own limit away; called when its scheduler is there and has not begun."""
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if workflow.local_exec and limit is not None and (limit.max_jobs, limit.timespan) == BY_DEFAULT:
        workflow.scheduler.job_rate_limiter = None


def ends_soon() -> None:
    """Spare this process the search for garbage in what is there now: a third of a second for 400 jobs.

    Python searches all of it while jobs are made, and twice when it ends.
    """
    gc.freeze()
