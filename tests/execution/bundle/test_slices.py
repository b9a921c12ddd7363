"""A run that is cut off, and the next one that goes on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.execution.bundle.bundle_file import read_bundle
from pipeline.execution.bundle.offline_run import by_value
from pipeline.execution.bundle.operations import take_seeds
from pipeline.store.entries import RECORD
from tests.execution.bundle.made_up import bundle_of, make_run


def test_every_kernel_has_its_turn() -> None:
    """The order of a kernel's tasks, and that of the kernels, are as declared."""
    tasks: Any = [
        SimpleNamespace(row=SimpleNamespace(kernel=name), name=n) for n, name in enumerate("aaabbc")
    ]
    assert [task.row.kernel for task in by_value(tasks)] == list("abcaba")
    assert [task.name for task in by_value(tasks) if task.row.kernel == "a"] == [0, 1, 2]


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    """A task that did not finish brings its entries home, and the next job takes them back."""
    run = make_run(tmp_path / "there", finished=False)
    assert [task.missing for task in run.ran.tasks] == ["time is up: not started"]
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    bundle_of(run, seeds / "results.kmb")
    bundle = read_bundle(seeds / "results.kmb")
    measured = [name for name in bundle.contents if name.startswith("store/profile/") and RECORD in name]
    assert measured
    there = tmp_path / "again"
    take_seeds(seeds, there)
    for name in measured:
        assert (there / name).read_bytes() == (Path(run.root) / name).read_bytes()
