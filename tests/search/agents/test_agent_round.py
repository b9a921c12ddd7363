"""A round against a scripted endpoint: what is written, what is not, and what is asked twice."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.records.errors import AgentError
from pipeline.records.search.model_attempt import AnswerOutcome, Attempt
from pipeline.search.agents.agent_round import Draft, write_round
from pipeline.search.agents.agent_settings import Agent, Price
from pipeline.search.agents.answer_cache import Answers
from pipeline.search.agents.chat_client import Client, Key
from pipeline.search.agents.round_context import RoundContext
from tests.paths import ROOT
from tests.search.agents.making import NOBODY, agent, kinds, spec, text_of, trial
from tests.search.agents.server import Reply, Script, code, failing, serving

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None, reason="needs the extra llm: pip install 'kernelmill[llm]'"
)
START = trial("plain", 800.0)


def scene(settings: Agent, wanted: int = 1, rounds: list[list[Attempt]] | None = None) -> RoundContext:
    """Round 1, after the plain source was measured."""
    made = spec(settings)
    assert made.brief is not None
    return RoundContext(
        spec=made,
        brief=made.brief,
        agent=settings,
        trials=[START],
        rounds=rounds or [[]],
        round=1,
        wanted=wanted,
        seed=0,
        repository=ROOT,
        text=lambda _: text_of("plain.cpp"),
    )


def play(root: Path, script: Script, wanted: int = 1, **settings: object) -> tuple[list[Draft], Answers]:
    """Write a round against a script; nobody waits between tries."""
    with serving(script) as url:
        made = agent(url, **settings)
        answers = Answers(root, lambda: Client(made, Key("sk-canary"), wait=lambda _: None))
        return write_round(scene(made, wanted), answers), answers


def test_the_judge_is_asked_once_for_all_samples(tmp_path: Path) -> None:
    """Its change goes into every prompt; samples of one prompt differ by their seed."""
    script = Script(coder=[code("once.cpp"), code("vectors.cpp")])
    drafts, _ = play(tmp_path, script, wanted=2)
    assert [draft.text for draft in drafts] == [text_of("once.cpp"), text_of("vectors.cpp")]
    roles = [[asked.role for asked in draft.attempt.asked] for draft in drafts]
    assert roles == [["judge", "coder"], ["coder"]]
    prompts = [request["messages"][1]["content"] for request in script.asked[1:]]
    assert all("let the compiler use vector instructions" in prompt for prompt in prompts)
    assert [request["seed"] for request in script.asked[1:]] == [1000, 1001]
    assert {draft.attempt.parent for draft in drafts} == {START.variant.id}


def test_unusable_answers_are_sent_back_once(tmp_path: Path) -> None:
    """With what is wrong with them; then the attempt ends with its type."""
    script = Script(coder=[Reply(text="Use vectors."), code("once.cpp")])
    drafts, _ = play(tmp_path, script)
    assert drafts[0].text == text_of("once.cpp")
    assert [asked.outcome for asked in drafts[0].attempt.asked] == ["used", "no_code", "used"]
    complaint = script.asked[-1]["messages"][-1]["content"]
    assert "This answer cannot be used: no block of code." in complaint

    never = Script(coder=[Reply(text="Use vectors.")])
    drafts, _ = play(tmp_path / "never", never)
    assert (drafts[0].attempt.outcome, drafts[0].attempt.reason) == ("no_code", "no block of code")
    assert len(never.asked) == 3


def test_a_round_goes_on_with_what_it_has(tmp_path: Path) -> None:
    """Refusal, busy endpoint, broken protocol and a right answer: each ends as its own outcome."""
    script = Script(
        coder=[
            Reply(text="I'm sorry, but I can't help with that."),
            failing(503, "overloaded"),
            failing(503, "overloaded"),
            Reply(body=b"<html>"),
            Reply(body=b"<html>"),
            code("vectors.cpp"),
        ]
    )
    drafts, _ = play(tmp_path, script, wanted=4, tries=2, repairs=0)
    assert kinds([draft.attempt for draft in drafts]) == ["refused", "server_error", "malformed", "used"]
    assert all(draft.attempt.reason for draft in drafts[:3])


def test_without_a_judgement_the_coder_goes_on(tmp_path: Path) -> None:
    """The judge's trouble is recorded, and ends nothing."""
    drafts, _ = play(tmp_path, Script(coder=[code("once.cpp")], judge=[Reply(text="It is perfect.")]))
    assert drafts[0].attempt.change is None
    assert drafts[0].attempt.asked[0].outcome == "no_change"
    assert drafts[0].text == text_of("once.cpp")


def test_the_same_source_is_no_new_attempt(tmp_path: Path) -> None:
    """Neither the parent again nor what another attempt of the round wrote."""
    script = Script(coder=[code("plain.cpp"), code("once.cpp"), code("once.cpp")])
    drafts, _ = play(tmp_path, script, wanted=3, repairs=0)
    assert kinds([draft.attempt for draft in drafts]) == ["repeated", "used", "repeated"]
    assert drafts[2].text is None


def test_answers_are_paid_for_once(tmp_path: Path) -> None:
    """The same round again asks nobody: not even a key or an endpoint is needed."""
    drafts, first = play(tmp_path, Script(coder=[Reply(text="Use vectors."), code("once.cpp")]))
    assert (first.received, first.kept) == (3, 0)

    def nobody() -> Client:
        raise AssertionError("asked again")

    settings = agent(kept_url(tmp_path))
    again = Answers(tmp_path, nobody)
    assert write_round(scene(settings), again) == drafts
    assert (again.received, again.kept) == (0, 3)


def kept_url(root: Path) -> str:
    """The endpoint that the kept answers came from."""
    from pipeline.records.record import read_record
    from pipeline.records.search.model_attempt import ModelAnswer

    return read_record(next(root.glob("store/answers/*/*/record.json")), ModelAnswer).request.base_url


def test_prompts_and_answers_are_kept_as_files(tmp_path: Path) -> None:
    """To be read by a human, beside the record; no key among them."""
    drafts, _ = play(tmp_path, Script(coder=[code("once.cpp")]))
    entry = drafts[0].attempt.asked[-1].entry
    folder = tmp_path / "store" / "answers" / entry[:2] / entry
    assert "## The one change to make" in (folder / "prompt.md").read_text()
    assert "```cpp" in (folder / "answer.md").read_text()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"sk-canary" not in path.read_bytes()


def test_a_dead_endpoint_says_what_is_kept(tmp_path: Path) -> None:
    """One line; what was answered before it died is not lost."""
    script = Script(coder=[code("once.cpp"), failing(401, "expired")])
    with pytest.raises(AgentError) as caught:
        play(tmp_path, script, wanted=2)
    assert str(caught.value).endswith(
        "HTTP 401: expired (after 1 try); 2 answers of this round kept: run again to go on"
    )
    assert len(list(tmp_path.glob("store/answers/*/*/record.json"))) == 2


def test_tokens_cost_and_time_are_recorded(tmp_path: Path) -> None:
    """As the endpoint counts; without a price no cost, without counts no tokens."""
    price = Price(prompt=2.0, completion=10.0, currency="USD", source="made up")
    drafts, _ = play(
        tmp_path, Script(coder=[code("once.cpp"), Reply(text="x", counts=False)]), 2, price=price
    )
    used, silent = drafts[0].attempt.asked[-1], drafts[1].attempt.asked[0]
    assert used.prompt_tokens and used.completion_tokens and used.seconds
    assert used.cost == pytest.approx((used.prompt_tokens * 2 + used.completion_tokens * 10) / 1e6)
    assert used.currency == "USD"
    assert (silent.prompt_tokens, silent.completion_tokens, silent.cost) == (None, None, None)
    free, _ = play(tmp_path / "free", Script(coder=[code("once.cpp")]))
    assert free[0].attempt.asked[-1].cost is None


def test_spent_tokens_end_the_asking(tmp_path: Path) -> None:
    """What the earlier rounds used counts; further attempts are recorded as not begun."""
    drafts, answers = play(tmp_path, Script(coder=[code("once.cpp")]), 3, tokens_in_all=2000)
    assert kinds([draft.attempt for draft in drafts]) == ["used", "budget_spent", "budget_spent"]
    assert answers.received == 2
    used = [drafts[0].attempt]
    settings = agent(NOBODY, tokens_in_all=2000)
    later = write_round(scene(settings, 1, [[], used]), answers)
    assert later[0].attempt.outcome is AnswerOutcome.BUDGET_SPENT
    assert later[0].attempt.reason is not None
    assert later[0].attempt.reason.endswith("of 2000 tokens are used")


def test_side_by_side_is_as_one_after_the_other(tmp_path: Path) -> None:
    """Several requests at once give the same attempts, in their order."""
    script = Script(coder=[code("once.cpp")])
    drafts, _ = play(tmp_path, script, wanted=4, requests_at_once=4)
    assert kinds([draft.attempt for draft in drafts]) == ["used", "repeated", "repeated", "repeated"]
    assert [draft.attempt.number for draft in drafts] == [0, 1, 2, 3]
