"""One round: a RoundContext in, drafts out. The judge looks at each chosen variant once, the coder writes.

Whatever an endpoint answers, the round goes on with what it has, and each attempt says how it ended. Only an
endpoint that is not there, or does not let us in, ends the round: what it answered until then is kept.
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

MENDABLE = frozenset(
    {
        *(AnswerOutcome.NO_CODE, AnswerOutcome.SEVERAL_BLOCKS, AnswerOutcome.WRONG_LANGUAGE),
        *(AnswerOutcome.TRUNCATED, AnswerOutcome.EMPTY, AnswerOutcome.TOO_LONG),
        *(AnswerOutcome.FORBIDDEN_INCLUDE, AnswerOutcome.REPEATED),
    }
)
"""What telling the model may mend; a refusal is respected."""
_QUOTED_AT_MOST = 8_000  # characters of an unusable answer that are sent back

Item = TypeVar("Item")
Result = TypeVar("Result")


class Draft(Record, frozen=True, kw_only=True):
    """One attempt of a round."""

    attempt: Attempt
    parent: Trial
    text: str | None
    """The source that was written; None where there is none."""


class _Advice(Record, frozen=True, kw_only=True):
    """What the judge said of a variant."""

    asked: ModelCall
    change: str | None


class _Plan(Record, frozen=True, kw_only=True):
    """One attempt before it begins."""

    number: int
    parent: Trial
    change: str | None
    judged: ModelCall | None
    """By the first attempt that its advice was asked for."""


def write_round(scene: RoundContext, answers: Answers) -> list[Draft]:
    """The attempts of a round, in their order; deterministic but for what the endpoint answers.

    Raises
    ------
    AgentError
        The endpoint is not there or does not let us in; the text says how many answers are kept.
    """
    writable = [trial for trial in scene.trials if _has_source(scene, trial)]
    chosen = choose(scene.agent, writable, scene.parents, scene.wanted)
    writer = _Writer(scene, answers)
    try:
        advice = writer.advise({trial.variant.id: trial for trial in chosen})
        return writer.write(chosen, advice)
    except AgentError as error:
        count = answers.kept + answers.received
        plural = "" if count == 1 else "s"
        raise AgentError(f"{error}; {count} answer{plural} of this round kept: run again to go on") from None


class _Writer:
    """Asks for a round; `known` are the sources that were tried."""

    def __init__(self, scene: RoundContext, answers: Answers) -> None:
        self._scene = scene
        self._answers = answers
        self._tokens = scene.tokens_used
        self._known = {digest_bytes(scene.text(trial.variant).encode()) for trial in scene.trials}

    def advise(self, trials: dict[str, Trial]) -> dict[str, _Advice]:
        """By variant; without those for which no tokens are left."""
        found: dict[str, _Advice] = {}
        for batch in _batches(list(trials.items()), self._scene.agent.requests_at_once):
            if not self._spent():
                for (variant, _), advice in zip(batch, _side_by_side(self._advise, batch), strict=True):
                    found[variant] = advice
                    self._tokens += advice.asked.tokens
        return found

    def write(self, chosen: Sequence[Trial], advice: dict[str, _Advice]) -> list[Draft]:
        """Attempts, as many at once as the endpoint allows."""
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
        for batch in _batches(plans, self._scene.agent.requests_at_once):
            if self._spent():
                drafts += [self._unasked(plan) for plan in batch]
                continue
            for draft in _side_by_side(self._write, batch):
                kept = self._once(draft)
                drafts.append(kept)
                self._tokens += sum(each.tokens for each in kept.attempt.asked if each.role == "coder")
        return drafts

    def _spent(self) -> bool:
        limit = self._scene.agent.tokens_in_all
        return limit is not None and self._tokens >= limit

    def _advise(self, item: tuple[str, Trial]) -> _Advice:
        prompt = render("judge", self._scene.values(item[1]))
        request = self._request(prompt, prompt.messages, 0)
        answer = self._answers.of(request)
        found = read_change(answer) if isinstance(answer, ModelAnswer) else answer
        asked = _asked(self._scene.agent, "judge", request, answer, found)
        return _Advice(asked=asked, change=found if isinstance(found, str) else None)

    def _write(self, plan: _Plan) -> Draft:
        scene = self._scene
        contract = scene.contract(plan.parent)
        prompt = render("coder", {**scene.values(plan.parent), "change": plan.change})
        messages = prompt.messages
        asked = [plan.judged] if plan.judged is not None else []
        for _ in range(scene.agent.repairs + 1):
            request = self._request(prompt, messages, plan.number)
            answer = self._answers.of(request)
            found = self._read(answer, plan, contract.includes)
            asked.append(_asked(scene.agent, "coder", request, answer, found))
            if isinstance(found, str) or isinstance(answer, NoAnswer) or found.outcome not in MENDABLE:
                break
            mend = render("repair", {"reason": found.reason, "fence": contract.fence})
            messages += (
                Message(role="assistant", content=cut(answer.text, _QUOTED_AT_MOST) or "(nothing)"),
                Message(role="user", content=mend.user),
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
        """Attempts side by side may write the same source: the first one counts."""
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
        limit = self._scene.agent.tokens_in_all
        spent = Unusable(
            outcome=AnswerOutcome.BUDGET_SPENT, reason=f"{self._tokens} of {limit} tokens are used"
        )
        return _draft(plan, spent, (plan.judged,) if plan.judged is not None else ())

    def _request(self, prompt: Prompt, messages: tuple[Message, ...], number: int) -> ModelRequest:
        agent = self._scene.agent
        return ModelRequest(
            base_url=agent.base_url,
            model=agent.model,
            temperature=agent.temperature,
            tokens_at_most=agent.tokens_at_most,
            seed=self._scene.seed + 1000 * self._scene.round + number,
            messages=messages,
            template=prompt.template,
        )


def _has_source(scene: RoundContext, trial: Trial) -> bool:
    implementation = scene.spec.implementations.get(trial.variant.implementation)
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
    """What is recorded of a question."""
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


def _side_by_side(work: Callable[[Item], Result], batch: Sequence[Item]) -> list[Result]:
    """All of them, each in a thread of its own; the first error ends those that have not begun."""
    if len(batch) == 1:
        return [work(batch[0])]
    with concurrent.futures.ThreadPoolExecutor(len(batch)) as pool:
        futures = [pool.submit(work, item) for item in batch]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)
