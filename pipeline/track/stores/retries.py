"""Which errors of a tracking store pass by themselves, and how long to wait: an action in, its value out."""

import random
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from pipeline.track.stores.store_locks import LeaseLost

T = TypeVar("T")

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds between attempts that came no further, the last one again and again."""
GIVEN_UP_SECONDS = 60.0
"""Without progress; an attempt that waits for a lock counts. A server that restarts is back by then."""

_PASSING = re.compile(
    r"database is locked|could not serialize|deadlock|max retries exceeded|connection|timed out|timeout"
    r"|too many \d+ error|failed with error code (5\d\d|429)|starting up|shutting down|in recovery mode"
    r"|temporarily unavailable",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"no such (table|column)|readonly database|disk is full|unable to open database|disk I/O error"
    r"|authentication failed|malformed",
    re.IGNORECASE,
)
_PASSING_CODES = frozenset({"TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED", "DEADLINE_EXCEEDED"})


def is_passing(error: BaseException) -> bool:
    """Whether the same call may succeed a little later."""
    from mlflow.exceptions import MlflowException, RestException
    from sqlalchemy.exc import DBAPIError, IntegrityError

    # IntegrityError: another writer was first with the same; the next attempt finds it.
    if isinstance(error, LeaseLost | ConnectionError | TimeoutError | IntegrityError):
        return True
    text = str(error)
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (_is_passing_text(text))
    if not isinstance(error, MlflowException) or _LASTING.search(text):
        return False
    if isinstance(error, RestException) and error.error_code == "INTERNAL_ERROR":  # HTTP 500
        return True
    return error.error_code in _PASSING_CODES or _is_passing_text(text)


def _is_passing_text(text: str) -> bool:
    return bool(_PASSING.search(text)) and not _LASTING.search(text)


def patiently(action: Callable[[], T], progress: Callable[[], int]) -> T:
    """Do it; where it ends with an error that passes, do it again, from its beginning.

    `progress` says how far the action has come: attempts that came further are not counted, so that a store
    which fails now and then is written to its end, and one that is gone is given up after a minute.
    """
    reached, attempt, since = progress(), 0, time.monotonic()
    while True:
        try:
            return action()
        except Exception as error:
            if progress() > reached:
                reached, attempt, since = progress(), 0, time.monotonic()
            if time.monotonic() - since >= GIVEN_UP_SECONDS or not is_passing(error):
                raise
            wait = WAITS[min(attempt, len(WAITS) - 1)] * random.uniform(
                0.75, 1.25
            )  # writers that failed together part
            reason = " ".join(str(error).split())[:120]
            print(f"track: {reason}; again in {wait:.0f} s", file=sys.stderr)
            time.sleep(wait)
            attempt += 1
