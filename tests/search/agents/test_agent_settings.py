"""Settings of a language model hold no secret, and every limit is one."""

import pytest

from pipeline.records.search.model_attempt import AnswerOutcome, Attempt, total
from tests.search.agents.making import agent


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"base_url": "api.openai.com/v1"},
            "base_url: expected http://host/v1, https://host:port/v1 or the like, got 'api",
        ),
        ({"base_url": "http://host:99999/v1"}, "the like, got 'http://host:99999/v1'"),
        ({"model": " "}, "model: expected a model as the endpoint calls it, got none"),
        ({"base_url": "https://me:sk-1@host/v1"}, "base_url: no user, password or query"),
        (
            {"base_url": "https://host/v1?api-key=sk-1"},
            "base_url: no user, password or query",
        ),
        ({"key_variable": "sk-proj-abcdef"}, "key_variable: expected the name of an environment variable"),
        ({"key_variable": "AWS_SECRET"}, "that ends with _API_KEY"),
        ({"tries": 0}, "tries: expected at least 1, got 0"),
        ({"requests_at_once": 0}, "requests_at_once: expected at least 1, got 0"),
        ({"seconds_at_most": 0}, "seconds_at_most: expected at least 0.001, got 0"),
    ],
)
def test_what_is_wrong_is_named(settings: dict[str, object], reason: str) -> None:
    """One line, without the secret that stood in the wrong place."""
    with pytest.raises(ValueError, match="expected|no user") as caught:
        agent(**settings)
    assert reason in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_an_attempt_is_used_or_has_a_reason() -> None:
    """A source without use, or a failure without its reason, cannot be written down."""
    with pytest.raises(ValueError, match="an attempt with the outcome 'used' and the source None"):
        Attempt(number=0, parent=None, change=None, outcome=AnswerOutcome.USED)
    with pytest.raises(ValueError, match="an attempt with the outcome 'refused'"):
        Attempt(number=0, parent=None, change=None, outcome=AnswerOutcome.REFUSED)


def test_a_part_does_not_pass_for_the_whole() -> None:
    """A sum with something unknown in it is unknown; of nothing there is none."""
    assert total([1, 2]) == 3
    assert total([1, None]) is None
    assert total([]) is None
