"""The client against a scripted endpoint: busy, slow, broken, absent, and one that repeats our secrets."""

import datetime
import email.utils
import sys

import pytest

from pipeline.records.errors import AgentError
from pipeline.records.record import to_json
from pipeline.records.search.model_attempt import ModelAnswer
from pipeline.search.agents.chat_client import MISSING, Client, Key, NoAnswer, key_of
from tests.search.agents.making import NOBODY, agent, request
from tests.search.agents.server import Reply, Script, failing, serving

CANARY = "sk-canary-0815"


@pytest.fixture(autouse=True)
def package(request: pytest.FixtureRequest) -> None:
    """The extra `llm`; one test says what happens without it."""
    if "without_the_package" not in request.node.name:
        pytest.importorskip("openai", reason="needs the extra llm: pip install 'kernelmill[llm]'")


def ask(*replies: Reply, **settings: object) -> tuple[ModelAnswer | NoAnswer, Script, list[float]]:
    """Ask once; the answer, the script, and how long was waited between the tries."""
    waits: list[float] = []
    script = Script(coder=replies)
    with serving(script) as url:
        client = Client(agent(url, **settings), Key(CANARY), wait=waits.append)
        try:
            return client.ask(request(url)), script, waits
        finally:
            client.close()


def test_an_answer_with_its_counts() -> None:
    """Text, model as the endpoint names it, tokens and seconds; the key goes into the header."""
    answer, script, _ = ask(Reply(text="Good morning"))
    assert isinstance(answer, ModelAnswer)
    assert (answer.text, answer.model, answer.finish) == ("Good morning", "scripted-scripted", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.tries) == (3, 3, 1)
    assert script.authorizations == [f"Bearer {CANARY}"]
    assert script.asked[0]["max_tokens"] == 1000
    assert "temperature" not in script.asked[0]


def test_the_other_name_of_the_limit() -> None:
    """OpenAI's newer models know `max_completion_tokens` only."""
    _, script, _ = ask(Reply(text="x"), tokens_parameter="max_completion_tokens", temperature=0.5)
    assert script.asked[0]["max_completion_tokens"] == 1000
    assert "max_tokens" not in script.asked[0]


def test_counts_that_are_not_told_are_absent() -> None:
    """No usage, no numbers."""
    answer, _, _ = ask(Reply(text="x", counts=False))
    assert isinstance(answer, ModelAnswer)
    assert (answer.prompt_tokens, answer.completion_tokens) == (None, None)


def test_rate_limits_are_waited_for() -> None:
    """`Retry-After` in seconds and as a date; then the answer."""
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2)
    date = email.utils.format_datetime(soon, usegmt=True)
    limits = [failing(429, "slow down", Retry_After="1.5"), failing(429, "slow down", Retry_After=date)]
    answer, _, waits = ask(*limits, Reply(text="x"))
    assert isinstance(answer, ModelAnswer)
    assert answer.tries == 3
    assert waits[0] == 1.5
    assert 0.0 < waits[1] <= 2.0


def test_a_long_delay_ends_the_attempt() -> None:
    """An endpoint that wants more than `wait_at_most` ends the attempt at once, typed."""
    answer, script, waits = ask(failing(429, "quota of the minute", Retry_After="600"))
    assert isinstance(answer, NoAnswer)
    assert answer.outcome == "rate_limited"
    assert answer.reason == (
        "HTTP 429: quota of the minute; it asks for a delay of 600 s, wait_at_most is 2 s (after 1 try)"
    )
    assert (len(script.asked), waits) == (1, [])


@pytest.mark.parametrize(
    ("reply", "outcome", "reason", "tries"),
    [
        (failing(429, "busy"), "rate_limited", "HTTP 429: busy (after 3 tries)", 3),
        (failing(503, "overloaded"), "server_error", "HTTP 503: overloaded (after 3 tries)", 3),
        (failing(500, "oops"), "server_error", "HTTP 500: oops (after 3 tries)", 3),
        (failing(400, "too long"), "rejected", "HTTP 400: too long (after 1 try)", 1),
        (Reply(body=b"<html>"), "malformed", "not JSON: ", 3),
        (Reply(body=b"{}"), "malformed", "JSON without choices (after 3 tries)", 3),
        (Reply(body=b'{"choices": [{}]}'), "malformed", "a choice without a message (after 3 tries)", 3),
        (Reply(text="x" * 5000, hang_up=True), "malformed", "the answer broke off: ", 3),
        (Reply(text="x" * (9 << 20)), "malformed", "more than 8388608 bytes (after 1 try)", 1),
    ],
)
def test_each_failure_is_typed(reply: Reply, outcome: str, reason: str, tries: int) -> None:
    """Bounded tries, then an outcome with its reason."""
    answer, script, _ = ask(reply)
    assert isinstance(answer, NoAnswer)
    assert (answer.outcome, answer.tries, len(script.asked)) == (outcome, tries, tries)
    assert answer.reason.startswith(reason)


def test_slow_answers_time_out() -> None:
    """One that does not begin, and one that drips: a time limit of the whole answer catches both."""
    for reply in (Reply(text="x", seconds=1.0), Reply(text="x" * 40, drip=0.02)):
        answer, _, _ = ask(reply, seconds_at_most=0.3, tries=1)
        assert isinstance(answer, NoAnswer)
        assert (answer.outcome, answer.reason) == ("timed_out", "no answer in 0.3 s (after 1 try)")


def test_backoff_doubles() -> None:
    """Before each further try twice as long."""
    _, _, waits = ask(failing(503, "x"), backoff_seconds=0.5, tries=4, wait_at_most=9)
    assert waits == [0.5, 1.0, 2.0]


def test_a_dead_endpoint_is_one_line() -> None:
    """Nobody listens: an error that names the address and the cause, after bounded tries."""
    waits: list[float] = []
    client = Client(agent(), Key(CANARY), wait=waits.append)
    with pytest.raises(
        AgentError, match=r"^http://127.0.0.1:9/v1: no connection: .*refused.* \(after 3 tries\)$"
    ):
        client.ask(request())
    assert len(waits) == 2
    assert NOBODY in agent().base_url


@pytest.mark.parametrize(
    "reply",
    [
        failing(401, f"Incorrect API key provided: {CANARY}"),
        failing(403, "not for you"),
        failing(404, "no such model"),
        failing(429, "You exceeded your current quota", error="insufficient_quota"),
    ],
)
def test_what_no_further_try_mends_ends_the_round(reply: Reply) -> None:
    """One request, one error, and no key in it, though the endpoint repeats it."""
    with pytest.raises(AgentError) as caught:
        ask(reply)
    assert "(after 1 try)" in str(caught.value)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_redirect_takes_the_key_along() -> None:
    """A redirect is an answer that is not taken."""
    elsewhere = Script(coder=[Reply(text="x")])
    with serving(elsewhere) as url:
        answer, _, _ = ask(Reply(status=307, headers={"Location": f"{url}/chat/completions"}))
    assert isinstance(answer, NoAnswer)
    assert answer.outcome == "rejected"
    assert elsewhere.authorizations == []


def test_an_echoed_key_is_not_kept() -> None:
    """An endpoint that puts the request's headers into its answer: the record holds no key."""
    answer, _, _ = ask(Reply(text="your headers:", echo=True))
    assert isinstance(answer, ModelAnswer)
    assert "Bearer [key]" in answer.text
    assert CANARY.encode() not in to_json(answer)


def test_a_key_does_not_show_itself() -> None:
    """Not in its repr, not in an f-string."""
    assert CANARY not in f"{Key(CANARY)} {Key(CANARY)!r}"


def test_a_missing_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that is not set, and what to do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AgentError, match=r"^\$OPENAI_API_KEY is not set: export it, or say search.llm"):
        key_of(agent(key_variable="OPENAI_API_KEY"))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(AgentError) as caught:
        Client(agent(), Key(None))
    assert str(caught.value) == MISSING
