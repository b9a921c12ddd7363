"""Keep Snakemake's terminal output to what a user wants to know: how much, how far, what failed.

`--quiet rules` would hide failures as well. The log file under .snakemake/log keeps everything.
"""

import logging

_HANDLER = "DefaultStreamHandler"  # what Snakemake calls its terminal output
_EVENTS = ("job_info", "job_finished", "resources_info", "group_info")
_MESSAGES = ("Select jobs to execute", "Execute ", "Using shell", "Conda environments", "Elapsed time")


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown."""
        return str(getattr(record, "event", "")) not in _EVENTS and not str(record.msg).startswith(_MESSAGES)


def only_progress() -> None:
    """Filter the terminal output of a Snakemake that runs in this process; elsewhere nothing happens."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("snakemake")]
    for handler in (handler for name in names for handler in logging.getLogger(name).handlers):
        if handler.name == _HANDLER:
            handler.addFilter(_Filter())
