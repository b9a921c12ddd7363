"""Records are frozen, typed on every read, and identified by the whole of what they hold."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.errors import StoreError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest, from_plain, read_record, to_json
from pipeline.records.results.variant import Variant

VARIANT = Variant(
    kernel="softmax",
    implementation="cpp",
    backend="cpp",
    source_digest="0" * 20,
    attributes={},
    tunables={"UNROLL": 2, "LANES": 8},
)


def test_records_cannot_change() -> None:
    """A field of a record is set once."""
    with pytest.raises(AttributeError):
        VARIANT.kernel = "other"  # type: ignore[misc]


@pytest.mark.parametrize("field", Variant.__struct_fields__)
def test_identity_covers_every_field(field: str) -> None:
    """Changing any field changes the id: no field was forgotten."""
    value = getattr(VARIANT, field)
    if isinstance(value, bool):
        other: object = not value
    else:
        other = {**value, "more": 1} if isinstance(value, dict) else value + "x"
    assert msgspec.structs.replace(VARIANT, **{field: other}).id != VARIANT.id


def test_identity_ignores_the_order_of_keys() -> None:
    """Two spellings of one variant are one variant."""
    swapped = msgspec.structs.replace(VARIANT, tunables={"LANES": 8, "UNROLL": 2})
    assert swapped.id == VARIANT.id


def test_identity_knows_separators() -> None:
    """Joined fields cannot imitate each other."""
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_round_trip() -> None:
    """What is written is what is read."""
    assert msgspec.json.decode(to_json(VARIANT), type=Variant) == VARIANT


def test_unknown_fields_are_refused() -> None:
    """A misspelt key is an error, not silence."""
    with pytest.raises(msgspec.ValidationError, match="sourcedigest"):
        from_plain({"sourcedigest": "x"}, Variant)


def test_a_failure_is_not_a_pass() -> None:
    """The illegal state cannot be built."""
    with pytest.raises(ValueError, match="passed"):
        Failure(outcome=Outcome.PASSED, reason="")


@pytest.mark.parametrize("content", [b"", b"{", b'{"kernel": 3}', b"\xff"])
def test_broken_files_are_named(tmp_path: Path, content: bytes) -> None:
    """A truncated or foreign file is one line with its path."""
    path = tmp_path / "variant.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=str(path)):
        read_record(path, Variant)
