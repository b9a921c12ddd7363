"""Where results were made that were not made in this checkout: the machine, and the bundle from there."""

from pipeline.records.record import Record


class Origin(Record, frozen=True, kw_only=True):
    """Another machine, as the bundle that came from there describes it."""

    bundle: str
    """Identity of the bundle: digest of its manifest, which has the digest of every file in it."""
    created: str
    """When it was written there: UTC, ISO 8601."""
    device: str
    """Product names of what could be measured there."""
    environment: dict[str, str]
    """Python, libraries, driver, processor, system: whatever that machine told."""

    @property
    def line(self) -> str:
        """For people, in a few words."""
        return f"{self.device} (another machine, bundle {self.bundle[:8]})"
