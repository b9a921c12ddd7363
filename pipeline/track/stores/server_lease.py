"""A lock for a store that offers none, a tracking server: a registered model that exists while it is held.

MLflow's registry refuses a second model of a name, which decides who was first. The holder changes a tag
every few seconds. Whoever waits and sees no change for 45 s by his own clock takes the lock away: he renames
it, which again only one can do, because the new name is made from the holder's token.
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.records.errors import TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient

NAME = "kernelmill.lock"
HOLDER, BEAT = "holder", "beat"
DESCRIPTION = "Held by whoever logs results now, and gone afterwards: not a model."
BEAT_SECONDS = 5.0
STALE_SECONDS = 45.0  # nine beats
POLL_SECONDS = 0.5
LOCK_SECONDS = 3600.0  # a holder that is gone holds nothing: this is how long live ones may take together
EXISTS, ABSENT = "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"
CONFLICT = "BAD_REQUEST"  # a row that another one renamed between being read and being written


class LeaseLost(TrackingError):
    """It was taken away, because it was not renewed in time; whoever ingests again finds what was logged."""


class Lease:
    """The lock, held by this process."""

    def __init__(self, client: "MlflowClient", token: str) -> None:
        self._client = client
        self._token = token
        self._ended = threading.Event()
        self._lost = False
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Go on only while it is held.

        Raises
        ------
        LeaseLost
            Another process holds it now.
        """
        if self._lost:
            raise LeaseLost("the right to log was taken over by another process: this one was not heard of")

    def release(self) -> None:
        """Let the next one have it."""
        self._ended.set()
        self._thread.join()
        if not self._lost and _holder(self._client) == self._token:
            self._client.delete_registered_model(NAME)

    def _renew(self) -> None:
        from mlflow.exceptions import MlflowException

        beat = 0
        while not self._ended.wait(BEAT_SECONDS):
            beat += 1
            # A server that does not answer now may do so at the next beat.
            with contextlib.suppress(MlflowException):
                if _holder(self._client) != self._token:
                    self._lost = True
                    return
                self._client.set_registered_model_tag(NAME, BEAT, str(beat))


@contextlib.contextmanager
def lease(client: "MlflowClient") -> Iterator[Lease]:
    """Wait for it and hold it.

    Raises
    ------
    TrackingError
        Others hold it for an hour.
    """
    token = uuid.uuid4().hex
    stale = _acquire(client, token)
    held = Lease(client, token)
    try:
        yield held
    finally:
        held.release()
        for name in stale:
            _forget(client, name)


def _acquire(client: "MlflowClient", token: str) -> list[str]:
    """Wait until it is ours; the names under which locks of dead holders were put away."""
    started = changed = time.monotonic()
    seen: tuple[str | None, ...] = ()
    stale: list[str] = []
    while not _create(client, token):
        now = time.monotonic()
        state = _state(client)
        if state != seen:
            seen, changed = state, now
        elif state[0] is not None and now - changed > STALE_SECONDS:
            stale += _put_away(client, state[0])
        if now - started > LOCK_SECONDS:
            raise TrackingError(
                f"the registered model {NAME}: still held by others after {LOCK_SECONDS:.0f} s "
                "(where nobody logs, delete it)"
            )
        time.sleep(POLL_SECONDS)
    return stale


def _create(client: "MlflowClient", token: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(NAME, tags={HOLDER: token, BEAT: "0"}, description=DESCRIPTION)
    except MlflowException as error:
        if error.error_code != EXISTS:
            raise
        # Made by ourselves, where the answer to the first attempt was lost on its way.
        return _holder(client) == token
    return True


def _state(client: "MlflowClient") -> tuple[str | None, ...]:
    """What its holder changes; all None where it is free."""
    from mlflow.exceptions import MlflowException

    try:
        tags = client.get_registered_model(NAME).tags
    except MlflowException as error:
        if error.error_code != ABSENT:
            raise
        return None, None
    return tags.get(HOLDER, ""), tags.get(BEAT)


def _holder(client: "MlflowClient") -> str | None:
    return _state(client)[0]


def _put_away(client: "MlflowClient", holder: str) -> list[str]:
    """Free the lock of a dead holder; only one of those who wait can."""
    from mlflow.exceptions import MlflowException

    name = f"{NAME}.{holder or 'unknown'}"
    try:
        client.rename_registered_model(NAME, name)
    except MlflowException as error:
        if error.error_code not in (EXISTS, ABSENT, CONFLICT):
            raise
        return []
    return [name]


def _forget(client: "MlflowClient", name: str) -> None:
    from mlflow.exceptions import MlflowException

    with contextlib.suppress(MlflowException):
        client.delete_registered_model(name)
