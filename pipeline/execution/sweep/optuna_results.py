"""What a sweep came to. In: the best trials. Out: lines for the terminal, optimization_results.yaml."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf

from pipeline.search.sampling.study import Evaluated

FILE = "optimization_results.yaml"
SHOWN = 5  # of several that no other one beats; the file has all


def write_results(folder: Path, best: Sequence[Evaluated], objectives: int) -> Path:
    """Write the file that users of hydra-optuna-sweeper know, and return its path."""
    content: dict[str, object] = {"name": "optuna"}
    if objectives == 1:
        content |= {
            "best_params": best[0].params,
            "best_value": best[0].values[0],
            "best_trial": best[0].trial,
        }
    else:
        content["solutions"] = [
            {"params": one.params, "values": list(one.values), "trial": one.trial} for one in best
        ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    OmegaConf.save(OmegaConf.create(content), path)
    return path


def result_lines(best: Sequence[Evaluated], fixed: Sequence[str]) -> list[str]:
    """The best values, and the commands that run their jobs again."""
    lines = []
    for one in best[:SHOWN]:
        values = ", ".join(f"{value!r}" for value in one.values)
        lines.append(f"best     {values}   job {one.job}: {' '.join(one.point)}")
        lines.append(f"again    {command([*fixed, *one.point])}")
    if len(best) > SHOWN:
        lines.append(f"         and {len(best) - SHOWN} more")
    return lines


def command(overrides: Sequence[str]) -> str:
    """This program with other overrides, as a shell takes it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name.removesuffix(".__main__") if spec is not None else None
    program = ["python", "-m", module] if module else ["python", sys.argv[0]]
    return shlex.join([*program, *overrides])
