"""What an answer is worth: its text in; a source, or a change, or the typed reason why there is none, out."""

import re
from collections.abc import Collection

from pipeline.backends.language import Language
from pipeline.records.record import Record
from pipeline.records.search.model_attempt import AnswerOutcome, ModelAnswer

SOURCE_AT_MOST = 200_000  # characters
CHANGE_AT_MOST = 800  # characters

_BLOCK = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([^\s`]*)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE
)
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_REFUSAL = re.compile(
    r"\A\W*(?:i'?m sorry|i am sorry|sorry|i can(?:'|no)?t|i am unable|i'm unable)", re.IGNORECASE
)
_CHANGE = re.compile(r"^\W*CHANGE\W*:[\s*_]*(.+)", re.MULTILINE | re.DOTALL)

_JOINED = re.compile(r"\\[ \t]*\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Anywhere, in comments and strings too: where those end is the compiler's to know, and hiding is easy.
_READS = re.compile(
    r"(?:#|%:|\?\?=)(?:\s|/\*.*?\*/)*(include_next|include|import|embed)\b([^\n]*)", re.DOTALL
)
_SYSTEM = re.compile(r"\s*<([\w+-][\w+.-]*(?:/[\w+.-]+)*)>\s*")
_LOCAL = re.compile(r'\s*"([^"\n]+)"\s*')


class Unusable(Record, frozen=True, kw_only=True):
    """An answer without what was asked for."""

    outcome: AnswerOutcome
    reason: str


def read_source(answer: ModelAnswer, language: Language, includes: Collection[str]) -> str | Unusable:
    """The source in an answer of the coder; `includes` are the files in quotes that it may include.

    A block of code without a label is taken to be in the right language.
    """
    text = _without_thought(answer)
    if isinstance(text, Unusable):
        return text
    blocks = [(match[2].lower(), match[3]) for match in _BLOCK.finditer(text)]
    if not blocks:
        return _no_block(text)
    if len(blocks) > 1:
        return Unusable(
            outcome=AnswerOutcome.SEVERAL_BLOCKS, reason=f"{len(blocks)} blocks of code, expected exactly one"
        )
    label, source = blocks[0]
    source = source.replace("\r\n", "\n").strip("\n") + "\n"
    return _problem(label, source, language, includes) or source


def _problem(label: str, source: str, language: Language, includes: Collection[str]) -> Unusable | None:
    """What is wrong with a block of code, if anything is."""
    if label and label not in language.fences:
        known = ", ".join(sorted(language.fences))
        reason = f"a block of '{label[:20]}', expected one of {known}"
        return Unusable(outcome=AnswerOutcome.WRONG_LANGUAGE, reason=reason)
    if not source.strip():
        return Unusable(outcome=AnswerOutcome.NO_CODE, reason="the block of code is empty")
    if len(source) > SOURCE_AT_MOST:
        reason = f"a source of {len(source)} characters, expected at most {SOURCE_AT_MOST}"
        return Unusable(outcome=AnswerOutcome.TOO_LONG, reason=reason)
    foreign = foreign_file(source, includes) if language.preprocessor else None
    if foreign is not None:
        reason = f"`{foreign}`: only system headers and {_listed(includes)} may be included"
        return Unusable(outcome=AnswerOutcome.FORBIDDEN_INCLUDE, reason=reason)
    return None


def read_change(answer: ModelAnswer) -> str | Unusable:
    """The one change in an answer of the judge."""
    text = _without_thought(answer)
    if isinstance(text, Unusable):
        return text
    found = _CHANGE.search(text)
    change = " ".join(found[1].split()) if found is not None else ""
    if change:
        return change[:CHANGE_AT_MOST]
    if _REFUSAL.match(text):
        return Unusable(outcome=AnswerOutcome.REFUSED, reason="it refused")
    return Unusable(outcome=AnswerOutcome.NO_CHANGE, reason="no line that begins with CHANGE:")


def _without_thought(answer: ModelAnswer) -> str | Unusable:
    """What was said, without what a reasoning model thought aloud."""
    if answer.refusal is not None or answer.finish == "content_filter":
        said = " ".join((answer.refusal or "its content filter").split())[:200]
        return Unusable(outcome=AnswerOutcome.REFUSED, reason=f"it refused: {said}")
    if answer.finish == "length":
        limit = answer.request.tokens_at_most
        reason = f"cut off after {limit} tokens (tokens_at_most)"
        return Unusable(outcome=AnswerOutcome.TRUNCATED, reason=reason)
    text = _THOUGHT.sub("", answer.text, count=1)
    if not text.strip():
        return Unusable(outcome=AnswerOutcome.EMPTY, reason="an answer without text")
    return text


def _no_block(text: str) -> Unusable:
    if _REFUSAL.match(text):
        return Unusable(outcome=AnswerOutcome.REFUSED, reason="it refused")
    if "```" in text or "~~~" in text:
        return Unusable(outcome=AnswerOutcome.TRUNCATED, reason="a block of code that does not end")
    return Unusable(outcome=AnswerOutcome.NO_CODE, reason="no block of code")


def foreign_file(source: str, includes: Collection[str]) -> str | None:
    """The first directive that would have the compiler read a file which is not the kernel's.

    What compilers say of such a file would come back in the next prompt, and leave this machine with it.
    """
    for found in _READS.finditer(_JOINED.sub("", source)):
        named = _COMMENT.sub(" ", found[2])
        system, local = _SYSTEM.fullmatch(named), _LOCAL.fullmatch(named)
        if found[1] == "include" and system is not None and ".." not in system[1]:
            continue
        if found[1] == "include" and local is not None and local[1] in includes:
            continue
        return " ".join(found[0].split())[:120]
    return None


def _listed(includes: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(includes)) or "none in quotes"
