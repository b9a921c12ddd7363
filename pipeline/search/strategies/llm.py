"""Sources by a language model: round 0 measures the starting point, later rounds extend the best variants.

An attempt without a usable source is recorded with its reason. Only the pipeline's verdict counts; what the
model claims about its source does not.
"""

import functools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, Unfit, WrittenSource
from pipeline.search.agents.agent_round import Draft, write_round
from pipeline.search.agents.agent_settings import Agent
from pipeline.search.agents.answer_cache import Answers
from pipeline.search.agents.chat_client import Client, check_package, key_of
from pipeline.search.agents.round_context import RoundContext, read_text
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategy import (
    BriefRequest,
    Budget,
    SearchInputs,
    Strategy,
    WriterContext,
    settings_of,
)
from pipeline.search.trial_diagnosis import diagnosed


def propose(
    space: Space, history: Sequence[Trial], budget: Budget, writer: WriterContext
) -> list[Proposal | Unfit]:
    """The starting points in round 0, then what the model writes; stored answers are not requested again.

    Raises
    ------
    AgentError
        The endpoint cannot be reached or denies access; in round 0: its key or the package is missing.
    ConfigError
        The spec was made for another strategy.
    """
    agent, brief = budget.settings(Agent, "llm"), writer.spec.brief
    if brief is None:
        raise ConfigError("search: the plan was made for another strategy than llm; plan again")
    if budget.round == 0:
        if budget.rounds > 1:
            check_package()
            key_of(agent)  # the next round's: without it, this one would be measured in vain
        return _start(space, agent, writer)
    context = RoundContext(
        spec=writer.spec,
        brief=brief,
        agent=agent,
        trials=history,
        rounds=writer.attempts,
        round=budget.round,
        wanted=budget.variants or 1,
        seed=budget.seed,
        repository=Path(writer.repository),
        text=writer.text,
    )
    return _write(context, writer)


def _start(space: Space, agent: Agent, writer: WriterContext) -> list[Proposal | Unfit]:
    """The given source in the place of the first implementation's, or the defaults of all with a source."""
    implementations = writer.spec.implementations
    defaults = {name: point for name, point in space.defaults() if implementations[name].call is None}
    if agent.start is None:
        return [Proposal(implementation=name, tunables=point) for name, point in defaults.items()]
    name, point = next(iter(defaults.items()))
    author = Author(writer="llm", name=agent.start, details={"role": "start"})
    source = WrittenSource(text=read_text(Path(writer.repository, agent.start)), author=author)
    return [Proposal(implementation=name, tunables=point, source=source)]


def _write(context: RoundContext, writer: WriterContext) -> list[Proposal | Unfit]:
    started = time.monotonic()

    @functools.cache
    def client() -> Client:
        return Client(context.agent, key_of(context.agent))

    answers = Answers(Path(writer.store), client)
    try:
        drafts = write_round(context, answers)
    finally:
        if client.cache_info().currsize:
            client().close()
    _report(context, answers, drafts, time.monotonic() - started)
    return [_proposal(context.agent, draft) for draft in drafts]


def _proposal(agent: Agent, draft: Draft) -> Proposal | Unfit:
    name, tunables = draft.parent.point
    attempt = draft.attempt
    coder = [asked for asked in attempt.asked if asked.role == "coder"]
    details = {"change": attempt.change} if attempt.change else {}
    if coder:
        last = coder[-1]
        details |= {"answer": last.entry, "template": f"{last.template.name} {last.template.version}"}
    author = Author(writer="llm", name=coder[-1].model if coder else agent.model, details=details)
    if draft.text is None:
        reason = f"{attempt.outcome}: {attempt.reason}"
        failure = Failure(outcome=Outcome.NOT_WRITTEN, reason=reason)
        return Unfit(implementation=name, author=author, failure=failure, attempt=attempt)
    source = WrittenSource(text=draft.text, author=author, parents=(draft.parent.variant.id,))
    return Proposal(implementation=name, tunables=tunables, source=source, attempt=attempt)


def _report(context: RoundContext, answers: Answers, drafts: Sequence[Draft], seconds: float) -> None:
    asked = [each for draft in drafts for each in draft.attempt.asked]
    prompt = sum(each.prompt_tokens or 0 for each in asked)
    completion = sum(each.completion_tokens or 0 for each in asked)
    costs = [each.cost for each in asked if each.cost is not None]
    price = context.agent.price
    cost = f", {sum(costs):.4g} {price.currency}" if costs and price is not None else ""
    print(
        f"agents {context.spec.kernel}, round {context.round}: {len(drafts)} attempts,"
        f" {answers.received} answers received and {answers.kept} kept,"
        f" {prompt:,} + {completion:,} tokens{cost} · {seconds:.1f} s",
        file=sys.stderr,
    )
    for draft in drafts:
        if draft.attempt.reason is not None:
            print(
                f"  attempt {draft.attempt.number}: {draft.attempt.outcome}: {draft.attempt.reason}",
                file=sys.stderr,
            )


def inputs(search: Search) -> SearchInputs:
    """Kernels of the category as examples, and the source to start from."""
    agent = settings_of(search, Agent, "llm")
    return SearchInputs(brief=BriefRequest(exemplars=agent.exemplars, start=agent.start))


def problems(search: Search) -> Iterator[str]:
    """A single round would only measure the starting point."""
    if search.rounds < 2:
        yield f"rounds: llm needs at least 2, the first one measures where it starts; got {search.rounds}"


STRATEGY = Strategy(
    description="Sources that a language model writes and improves.",
    write=propose,
    settings=Agent,
    problems=problems,
    inputs=inputs,
    diagnose=diagnosed,
)
