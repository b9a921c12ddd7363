"""Requests to a language model and their outcome: answers as they are stored, and attempts in short."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeVar

from pipeline.records.record import Record, digest

Role = Literal["coder", "judge"]
Number = TypeVar("Number", int, float)


class AnswerOutcome(StrEnum):
    """How asking ended; what a user would fix differently has a name of its own."""

    USED = "used"
    NO_CODE = "no_code"
    SEVERAL_BLOCKS = "several_blocks"
    WRONG_LANGUAGE = "wrong_language"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    REFUSED = "refused"
    NO_CHANGE = "no_change"
    """The judge named none."""
    FORBIDDEN_INCLUDE = "forbidden_include"
    """The source would have the compiler read a file that is not the kernel's."""
    TOO_LONG = "too_long"
    REPEATED = "repeated"
    """The same source was tried already."""
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"
    """The endpoint does not take the request: too long a prompt, a parameter that it does not know."""
    MALFORMED = "malformed"
    """Not an answer of this protocol."""
    BUDGET_SPENT = "budget_spent"
    """Nothing was asked: `tokens_in_all` are used."""


class Message(Record, frozen=True, kw_only=True):
    """One part of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Template(Record, frozen=True, kw_only=True):
    """Which prompt it was."""

    name: str
    version: str
    digest: str


class ModelRequest(Record, frozen=True, kw_only=True):
    """All that decides an answer; equal requests are asked once."""

    base_url: str
    model: str
    temperature: float | None
    tokens_at_most: int
    seed: int
    """Differs between the samples of one prompt."""
    messages: tuple[Message, ...]
    template: Template

    @property
    def entry(self) -> str:
        """Under which name its answer is kept."""
        return digest(self)


class ModelAnswer(Record, frozen=True, kw_only=True):
    """What the endpoint said, kept as it came."""

    request: ModelRequest
    model: str | None
    """As the endpoint names it."""
    text: str
    refusal: str | None
    finish: str | None
    """Why it ended: `stop`, `length`, `content_filter`, …"""
    prompt_tokens: int | None
    completion_tokens: int | None
    """As the endpoint counts them; None where it does not say."""
    seconds: float
    """From the request that was answered to its last byte."""
    tries: int
    created: str
    """UTC, ISO 8601."""


class ModelCall(Record, frozen=True, kw_only=True):
    """One question of an attempt."""

    role: Role
    template: Template
    model: str
    entry: str
    """Of the kept answer, where there is one, and of the request in any case."""
    outcome: AnswerOutcome
    reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    """In the currency of the price; None where no price or no count is known."""
    currency: str | None = None
    seconds: float | None = None
    tries: int

    @property
    def tokens(self) -> int:
        """Those that are known."""
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)


class Attempt(Record, frozen=True, kw_only=True):
    """One try to extend a variant: what was asked, how it ended, and the variant that came of it."""

    number: int
    """Within the round, from 0."""
    parent: str | None
    """Id of the variant that is extended."""
    change: str | None
    """The one change that the judge asked for; None where there is no judgement."""
    outcome: AnswerOutcome
    reason: str | None = None
    source: str | None = None
    """Digest of the text that was written; None where there is none."""
    variant: str | None = None
    """Id of the variant that it became."""
    asked: tuple[ModelCall, ...] = ()

    @property
    def model(self) -> str | None:
        """Who was asked last for a source."""
        return self._coder.model if self._coder is not None else None

    @property
    def prompt(self) -> str | None:
        """Template and version of that question."""
        return f"{self._coder.template.name} {self._coder.template.version}" if self._coder else None

    @property
    def answered(self) -> tuple[ModelCall, ...]:
        """Questions that were answered, usably or not: what was paid for."""
        return tuple(asked for asked in self.asked if asked.seconds is not None)

    @property
    def prompt_tokens(self) -> int | None:
        """Of all that was answered; None where nothing was, or an endpoint did not count."""
        return total(asked.prompt_tokens for asked in self.answered)

    @property
    def completion_tokens(self) -> int | None:
        """Of all its answers, likewise."""
        return total(asked.completion_tokens for asked in self.answered)

    @property
    def cost(self) -> float | None:
        """Likewise."""
        return total(asked.cost for asked in self.answered)

    @property
    def currency(self) -> str | None:
        """Of the cost."""
        return next((asked.currency for asked in self.asked if asked.currency), None)

    @property
    def seconds(self) -> float | None:
        """Time to the answers, one after the other, likewise."""
        return total(asked.seconds for asked in self.answered)

    @property
    def _coder(self) -> ModelCall | None:
        return next((asked for asked in reversed(self.asked) if asked.role == "coder"), None)

    def __post_init__(self) -> None:
        """A source exists only where an answer was used."""
        used = self.outcome is AnswerOutcome.USED
        if used != (self.source is not None) or used == (self.reason is not None):
            raise ValueError(f"an attempt with the outcome '{self.outcome}' and the source {self.source}")


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; None where there is nothing, or something unknown: a part would pass for the whole."""
    found = list(values)
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    return sum(known[1:], start=known[0])
