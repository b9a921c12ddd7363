"""What passes by itself is tried again; what does not is told at once."""

import pytest
from mlflow.exceptions import MlflowException, RestException
from sqlalchemy.exc import OperationalError

from pipeline.track.stores.retries import GIVEN_UP_SECONDS, WAITS, is_passing, patiently
from pipeline.track.stores.store_locks import LeaseLost

PASSING = [
    MlflowException("(sqlite3.OperationalError) database is locked", error_code=4),
    MlflowException("(psycopg2.errors.SerializationFailure) could not serialize access due to an update"),
    MlflowException("(psycopg2.errors.DeadlockDetected) deadlock detected"),
    MlflowException(
        "API request to http://h/api failed with exception HTTPConnectionPool(host='h', port=1): Max retries "
        "exceeded with url: /api (Caused by NewConnectionError('Connection refused'))"
    ),
    MlflowException("API request to endpoint /api/2.0/x failed with error code 503 != 200"),
    MlflowException("busy", error_code=7),
    RestException({"error_code": "INTERNAL_ERROR", "message": "oops"}),
    OperationalError("SELECT 1", {}, Exception("server closed the connection unexpectedly")),
    OperationalError("SELECT 1", {}, Exception("FATAL:  the database system is starting up")),
    ConnectionResetError("reset"),
    LeaseLost("lost"),
]
LASTING = [
    MlflowException("Invalid metric name", error_code=1000),
    MlflowException("(sqlite3.OperationalError) attempt to write a readonly database", error_code=4),
    MlflowException("(sqlite3.OperationalError) database or disk is full", error_code=4),
    RestException({"error_code": "PERMISSION_DENIED", "message": "no"}),
    OperationalError(
        "SELECT 1", {}, Exception("connection to server failed: password authentication failed")
    ),
    PermissionError(13, "Permission denied"),
    KeyError("a bug"),
]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been waited; the clock goes by it."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    monkeypatch.setattr("time.monotonic", lambda: sum(found))
    return found


@pytest.mark.parametrize("error", PASSING, ids=lambda error: str(error)[:40])
def test_what_passes(error: Exception) -> None:
    """Locks, conflicts, restarts."""
    assert is_passing(error)


@pytest.mark.parametrize("error", LASTING, ids=lambda error: str(error)[:40])
def test_what_does_not(error: Exception) -> None:
    """Waiting would only hide it."""
    assert not is_passing(error)


def test_it_goes_on_when_the_store_is_back(slept: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """Each wait is told in a line."""
    attempts = iter([ConnectionError("one"), ConnectionError("two"), None])

    def action() -> str:
        error = next(attempts)
        if error is not None:
            raise error
        return "done"

    assert patiently(action, lambda: 0) == "done"
    assert len(slept) == 2
    assert [line.split(";")[0] for line in capsys.readouterr().err.splitlines()] == [
        "track: one",
        "track: two",
    ]


def test_a_store_that_is_gone_is_given_up(slept: list[float]) -> None:
    """After about a minute."""

    def action() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        patiently(action, lambda: 0)
    assert len(slept) >= len(WAITS)
    assert GIVEN_UP_SECONDS <= sum(slept) < 2 * GIVEN_UP_SECONDS


def test_attempts_that_wait_count(slept: list[float]) -> None:
    """A database that stays locked lets every attempt wait for twenty seconds."""

    def action() -> None:
        slept.append(20.0)
        raise ConnectionError("database is locked")

    with pytest.raises(ConnectionError):
        patiently(action, lambda: 0)
    assert slept.count(20.0) == 3


def test_attempts_that_come_further_do_not_count(slept: list[float]) -> None:
    """A store that fails now and then is written to its end."""
    done: list[int] = []

    def action() -> int:
        done.append(1)
        if len(done) < 5 * len(WAITS):
            raise ConnectionError("now and then")
        return len(done)

    assert patiently(action, lambda: len(done)) == 5 * len(WAITS)
    assert max(slept) < 2


def test_a_bug_is_raised_at_once(slept: list[float]) -> None:
    """It keeps its traceback."""

    def action() -> None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        patiently(action, lambda: 0)
    assert slept == []
