"""How a language model came to write a source. In: its attempt and the kept answers. Out: a Trace."""

from pathlib import Path

from pipeline.interop.dataset.redaction import Redactor
from pipeline.interop.dataset.row_schema import (
    Trace,
)
from pipeline.records.conversation import Question, Said
from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import read_record
from pipeline.records.search.model_attempt import Answer, Asked, Attempt
from pipeline.search.agents.answer_cache import STAGE
from pipeline.store.entries import RECORD


def trace_of(attempt: Attempt, root: Path, cleaner: Redactor, withheld: str | None) -> Trace:
    """Questions in their order. `withheld`: why the source has no text, which answers would hold."""
    change = None if attempt.change is None else cleaner.text(attempt.change)
    if withheld is not None:
        return Trace(change=change, questions=(), absent=withheld)
    questions = tuple(_question(asked, root, cleaner) for asked in attempt.asked)
    return Trace(change=change, questions=questions, absent=None)


def _question(asked: Asked, root: Path, cleaner: Redactor) -> Question:
    """The endpoint's address is left out: it may be a machine's name."""
    answer = _answer(asked.entry, root)
    return Question(
        role=asked.role,
        template=asked.template.name,
        version=asked.template.version,
        model=asked.model,
        outcome=str(asked.outcome),
        reason=None if asked.reason is None else cleaner.text(asked.reason),
        messages=_messages(answer, cleaner),
        answer=None if answer is None else cleaner.text(answer.text),
        refusal=None if answer is None or answer.refusal is None else cleaner.text(answer.refusal),
        finish=None if answer is None else answer.finish,
        prompt_tokens=asked.prompt_tokens,
        completion_tokens=asked.completion_tokens,
        cost=asked.cost,
        currency=asked.currency,
        seconds=asked.seconds,
        tries=asked.tries,
    )


def _messages(answer: Answer | None, cleaner: Redactor) -> tuple[Said, ...]:
    if answer is None:
        return ()
    return tuple(Said(role=each.role, content=cleaner.text(each.content)) for each in answer.request.messages)


def _answer(entry: str, root: Path) -> Answer | None:
    """None where nothing was answered, or the store lost it."""
    try:
        return read_record(entry_path(root, STAGE, entry) / RECORD, Answer)
    except StoreError:
        return None
