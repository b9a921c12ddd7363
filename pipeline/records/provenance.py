"""Where and with what a record was made: here (`Provenance`), or on another machine (`Origin`)."""

from pipeline.records.record import Record

SCHEMA_VERSION = 1


class Provenance(Record, frozen=True, kw_only=True):
    """Travels with every stored result."""

    schema_version: int = SCHEMA_VERSION
    created: str
    """UTC, ISO 8601."""
    host: str
    """Digest of the machine's name: distinguishes machines without naming them."""
    toolchain: dict[str, str]
    """Versions of what made it: torch, triton, g++, …"""
    code: str
    """Digest of the stage's code with what it imports."""
    git: str | None = None
    """Commit, with `+` where the tree was dirty; None outside a checkout."""


class Origin(Record, frozen=True, kw_only=True):
    """Another machine, as the bundle that came from there describes it."""

    bundle: str
    """Identity of the bundle: digest of its manifest, which has the digest of every file in it."""
    created: str
    """When it was written there: UTC, ISO 8601."""
    device: str
    """Product names of what could be measured there."""
    environment: dict[str, str]
    """Python, libraries, driver, processor, system, as the machine reported them."""

    @property
    def line(self) -> str:
        """For people, in a few words."""
        return f"{self.device} (another machine, bundle {self.bundle[:8]})"
