"""Winners as registered models."""

import re
from pathlib import Path

import msgspec
import pytest

from pipeline.records.results.aggregated import Winner
from pipeline.track import registered_models
from pipeline.track.ingest import ingest
from pipeline.track.registered_models import WinningRun
from pipeline.track.stores.mlflow_store import MlflowStore
from tests.track.small_run import measured, write_source

MODEL = "softmax.bert_base"


@pytest.fixture
def found(store: MlflowStore) -> WinningRun:
    """The winner of a small run, which is logged."""
    assert store.artifacts is not None
    source = write_source(Path(store.artifacts).parents[1], [measured()])
    done = ingest(store, source, None)
    winner = source.summary.winners[0]
    assert isinstance(winner, Winner)
    return WinningRun(winner=winner, run=done.champions[0].run)


def _alias(store: MlflowStore, alias: str = "cpu") -> tuple[str, str]:
    version = store.client.get_model_version_by_alias(MODEL, alias)
    return str(version.version), version.run_id


def test_the_winner_has_the_alias_of_its_target(store: MlflowStore, found: WinningRun) -> None:
    """Its version points to the run and says how fast it is."""
    assert _alias(store) == ("1", found.run)
    version = store.client.get_model_version(MODEL, "1")
    assert version.tags["variant"] == found.winner.variant
    assert float(version.tags["speedup_eager"]) == pytest.approx(
        found.winner.compared[0].speedup.value, rel=1e-3
    )
    assert store.client.get_run(found.run).data.tags["winner"] == "true"


def test_what_passed_only_the_preset_for_editing_is_not_registered(
    store: MlflowStore, found: WinningRun
) -> None:
    """Its run stays without a version; one that passed more has the preset as a tag."""
    runs = store.client.search_runs([store.client.get_run(found.run).info.experiment_id])
    other = next(run.info.run_id for run in runs if run.info.run_id != found.run)
    fast = msgspec.structs.replace(found.winner, preset="fast", editing_only=True)
    assert registered_models.register(store, [msgspec.structs.replace(found, winner=fast, run=other)]) == ()
    assert _alias(store) == ("1", found.run)
    strict = msgspec.structs.replace(found.winner, preset="paranoid")
    better = msgspec.structs.replace(found, winner=strict, run=other)
    (champion,) = registered_models.register(store, [better])
    assert store.client.get_model_version(MODEL, champion.version).tags["verify_preset"] == "paranoid"


def test_the_same_winner_again_is_the_same_version(store: MlflowStore, found: WinningRun) -> None:
    """Nothing is registered twice."""
    champion = registered_models.register(store, [found])[0]
    assert champion.version == "1"
    assert len(store.client.search_model_versions(f"name = '{MODEL}'")) == 1


def test_a_new_winner_takes_the_alias(store: MlflowStore, found: WinningRun) -> None:
    """The old version stays, without alias and without the tag; when it wins again, it is the one it was."""
    runs = store.client.search_runs([store.client.get_run(found.run).info.experiment_id])
    other = next(run.info.run_id for run in runs if run.info.run_id != found.run)
    registered_models.register(store, [msgspec.structs.replace(found, run=other)])
    assert _alias(store) == ("2", other)
    assert "winner" not in store.client.get_run(found.run).data.tags
    registered_models.register(store, [found])
    assert _alias(store) == ("1", found.run)
    assert "winner" not in store.client.get_run(other).data.tags


def test_targets_share_a_model(store: MlflowStore, found: WinningRun) -> None:
    """Each has its own alias."""
    cell = msgspec.structs.replace(found.winner.cell, hardware="h200")
    registered_models.register(
        store, [msgspec.structs.replace(found, winner=msgspec.structs.replace(found.winner, cell=cell))]
    )
    assert _alias(store, "cpu") == _alias(store, "h200") == ("1", found.run)


def test_another_machine_does_not_take_the_name_of_this_one(store: MlflowStore, found: WinningRun) -> None:
    """The winner on the `cpu` of another machine has an alias of its own."""
    (champion,) = registered_models.register(
        store, [msgspec.structs.replace(found, target="cpu-Other Machine")]
    )
    assert champion.alias == "cpu-Other_Machine"
    assert _alias(store, "cpu-Other_Machine") == _alias(store, "cpu")


@pytest.mark.parametrize("hardware", ["latest", "v100", "V2", "my gpu/2", "h200"])
def test_every_target_is_an_alias_that_mlflow_takes(hardware: str) -> None:
    """v100 would be read as version 100."""
    from mlflow.utils.validation import _validate_model_alias_name

    _validate_model_alias_name(registered_models.alias(hardware))
    assert re.fullmatch(r"[\w\-]+", registered_models.alias(hardware))
