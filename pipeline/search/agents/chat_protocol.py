"""The chat protocol as far as it is read: the bytes of a response in, text, reason of its end and counts out.

Endpoints differ in what they add and leave out, so what is not needed may be absent or of another type.
"""

from typing import Any

import msgspec

from pipeline.records.record import Record


class Completion(Record, frozen=True, kw_only=True):
    """One answer of a model."""

    model: str | None
    text: str
    refusal: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def read_completion(content: bytes) -> Completion | str:
    """The answer, or why it is none: one line."""
    try:
        plain = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}"
    choices = _mapping(plain).get("choices")
    if not isinstance(choices, list) or not choices:
        return "JSON without choices"
    choice = _mapping(choices[0])
    message = _mapping(choice.get("message"))
    if not message:
        return "a choice without a message"
    usage = _mapping(_mapping(plain).get("usage"))
    text = message.get("content")
    return Completion(
        model=_text(_mapping(plain).get("model")),
        text=text if isinstance(text, str) else "",
        refusal=_text(message.get("refusal")),
        finish=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None
