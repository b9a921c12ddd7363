"""The file that is replayed: what it says of a variant, and whether it is still the one of the plan."""

from pathlib import Path

import msgspec
import pytest

from pipeline.interop.replay import replay
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from pipeline.records.results.variant import Variant
from tests.interop.replay.recordings import file_of, t4, written

VARIANT = Variant(
    kernel="recorded",
    implementation="toy",
    backend="recorded",
    source_digest="0",
    attributes={},
    tunables={"unroll": 1, "block": 64},
)


def test_a_variant_is_found_by_its_tunables(tmp_path: Path) -> None:
    """In whatever order they stand; what has no record, and what somebody wrote, is not found."""
    recorded = replay(file_of(written(tmp_path)), tmp_path)
    found = recorded.of(VARIANT)
    assert found is not None and found.outcome is Outcome.PASSED
    assert recorded.of(msgspec.structs.replace(VARIANT, tunables={"block": 512, "unroll": 2})) is None
    assert recorded.of(msgspec.structs.replace(VARIANT, tunables={"block": 64, "unroll": True})) is None
    assert recorded.of(msgspec.structs.replace(VARIANT, written=True)) is None


def test_a_file_that_changed_is_not_replayed(tmp_path: Path) -> None:
    """Its results would stand under the name of others."""
    path = written(tmp_path)
    file = file_of(path)
    written(tmp_path, t4(device="Another GPU"))
    with pytest.raises(FormatError, match=r"toy\.json: changed since the plan was made: expected .* got "):
        replay(file, tmp_path)
    path.unlink()
    with pytest.raises(FormatError, match=r"toy\.json: recorded measurements: No such file"):
        replay(file, tmp_path)
