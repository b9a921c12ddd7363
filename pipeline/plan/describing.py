"""What the report says of a plan: the experiments with the cells that were chosen in, one text out.

An experiment's description is its author's word on its own grids. Where something else was chosen it would be
false, so it is followed by what was left of it, or gives way to what was put in its place.
"""

from collections.abc import Iterable, Sequence

from pipeline.plan.config.groups import AXES
from pipeline.plan.grid_cells import Cell, cells
from pipeline.plan.plan_inputs import Material
from pipeline.records.experiment import Experiment


def described(materials: Sequence[Material]) -> str:
    """A sentence or two for each experiment; equal cells have the same text, however they were asked for."""
    experiments: dict[str, Experiment] = {}
    chosen: dict[str, list[Cell]] = {}
    for material in materials:
        experiment = material.settings.experiment
        experiments[experiment.name] = experiment
        chosen.setdefault(experiment.name, []).extend(cell for job in material.jobs for cell in job.cells)
    return " ".join(_described(experiment, chosen[name]) for name, experiment in experiments.items())


def _described(experiment: Experiment, chosen: Iterable[Cell]) -> str:
    own, found = cells(experiment, {}), set(chosen)
    if found == set(own):
        return experiment.description
    if not found <= set(own):
        named = _names(sorted(found, key=_words), AXES)
        return f"Chosen in place of what the experiment {experiment.name} selects: {named}."
    kept = [cell for cell in own if cell in found]
    narrowed = [axis for axis in AXES if set(_values(kept, axis)) != set(_values(own, axis))]
    what = _names(kept, narrowed) if narrowed else f"{len(kept)} of its {len(own)} cells"
    return f"{experiment.description} Here only {what}."


def _names(found: Sequence[Cell], axes: Iterable[str]) -> str:
    """As overrides: `kernel=softmax,matmul hardware=cpu`."""
    return " ".join(f"{axis}={','.join(_values(found, axis))}" for axis in axes)


def _values(found: Iterable[Cell], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(getattr(cell, axis) for cell in found))


def _words(cell: Cell) -> tuple[str, ...]:
    return tuple(getattr(cell, axis) for axis in AXES)
