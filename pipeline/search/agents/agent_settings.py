"""Settings of the strategy `llm`: the model's endpoint, limits of its use, and which variants it extends."""

import re
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pipeline.records.environment import SECRET
from pipeline.records.record import Record, at_least

Choosing = Literal["best_of_n", "beam", "tree"]

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_AT_LEAST = {
    "tokens_at_most": 1,
    "tries": 1,
    "repairs": 0,
    "width": 1,
    "exemplars": 0,
    "requests_at_once": 1,
    "seconds_at_most": 0.001,
    "backoff_seconds": 0,
    "wait_at_most": 0,
    "exploration": 0,
}


class Price(Record, frozen=True, kw_only=True):
    """The provider's price per million tokens, as the user states it."""

    prompt: float
    """Per million prompt tokens."""
    completion: float
    """Per million completion tokens."""
    currency: str
    """For example `USD`."""
    source: str
    """Where the price is from."""


class Agent(Record, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint, the limits of its use, and which attempts are extended."""

    base_url: str
    """URL up to and including `/v1`, without user, password or query, because it is recorded."""
    model: str
    """Name of the model at the endpoint."""
    key_variable: str | None = "OPENAI_API_KEY"
    """Environment variable with the API key; null: the endpoint needs no key."""
    temperature: float | None = None
    """Sampling temperature; null: the model's default."""
    tokens_at_most: int
    """Maximum tokens per answer."""
    tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name of that limit at the endpoint; newer OpenAI models only accept the second one."""
    tokens_in_all: int | None = None
    """Budget of tokens per task, prompts and answers; null: no limit."""
    seconds_at_most: float
    """Maximum seconds per answer, from the request to the last byte."""
    tries: int
    """Maximum number of times that a request is sent if the endpoint is busy, slow or broken."""
    backoff_seconds: float
    """Seconds before the second try, doubled before each further try; a longer `Retry-After` is followed."""
    wait_at_most: float
    """Maximum seconds to wait; if the endpoint asks for more, the attempt ends."""
    repairs: int
    """How often an answer without a usable source is returned to the model with the reason."""
    requests_at_once: int
    """Maximum number of concurrent requests."""
    choosing: Choosing
    """Which variants a round extends."""
    width: int
    """Width of the beam, for `beam`."""
    exploration: float
    """For `tree`: weight of variants that were rarely extended, relative to faster ones."""
    exemplars: int
    """Maximum number of kernels of the same category that the prompt shows as examples."""
    start: str | None = None
    """A source of the repository to start from; null: the kernel's own implementations."""
    price: Price | None = None
    """Price for the cost columns; null: no cost is reported."""

    def __post_init__(self) -> None:
        """Raise ValueError for a secret in the settings, or an invalid limit."""
        if not self.model.strip():
            raise ValueError("model: expected a model as the endpoint calls it, got none")
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname or not _has_port(url):
            raise ValueError(
                "base_url: expected http://host/v1, https://host:port/v1 or the like,"
                f" got '{_without_secrets(self.base_url)}'"
            )
        if url.username or url.password or url.query or url.fragment:
            raise ValueError(
                "base_url: no user, password or query: it is recorded; the key comes from key_variable"
            )
        name = self.key_variable
        if name is not None and not (_VARIABLE.fullmatch(name) and name.endswith(SECRET)):
            raise ValueError(
                "key_variable: expected the name of an environment variable that ends with"
                f" {SECRET}: such ones are kept from the processes that run kernels"
            )
        at_least(self, **_AT_LEAST)
        if self.price is not None and min(self.price.prompt, self.price.completion) < 0:
            raise ValueError("price: expected at least 0")


def _has_port(url: SplitResult) -> bool:
    """Whether the port is valid or absent."""
    try:
        return url.port is None or url.port > 0
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    """The URL without user, password and query."""
    return url.rpartition("@")[2].partition("?")[0]
