"""Where and with what a record was made."""

from pipeline.records.record import Record

SCHEMA_VERSION = 1


class Provenance(Record, frozen=True, kw_only=True):
    """Travels with every stored result."""

    schema_version: int = SCHEMA_VERSION
    created: str
    """UTC, ISO 8601."""
    host: str
    """Digest of the machine's name: tells machines apart without naming them."""
    toolchain: dict[str, str]
    """Versions of what made it: torch, triton, g++, …"""
    code: str
    """Digest of the stage's code with what it imports."""
    git: str | None = None
    """Commit, with `+` where the tree was dirty; None outside a checkout."""
