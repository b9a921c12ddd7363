"""A lock made of what a tracking server offers."""

import threading
import time
from collections.abc import Sequence

import pytest

from pipeline.records.errors import TrackingError
from pipeline.track.stores.mlflow_store import MlflowStore
from pipeline.track.stores.store_locks import BEAT, HOLDER, NAME, LeaseLost, lease

SHORT = {"BEAT_SECONDS": 0.1, "STALE_SECONDS": 1.5, "POLL_SECONDS": 0.05}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in SHORT.items():
        monkeypatch.setattr(f"pipeline.track.stores.store_locks.{name}", seconds)


def _locks(store: MlflowStore) -> list[str]:
    found = store.client.search_registered_models()
    return [model.name for model in found if model.name.startswith(NAME)]


def test_it_is_gone_afterwards(store: MlflowStore) -> None:
    """Nothing of it stays among the models."""
    with lease(store.client) as held:
        assert _locks(store) == [NAME]
        held.check()
    assert _locks(store) == []


@pytest.mark.slow
def test_one_holds_it_at_a_time(store: MlflowStore) -> None:
    """Longer than it would take to be thought dead: whoever lives keeps it."""
    assert _inside_at_once(store, (2.0, 0.1, 0.1, 0.1)) == [1, 1, 1, 1]
    assert _locks(store) == []


@pytest.mark.slow
def test_that_of_a_dead_holder_is_taken_by_one(store: MlflowStore) -> None:
    """Two wait for it; nothing of the dead one's stays."""
    store.client.create_registered_model(NAME, tags={HOLDER: "dead", BEAT: "7"})
    assert _inside_at_once(store, (0.3, 0.3)) == [1, 1]
    assert _locks(store) == []


def _inside_at_once(store: MlflowStore, seconds: Sequence[float]) -> list[int]:
    """Threads that each hold the lease for so long: how many were inside when each came in."""
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with lease(store.client):
            inside.append(number)
            most.append(len(inside))
            time.sleep(seconds[number])
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(seconds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most


def test_one_that_was_taken_away_is_noticed(store: MlflowStore) -> None:
    """And what the other one holds now is left alone."""
    with pytest.raises(LeaseLost, match="taken over by another process"), lease(store.client) as held:
        store.client.set_registered_model_tag(NAME, HOLDER, "another")
        time.sleep(0.5)
        held.check()
    assert _locks(store) == [NAME]


def test_one_that_is_never_free_is_told(store: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    monkeypatch.setattr("pipeline.track.stores.store_locks.LOCK_SECONDS", 0.3)
    with (
        lease(store.client),
        pytest.raises(TrackingError, match=r"^the registered model kernelmill\.lock: still held by others"),
        lease(store.client),
    ):
        pass
