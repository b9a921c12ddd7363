"""Sources that a search writes: the text, who wrote it and from what, and how the store keeps it."""

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.model_attempt import Attempt

LARGEST = 1 << 20  # bytes of one text: the largest source of this project has 20 kB


class Author(Record, frozen=True, kw_only=True):
    """Who wrote a text, and how: provenance, not part of any identity."""

    writer: str
    """Name of the strategy."""
    name: str
    """The file of a folder, the transformation, the version of torch, the model."""
    details: dict[str, str] = {}
    """Anything else that is worth recording: the line that was changed, the licence, …"""
    derived: bool = False
    """The declared source with changes: its origin and licence still apply."""


class WrittenSource(Record, frozen=True, kw_only=True):
    """A text that takes the place of an implementation's source file, and of that file only.

    Headers and modules that it names are those of the repository, as they are when it is kept.
    """

    text: str
    author: Author
    parents: tuple[str, ...] = ()
    """Ids of the variants that it was made from."""

    @property
    def digest(self) -> str:
        """Identity of the text."""
        return digest_bytes(self.text.encode())


class Proposal(Record, frozen=True, kw_only=True):
    """What a strategy proposes: a point of an implementation's space, and perhaps a source of its own."""

    implementation: str
    tunables: dict[str, TunableValue]
    source: WrittenSource | None = None
    """None: the declared one."""
    attempt: Attempt | None = None
    """Of a language model that wrote it."""


class Unfit(Record, frozen=True, kw_only=True):
    """A text that cannot stand in the place of any implementation's source: no variant, but reported."""

    implementation: str | None
    author: Author
    failure: Failure
    attempt: Attempt | None = None
    """Of a language model that was to write it."""


class KeptSource(Record, frozen=True, kw_only=True):
    """Stored next to the files: a folder with the same paths as the repository's."""

    main: str
    """Path of the written text: that of the implementation's declared source."""
    files: dict[str, str]
    """Path -> digest of the text and of every file that it includes or imports."""


class SourceRecord(Record, frozen=True, kw_only=True):
    """One written source of a round."""

    entry: str
    """Of the store, and `source_digest` of its variants."""
    implementation: str
    author: Author
    parents: tuple[str, ...] = ()


def unfit(author: Author, reason: str, implementation: str | None = None) -> Unfit:
    """Such a text, with its reason."""
    failure = Failure(outcome=Outcome.COMPILE_ERROR, reason=reason)
    return Unfit(implementation=implementation, author=author, failure=failure)
