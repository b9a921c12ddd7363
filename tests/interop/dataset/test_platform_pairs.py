"""The same problem on several platforms."""

from pathlib import Path

import msgspec
import pytest

from pipeline.interop.dataset.platform_pairs import PairCollector
from pipeline.interop.dataset.row_schema import DatasetRow
from tests.interop.dataset.made_up import exported, ours, plain, rows, sample


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> DatasetRow:
    """One that was measured."""
    folder = tmp_path_factory.mktemp("pairs")
    ours(folder / "artifacts")
    exported(folder / "artifacts", folder / "out")
    return rows(folder / "out")[0]


def other(row: DatasetRow, identity: str, **changes: object) -> DatasetRow:
    """The same problem elsewhere."""
    return msgspec.structs.replace(row, id=identity, **changes)  # type: ignore[arg-type]


def slower(row: DatasetRow, identity: str) -> DatasetRow:
    """Twice as slow."""
    assert row.measurement is not None
    seconds = msgspec.structs.replace(row.measurement.seconds, value=2 * row.measurement.seconds.value)
    return other(row, identity, measurement=msgspec.structs.replace(row.measurement, seconds=seconds))


def test_the_best_of_each_platform(row: DatasetRow) -> None:
    """The fastest that was measured; where nothing was, the default; else the first."""
    pairs = PairCollector()
    cuda = {"backend": "cuda", "kind": "cuda", "measurement": None}
    hip = {"backend": "triton", "kind": "hip", "measurement": None}
    pairs.add(slower(row, "slow"), default=True)
    pairs.add(other(row, "fast"), default=False)
    pairs.add(other(row, "some", **cuda), default=False)
    pairs.add(other(row, "default", **cuda), default=True)
    pairs.add(other(row, "first", **hip), default=False)
    pairs.add(other(row, "another", **hip), default=False)
    found = {(pair.left_platform, pair.right_platform): pair for pair in pairs.pairs()}
    assert set(found) == {("cpp/cpu", "cuda/cuda"), ("cpp/cpu", "triton/hip"), ("cuda/cuda", "triton/hip")}
    one = found["cpp/cpu", "cuda/cuda"]
    assert (one.left, one.left_chosen, one.right, one.right_chosen) == (
        *("fast", "fastest"),
        *("default", "default"),
    )
    assert (found["cuda/cuda", "triton/hip"].right, found["cuda/cuda", "triton/hip"].right_chosen) == (
        "first",
        "first",
    )


def test_other_problems_are_no_pair(row: DatasetRow) -> None:
    """Equal names, other dimensions."""
    pairs = PairCollector()
    pairs.add(row, default=True)
    pairs.add(other(row, "other", group="another", backend="cuda", kind="cuda"), default=True)
    assert list(pairs.pairs()) == []


def test_every_pair_is_of_rows_that_are_there(tmp_path: Path) -> None:
    """And of one problem on two platforms, both verified."""
    exported(sample(tmp_path / "artifacts"), tmp_path / "out", failures=True)
    by_id = {row.id: row for row in rows(tmp_path / "out")}
    pairs = plain(tmp_path / "out", "pairs")
    assert pairs
    for pair in pairs:
        left, right = by_id[pair["left"]], by_id[pair["right"]]
        assert left.group == right.group == pair["group"]
        assert (left.backend, left.kind) != (right.backend, right.kind)
        assert left.verification and right.verification
