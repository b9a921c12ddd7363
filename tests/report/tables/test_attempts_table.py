"""What language models were asked: one row per attempt, sums per kernel, and nothing that is not known."""

import msgspec

from pipeline.records.results.collection import Collected
from pipeline.records.results.variant import Generated
from pipeline.records.search.model_attempt import AnswerOutcome, Attempt, ModelCall, Template
from pipeline.report.tables.attempts_table import agent_uses, attempts_table, together
from pipeline.search.trial_diagnosis import _row as row_of
from tests.search.agents.making import agent, spec

CODER = Template(name="coder", version="7", digest="d")
ANSWERED = ModelCall(
    role="coder",
    template=CODER,
    model="m",
    entry="e",
    outcome=AnswerOutcome.USED,
    prompt_tokens=100,
    completion_tokens=10,
    cost=0.5,
    currency="USD",
    seconds=2.0,
    tries=1,
)
BUSY = ModelCall(
    role="coder",
    template=CODER,
    model="m",
    entry="f",
    outcome=AnswerOutcome.RATE_LIMITED,
    reason="HTTP 429",
    tries=3,
)
USED = Attempt(
    number=0,
    parent="p",
    change="c",
    outcome=AnswerOutcome.USED,
    source="s",
    variant="v",
    asked=(ANSWERED, ANSWERED),
)
LOST = Attempt(
    number=1, parent="p", change="c", outcome=AnswerOutcome.RATE_LIMITED, reason="HTTP 429", asked=(BUSY,)
)


def collected(*attempts: Attempt) -> Collected:
    """One task whose generate two rows share, as tasks do that differ in how they are judged."""
    made = spec(agent())
    assert made.brief is not None
    row = row_of(made, made.brief)
    generated = Generated(key="k", round=1, variants=(), pruned=(), space={}, attempts=attempts)
    return Collected(results=(), generated=((row, generated), (row, generated)))


def test_one_row_per_attempt() -> None:
    """With its tokens, cost and seconds; what was not answered has none, not zero."""
    used, lost = attempts_table(collected(USED, LOST)).to_pylist()
    assert (used["prompt_tokens"], used["cost"], used["seconds"], used["tries"]) == (200, 1.0, 4.0, 2)
    assert (used["template"], used["round"], used["variant"]) == ("coder 7", 1, "v")
    assert (lost["outcome"], lost["tries"]) == ("rate_limited", 3)
    assert (lost["prompt_tokens"], lost["cost"], lost["seconds"]) == (None, None, None)


def test_sums_per_kernel() -> None:
    """Of all that was answered; a count that is missing makes the sum unknown."""
    (use,) = agent_uses(collected(USED, LOST))
    assert (use.kernel, use.attempts, use.sources, use.requests) == ("softmax", 2, 1, 3)
    assert (use.prompt_tokens, use.completion_tokens, use.cost, use.currency) == (200, 20, 1.0, "USD")
    silent = msgspec.structs.replace(ANSWERED, prompt_tokens=None)
    (use,) = agent_uses(collected(msgspec.structs.replace(USED, asked=(ANSWERED, silent))))
    assert use.prompt_tokens is None


def test_without_a_language_model_there_is_nothing() -> None:
    """No rows, no sums."""
    assert attempts_table(collected()).num_rows == 0
    assert agent_uses(collected()) == ()


def test_parts_of_an_experiment_add_up() -> None:
    """Kernel by kernel; a sum of which a part is unknown is unknown."""
    (one,) = agent_uses(collected(USED))
    other = msgspec.structs.replace(one, kernel="other", cost=None, currency=None)
    both, apart = together([one, one, other])
    assert (both.kernel, both.attempts, both.requests) == (one.kernel, 2 * one.attempts, 2 * one.requests)
    assert both.cost == 2 * one.cost
    assert apart == other
    (unknown,) = together([one, msgspec.structs.replace(one, cost=None)])
    assert unknown.cost is None
    assert unknown.currency == "USD"
    (silent,) = agent_uses(collected(LOST))
    (whole,) = together([one, silent])
    assert (whole.attempts, whole.cost) == (2, one.cost)
