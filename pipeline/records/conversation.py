"""What a language model was asked and what it answered, as an exported row has it."""

from pipeline.records.record import Record


class Said(Record, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: str
    content: str


class Question(Record, frozen=True, kw_only=True):
    """What a language model was asked and what it answered."""

    role: str
    """`judge` or `coder`."""
    template: str
    version: str
    model: str
    outcome: str
    reason: str | None
    messages: tuple[Said, ...]
    answer: str | None
    refusal: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    currency: str | None
    seconds: float | None
    tries: int
