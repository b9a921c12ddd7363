"""The language model that writes sources, and how it is asked: a part of `conf/search/llm.yaml`."""

import re
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pipeline.records.record import Record

SECRET = "_API_KEY"
"""How the name of an environment variable ends whose value the processes that run kernels never get."""

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
    """What the provider asks for a million tokens; it is the user's to state, with its source."""

    prompt: float
    completion: float
    currency: str
    source: str


class Agent(Record, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint, the limits of its use, and which attempts are extended."""

    base_url: str
    """Up to and with `/v1`; no user, password or query in it, because it is recorded."""
    model: str
    key_variable: str | None = "OPENAI_API_KEY"
    """The environment variable that holds the key; None: the endpoint wants none."""
    temperature: float | None = None
    """None: the model's own."""
    tokens_at_most: int
    """Of one answer."""
    tokens_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls that limit: OpenAI's own newer models know the second name only."""
    tokens_in_all: int | None = None
    """Prompts and answers of a task's search; once they are used, no attempt begins. None: no limit."""
    seconds_at_most: float
    """For one answer, from the request to its last byte."""
    tries: int
    """How often one request is sent where the endpoint is busy, slow or broken."""
    backoff_seconds: float
    """Before the second try, doubled before each further one; `Retry-After` counts where it is longer."""
    wait_at_most: float
    """Seconds; where the endpoint asks for more patience, the attempt ends."""
    repairs: int
    """How often an answer that holds no usable source is sent back with what is wrong with it."""
    requests_at_once: int
    """What the endpoint allows."""
    choosing: Choosing
    width: int
    """Of the beam."""
    exploration: float
    """Of the tree: what an attempt that was extended seldom gains over a faster one."""
    exemplars: int
    """Kernels of this repository of the same category that the prompt shows, at most."""
    start: str | None = None
    """A source of the repository to start from; None: the kernel's own implementations."""
    price: Price | None = None
    """None: no cost is stated."""

    def __post_init__(self) -> None:
        """What is recorded holds no secret, and every limit is one."""
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
        for field, least in _AT_LEAST.items():
            if getattr(self, field) < least:
                raise ValueError(f"{field}: got {getattr(self, field)}, expected at least {least}")
        if self.price is not None and min(self.price.prompt, self.price.completion) < 0:
            raise ValueError("price: expected at least 0")


def _has_port(url: SplitResult) -> bool:
    """Whether its port is one, or the usual."""
    try:
        return url.port is None or url.port > 0
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    """As much of it as says what is wrong."""
    return url.rpartition("@")[2].partition("?")[0]
