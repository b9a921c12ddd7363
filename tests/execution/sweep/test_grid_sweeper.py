"""Our grid is Hydra's: the same jobs in the same order, in the same batches."""

from types import SimpleNamespace
from typing import cast

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipeline.execution.sweep.grid_sweeper import SweepStopped, batches, combinations

GRIDS = [
    [],
    ["a=1"],
    ["a=1,2", "b=x,y,z"],
    ["a=range(1,4)", "b=c"],
    ["a=range(0,1,0.25)"],
    ["a=choice(1,2)", "a=3,4"],
    ["+a.b=1,2", "++c=3", "d='two words','more, words'"],
    ["a=sort(3,1,2)", "b=tag(x,choice(1,2))"],
    ["a=[1,2],[3]", "b={x:1},{x:2}"],
    ["a=null,true,1e-5"],
]


@pytest.mark.parametrize("lines", GRIDS)
@pytest.mark.parametrize("size", [None, 1, 2, 100])
def test_as_hydras_basic_sweeper(lines: list[str], size: int | None) -> None:
    """Compared with what Hydra makes of the same overrides."""
    overrides = OverridesParser.create().parse_overrides(lines)
    expected = BasicSweeper.split_arguments(overrides, size)
    ours = [[list(job) for job in batch] for batch in batches(combinations(overrides), size)]
    assert ours == expected


@pytest.mark.parametrize("line", ["a=range(5,1)", "hydra/output=glob(zz*)"])
def test_an_axis_without_a_value_is_no_sweep(line: str) -> None:
    """A pattern that fits nothing would be a sweep of no jobs, which ends well and says nothing."""
    load = SimpleNamespace(get_group_options=lambda *_, **__: ["kernelmill"])
    overrides = OverridesParser.create(config_loader=cast(ConfigLoader, load)).parse_overrides([line])
    with pytest.raises(SweepStopped, match="holds no value") as stopped:
        combinations(overrides)
    assert f"error: {line}: " in str(stopped.value)


def test_an_interval_has_no_end() -> None:
    """The message names what can be counted, and who takes intervals."""
    overrides = OverridesParser.create().parse_overrides(["a=interval(0,1)"])
    with pytest.raises(SweepStopped, match=r"error: a=interval\(0,1\): a grid has no end here"):
        combinations(overrides)


def test_batches_of_nothing() -> None:
    """A limit below one is an error of the user."""
    with pytest.raises(SweepStopped, match="max_batch_size=0: expected at least 1"):
        list(batches([("a=1",)], 0))
