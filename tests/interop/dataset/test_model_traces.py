"""Prompts and answers in a data set."""

from pathlib import Path

import msgspec

from pipeline.interop.dataset.dataset_rows import trace_of
from pipeline.interop.dataset.source_texts import Redactor
from pipeline.records.search.model_attempt import AnswerOutcome, Attempt, ModelAnswer, ModelCall, ModelRequest
from pipeline.store.entries import new_entry, put_record
from tests.search.agents.making import NOBODY, request


def attempt_of(asked: ModelRequest) -> Attempt:
    """One question, whose answer was used."""
    question = ModelCall(
        role="coder",
        template=asked.template,
        model="scripted",
        entry=asked.entry,
        outcome=AnswerOutcome.USED,
        prompt_tokens=10,
        completion_tokens=None,
        tries=1,
    )
    return Attempt(
        number=0, parent="p", change="unroll it", outcome=AnswerOutcome.USED, source="s", variant="v",
        asked=(question,),
    )  # fmt: skip


def keep(root: Path, asked: ModelRequest, text: str) -> None:
    """The answer in the store."""
    answer = ModelAnswer(
        request=asked, model="scripted", text=text, refusal=None, finish="stop", prompt_tokens=10,
        completion_tokens=None, seconds=0.5, tries=1, created="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    with new_entry(root, "answers", asked.entry) as folder:
        put_record(folder, answer)


def test_prompt_and_answer(tmp_path: Path) -> None:
    """As they were sent, without the endpoint's address and this machine's paths."""
    asked = request(text=f"Mend {Path.cwd()}/kernel.cpp")
    keep(tmp_path, asked, f"See {Path.home()}/notes")
    trace = trace_of(attempt_of(asked), tmp_path, Redactor(Path.cwd(), tmp_path), None)
    (question,) = trace.questions
    assert trace.change == "unroll it"
    assert [said.role for said in question.messages] == ["system", "user"]
    assert question.messages[1].content == "Mend ./kernel.cpp"
    assert question.answer == "See ~/notes"
    assert (question.template, question.version, question.prompt_tokens) == ("coder", "1", 10)
    assert question.completion_tokens is None
    assert NOBODY.encode() not in msgspec.json.encode(trace)


def test_withheld_with_the_source(tmp_path: Path) -> None:
    """The answer is the source: without a licence there is neither."""
    asked = request()
    keep(tmp_path, asked, "the source")
    trace = trace_of(attempt_of(asked), tmp_path, Redactor(Path.cwd(), tmp_path), "no licence")
    assert (trace.questions, trace.absent) == ((), "no licence")


def test_a_lost_answer_leaves_the_question(tmp_path: Path) -> None:
    """What the attempt knows of it is still told."""
    trace = trace_of(attempt_of(request()), tmp_path, Redactor(Path.cwd(), tmp_path), None)
    (question,) = trace.questions
    assert (question.answer, question.messages, question.outcome) == (None, (), "used")
