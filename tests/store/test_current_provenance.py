"""Where a result says that its code comes from."""

from pathlib import Path

from pipeline.store.current_provenance import REVISION, revision


def test_a_packed_copy_says_what_it_was_packed_from(tmp_path: Path) -> None:
    """Its file counts before git, which may know of another project around it."""
    (tmp_path / REVISION).write_text("0123456789ab+\n")
    assert revision(tmp_path) == "0123456789ab+"


def test_outside_of_a_checkout(tmp_path: Path) -> None:
    """Nothing is known."""
    assert revision(tmp_path) is None
