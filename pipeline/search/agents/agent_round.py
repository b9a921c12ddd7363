"""One round of attempts: a judge reviews each chosen variant once, a coder writes a source.

A round continues whatever the endpoint answers, and each attempt records how it ended. Only an endpoint that
cannot be reached, or denies access, ends the round; the answers until then are kept.
"""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from pipeline.backends.registry import backend
from pipeline.records.errors import AgentError
from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.model_attempt import (
    AnswerOutcome,
    Attempt,
    Message,
    ModelAnswer,
    ModelCall,
    ModelRequest,
    Role,
)
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.agent_settings import Agent
from pipeline.search.agents.answer_cache import Answers
from pipeline.search.agents.answer_parsing import Unusable, read_change, read_source
from pipeline.search.agents.chat_client import NoAnswer
from pipeline.search.agents.prompts import Prompt, cut, render
from pipeline.search.agents.round_context import RoundContext, choose

REPAIRABLE = frozenset(
    {
        *(AnswerOutcome.NO_CODE, AnswerOutcome.SEVERAL_BLOCKS, AnswerOutcome.WRONG_LANGUAGE),
        *(AnswerOutcome.TRUNCATED, AnswerOutcome.EMPTY, AnswerOutcome.TOO_LONG),
        *(AnswerOutcome.FORBIDDEN_INCLUDE, AnswerOutcome.REPEATED),
    }
)
"""Outcomes that the model may repair if it gets the reason; a refusal is accepted."""
_QUOTED_AT_MOST = 8_000  # characters of an unusable answer that are sent back

Item = TypeVar("Item")
Result = TypeVar("Result")


class Draft(Record, frozen=True, kw_only=True):
    """One attempt of a round."""

    attempt: Attempt
    parent: Trial
    text: str | None
    """The source; None if there is none."""


class _Advice(Record, frozen=True, kw_only=True):
    """The judge's answer about a variant."""

    asked: ModelCall
    change: str | None


class _Plan(Record, frozen=True, kw_only=True):
    """One attempt before its first request."""

    number: int
    parent: Trial
    change: str | None
    judged: ModelCall | None
    """The judge's call, in the first attempt that uses its advice."""


def write_round(context: RoundContext, answers: Answers) -> list[Draft]:
    """The attempts of a round in order; deterministic except for the endpoint's answers.

    Raises
    ------
    AgentError
        The endpoint cannot be reached or denies access; the text says how many answers are kept.
    """
    writable = [trial for trial in context.trials if _has_source(context, trial)]
    chosen = choose(context.agent, writable, context.parents, context.wanted)
    writer = _Writer(context, answers)
    try:
        advice = writer.advise({trial.variant.id: trial for trial in chosen})
        return writer.write(chosen, advice)
    except AgentError as error:
        count = answers.kept + answers.received
        plural = "" if count == 1 else "s"
        raise AgentError(f"{error}; {count} answer{plural} of this round kept: run again to go on") from None


class _Writer:
    """Sends the requests of a round."""

    def __init__(self, context: RoundContext, answers: Answers) -> None:
        self._context = context
        self._answers = answers
        self._tokens = context.tokens_used
        self._known = {digest_bytes(context.text(trial.variant).encode()) for trial in context.trials}

    def advise(self, trials: dict[str, Trial]) -> dict[str, _Advice]:
        """Advice by variant, as long as the token budget lasts."""
        found: dict[str, _Advice] = {}
        for batch in _batches(list(trials.items()), self._context.agent.requests_at_once):
            if not self._spent():
                for (variant, _), advice in zip(batch, _concurrently(self._advise, batch), strict=True):
                    found[variant] = advice
                    self._tokens += advice.asked.tokens
        return found

    def write(self, chosen: Sequence[Trial], advice: dict[str, _Advice]) -> list[Draft]:
        """The attempts, `requests_at_once` of them concurrently."""
        drafts: list[Draft] = []
        judged: set[str] = set()
        plans = []
        for number, trial in enumerate(chosen):
            said = advice.get(trial.variant.id)
            first = trial.variant.id not in judged
            judged.add(trial.variant.id)
            asked = said.asked if said is not None and first else None
            plans.append(
                _Plan(number=number, parent=trial, change=said.change if said else None, judged=asked)
            )
        for batch in _batches(plans, self._context.agent.requests_at_once):
            if self._spent():
                drafts += [self._unasked(plan) for plan in batch]
                continue
            for draft in _concurrently(self._write, batch):
                kept = self._once(draft)
                drafts.append(kept)
                self._tokens += sum(each.tokens for each in kept.attempt.asked if each.role == "coder")
        return drafts

    def _spent(self) -> bool:
        limit = self._context.agent.tokens_in_all
        return limit is not None and self._tokens >= limit

    def _advise(self, item: tuple[str, Trial]) -> _Advice:
        prompt = render("judge", self._context.values(item[1]))
        request = self._request(prompt, prompt.messages, 0)
        answer = self._answers.of(request)
        found = read_change(answer) if isinstance(answer, ModelAnswer) else answer
        asked = _asked(self._context.agent, "judge", request, answer, found)
        return _Advice(asked=asked, change=found if isinstance(found, str) else None)

    def _write(self, plan: _Plan) -> Draft:
        context = self._context
        contract = context.contract(plan.parent)
        prompt = render("coder", {**context.values(plan.parent), "change": plan.change})
        messages = prompt.messages
        asked = [plan.judged] if plan.judged is not None else []
        for _ in range(context.agent.repairs + 1):
            request = self._request(prompt, messages, plan.number)
            answer = self._answers.of(request)
            found = self._read(answer, plan, contract.includes)
            asked.append(_asked(context.agent, "coder", request, answer, found))
            if isinstance(found, str) or isinstance(answer, NoAnswer) or found.outcome not in REPAIRABLE:
                break
            repair = render("repair", {"reason": found.reason, "fence": contract.fence})
            messages += (
                Message(role="assistant", content=cut(answer.text, _QUOTED_AT_MOST) or "(nothing)"),
                Message(role="user", content=repair.user),
            )
        return _draft(plan, found, tuple(asked))

    def _read(
        self, answer: ModelAnswer | NoAnswer, plan: _Plan, includes: Sequence[str]
    ) -> str | Unusable | NoAnswer:
        if isinstance(answer, NoAnswer):
            return answer
        found = read_source(answer, backend(plan.parent.variant.backend).language, includes)
        if isinstance(found, str) and digest_bytes(found.encode()) in self._known:
            return Unusable(outcome=AnswerOutcome.REPEATED, reason="the same source was tried before")
        return found

    def _once(self, draft: Draft) -> Draft:
        """Concurrent attempts may write the same source: the first one counts."""
        source = draft.attempt.source
        if source is None or source not in self._known:
            self._known |= {source} if source is not None else set()
            return draft
        attempt = msgspec.structs.replace(
            draft.attempt,
            outcome=AnswerOutcome.REPEATED,
            reason="the same source as an earlier attempt of this round",
            source=None,
        )
        return msgspec.structs.replace(draft, attempt=attempt, text=None)

    def _unasked(self, plan: _Plan) -> Draft:
        limit = self._context.agent.tokens_in_all
        spent = Unusable(
            outcome=AnswerOutcome.BUDGET_SPENT, reason=f"{self._tokens} of {limit} tokens are used"
        )
        return _draft(plan, spent, (plan.judged,) if plan.judged is not None else ())

    def _request(self, prompt: Prompt, messages: tuple[Message, ...], number: int) -> ModelRequest:
        agent = self._context.agent
        return ModelRequest(
            base_url=agent.base_url,
            model=agent.model,
            temperature=agent.temperature,
            tokens_at_most=agent.tokens_at_most,
            seed=self._context.seed + 1000 * self._context.round + number,
            messages=messages,
            template=prompt.template,
        )


def _has_source(context: RoundContext, trial: Trial) -> bool:
    implementation = context.spec.implementations.get(trial.variant.implementation)
    return implementation is not None and implementation.call is None


def _draft(plan: _Plan, found: str | Unusable | NoAnswer, asked: tuple[ModelCall, ...]) -> Draft:
    attempt = Attempt(
        number=plan.number,
        parent=plan.parent.variant.id,
        change=plan.change,
        outcome=AnswerOutcome.USED if isinstance(found, str) else found.outcome,
        reason=None if isinstance(found, str) else found.reason,
        source=digest_bytes(found.encode()) if isinstance(found, str) else None,
        asked=asked,
    )
    return Draft(attempt=attempt, parent=plan.parent, text=found if isinstance(found, str) else None)


def _asked(
    agent: Agent,
    role: Role,
    request: ModelRequest,
    answer: ModelAnswer | NoAnswer,
    found: str | Unusable | NoAnswer,
) -> ModelCall:
    """The record of a request."""
    known = answer if isinstance(answer, ModelAnswer) else None
    return ModelCall(
        role=role,
        template=request.template,
        model=(known.model if known is not None else None) or agent.model,
        entry=request.entry,
        outcome=AnswerOutcome.USED if isinstance(found, str) else found.outcome,
        reason=None if isinstance(found, str) else found.reason,
        prompt_tokens=known.prompt_tokens if known is not None else None,
        completion_tokens=known.completion_tokens if known is not None else None,
        cost=_cost(agent, known),
        currency=agent.price.currency if agent.price is not None else None,
        seconds=known.seconds if known is not None else None,
        tries=answer.tries,
    )


def _cost(agent: Agent, answer: ModelAnswer | None) -> float | None:
    if agent.price is None or answer is None:
        return None
    if answer.prompt_tokens is None or answer.completion_tokens is None:
        return None
    return (
        answer.prompt_tokens * agent.price.prompt + answer.completion_tokens * agent.price.completion
    ) / 1e6


def _batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _concurrently(work: Callable[[Item], Result], batch: Sequence[Item]) -> list[Result]:
    """One thread per item; the first error cancels those that have not started."""
    if len(batch) == 1:
        return [work(batch[0])]
    with concurrent.futures.ThreadPoolExecutor(len(batch)) as pool:
        futures = [pool.submit(work, item) for item in batch]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)
