"""What a sweep says to Hydra when something went wrong: Hydra prints the text of these, and no traceback."""

from hydra.errors import CompactHydraException


class SweepStopped(CompactHydraException):
    """The sweep cannot go on: an override is wrong, or jobs failed. One line, with `error:` before it."""


class JobFailed(CompactHydraException):
    """What a sweeper gets that asks a failed job for its return value. One line."""
