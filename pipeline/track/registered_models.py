"""Registers the winners: a registered model per kernel and workload, an alias per hardware target.

A winner that passed only a preset of verify for editing loops is not registered.
"""

import re
from collections.abc import Mapping, Sequence

from pipeline.records.record import Record
from pipeline.records.results.aggregated import Winner
from pipeline.records.results.tracked import ChampionModel
from pipeline.track import mlflow_ui
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.run_writing import WINNER, tag_run
from pipeline.track.stores.mlflow_database import AliasedVersion, known_champions
from pipeline.track.stores.mlflow_store import MlflowStore

Known = Mapping[tuple[str, str], AliasedVersion]
RESERVED = re.compile(r"latest|v\d+", re.IGNORECASE)


class WinningRun(Record, frozen=True, kw_only=True):
    """A winner and the run that holds it."""

    winner: Winner
    run: str
    target: str | None = None
    """What the alias names, where that is not the hardware target: the `cpu` of another machine."""


def register(store: MlflowStore, found: Sequence[WinningRun]) -> tuple[ChampionModel, ...]:
    """Give each winner's run a version and the alias of its target; what is so already stays."""
    wanted = [entry for entry in found if not entry.winner.editing_only]
    known = known_champions(store, [model_name(entry.winner) for entry in wanted])
    return tuple(_register(store, entry, known) for entry in wanted)


def model_name(winner: Winner) -> str:
    """Name of the registered model."""
    cell = winner.cell
    return re.sub(r"[/:]", "_", f"{cell.kernel}.{cell.workload}")


def alias(hardware: str) -> str:
    """The target as an alias."""
    safe = re.sub(r"[^\w\-]", "_", hardware)
    return f"target-{safe}" if RESERVED.fullmatch(safe) else safe


def _register(store: MlflowStore, found: WinningRun, known: Known) -> ChampionModel:
    name, target = model_name(found.winner), alias(found.target or found.winner.cell.hardware)
    champion = known.get((name, target))
    if champion is not None and champion.run == found.run:
        version = champion.version
    else:
        version = _crown(store, found, name, target)
    return ChampionModel(
        model=name,
        version=version,
        alias=target,
        run=found.run,
        link=mlflow_ui.model(mlflow_ui.base(store.uri), name, version),
    )


def _crown(store: MlflowStore, found: WinningRun, name: str, target: str) -> str:
    """The version that the alias stands for from now on."""
    versions = {str(key): str(value) for key, value in _aliases(store, name).items()}
    current = store.client.get_model_version(name, versions[target]) if target in versions else None
    if current is None or current.run_id != found.run:
        version = _version(store, name, found)
        store.client.set_registered_model_alias(name, target, version)
        if current is not None:
            _dethrone(store, str(current.run_id))
        tag_run(store, found.run, {WINNER: "true"})
        return version
    return str(current.version)


def _aliases(store: MlflowStore, name: str) -> dict[str, str]:
    """Aliases of the model, which is made where it does not exist."""
    from mlflow.exceptions import MlflowException

    found = store.client.search_registered_models(f"name = '{name}'", max_results=1)
    if found:
        return dict(found[0].aliases)
    try:
        store.client.create_registered_model(
            name, description="The fastest verified variant per hardware target: one alias each."
        )
    except MlflowException as error:
        # Another machine was first; anything else is a failure.
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    return {}


def _version(store: MlflowStore, name: str, found: WinningRun) -> str:
    """The version that holds this run, made where there is none."""
    for version in store.client.search_model_versions(f"run_id = '{found.run}'"):
        if version.name == name:
            return str(version.version)
    winner = found.winner
    tags = {
        "hardware": winner.cell.hardware,
        "implementation": winner.implementation,
        "variant": winner.variant,
        "tunables": mlflow_names.tag(" ".join(f"{name}={value}" for name, value in winner.tunables.items())),
        "median_us": f"{winner.seconds.value * 1e6:.6g}",
        **({"recorded": winner.recorded} if winner.recorded else {}),
        **({"verify_preset": winner.preset} if winner.preset else {}),
        **{f"speedup_{entry.baseline}": f"{entry.speedup.value:.4g}" for entry in winner.compared},
    }
    made = store.client.create_model_version(
        name, source=f"runs:/{found.run}/kernel", run_id=found.run, tags=tags
    )
    return str(made.version)


def _dethrone(store: MlflowStore, run: str) -> None:
    """Take the tag from the run that was the winner before; a superseded one takes no more tags."""
    before = store.client.get_run(run)
    if before.info.lifecycle_stage == "active" and WINNER in before.data.tags:
        store.client.delete_tag(run, WINNER)
