"""Client of an OpenAI-compatible endpoint: one request in; an answer, or why there is none, out.

Busy, slow and broken endpoints are tried again a limited number of times. Failures that another try cannot
fix (no connection, no permission, no credit, no such model) raise AgentError, which ends the round. The key
is read from the environment when it is needed, and removed from every text.
"""

import contextlib
import datetime
import email.utils
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from pipeline.records import environment
from pipeline.records.errors import AgentError, installation
from pipeline.records.record import Record
from pipeline.records.search.model_attempt import AnswerOutcome, ModelAnswer, ModelRequest
from pipeline.search.agents.agent_settings import Agent

if TYPE_CHECKING:
    import openai

MISSING = f"search=llm needs the package openai: {installation('llm')}"
LARGEST = 8 << 20  # bytes of a response: more is not read
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HTTP = ("httpx", "httpx2")
_SHOWN = 300  # characters of an endpoint's own words


class Completion(Record, frozen=True, kw_only=True):
    """One answer of a model."""

    model: str | None
    text: str
    refusal: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


class Key:
    """An API key that is neither in its repr nor in a text that `hide` returned."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Key({_HIDDEN})"

    __str__ = __repr__

    def reveal(self) -> str:
        """The key itself, for the request's header and nothing else."""
        return self._value or NOTHING

    def hide(self, text: str) -> str:
        """The text without the key: an endpoint may repeat it in what it answers."""
        if self._value is None or len(self._value) < _SHORTEST:
            return text
        return text.replace(self._value, _HIDDEN)


class NoAnswer(Record, frozen=True, kw_only=True):
    """All tries ended without an answer."""

    outcome: AnswerOutcome
    reason: str
    tries: int


class _Trouble(Exception):
    """One try failed; `wait` is the delay in seconds that the endpoint asked for."""

    def __init__(
        self, outcome: AnswerOutcome | None, reason: str, *, final: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(reason)
        self.outcome = outcome
        """None: the endpoint cannot be used at all."""
        self.reason = reason
        self.final = final
        self.wait = wait


class Client:
    """Client of one endpoint; thread-safe."""

    def __init__(self, agent: Agent, key: Key, wait: Callable[[float], None] = time.sleep) -> None:
        """Open the client; nothing is sent yet.

        Raises
        ------
        AgentError
            The package `openai` is not installed.
        """
        self._agent = agent
        self._key = key
        self._wait = wait
        self._client = _open(agent, key)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def ask(self, request: ModelRequest) -> ModelAnswer | NoAnswer:
        """Send a request, with retries.

        Raises
        ------
        AgentError
            The endpoint cannot be reached or denies access.
        """
        agent = self._agent
        for number in range(1, agent.tries + 1):
            started = time.monotonic()
            try:
                found = self._try(request)
            except _Trouble as trouble:
                last = trouble
            else:
                return _answer(request, found, time.monotonic() - started, number)
            pause = max(agent.backoff_seconds * 2 ** (number - 1), last.wait or 0.0)
            if last.final or pause > agent.wait_at_most or number == agent.tries:
                break
            self._wait(pause)
        reason = last.reason
        if last.wait is not None and last.wait > agent.wait_at_most:
            reason += f"; it asks for a delay of {last.wait:g} s, wait_at_most is {agent.wait_at_most:g} s"
        reason += f" (after {number} {'try' if number == 1 else 'tries'})"
        if last.outcome is None:
            raise AgentError(f"{agent.base_url}: {reason}")
        return NoAnswer(outcome=last.outcome, reason=reason, tries=number)

    def _try(self, request: ModelRequest) -> Completion:
        with self._translated_errors():
            content = self._send(request)
        found = read_completion(content)
        if isinstance(found, str):
            raise _Trouble(AnswerOutcome.MALFORMED, self._key.hide(found))
        hide = self._key.hide
        return Completion(
            model=hide(found.model) if found.model else None,
            text=hide(found.text),
            refusal=hide(found.refusal) if found.refusal else None,
            finish=hide(found.finish) if found.finish else None,
            prompt_tokens=found.prompt_tokens,
            completion_tokens=found.completion_tokens,
        )

    def _send(self, request: ModelRequest) -> bytes:
        """The response; read in parts, because a slow stream would never time out."""
        deadline = time.monotonic() + self._agent.seconds_at_most
        parameters = _parameters(request, self._agent)
        with self._client.chat.completions.with_streaming_response.create(**parameters) as response:
            parts: list[bytes] = []
            size = 0
            for part in response.iter_bytes():
                size += len(part)
                if time.monotonic() > deadline:
                    raise _Trouble(AnswerOutcome.TIMED_OUT, _no_answer_in(self._agent))
                if size > LARGEST:
                    raise _Trouble(AnswerOutcome.MALFORMED, f"more than {LARGEST} bytes", final=True)
                parts.append(part)
        return b"".join(parts)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate errors of the package; their texts and causes may contain the request's headers."""
        import openai

        trouble: _Trouble
        try:
            yield
            return
        except openai.APITimeoutError:
            trouble = _Trouble(AnswerOutcome.TIMED_OUT, _no_answer_in(self._agent))
        except openai.APIStatusError as error:
            trouble = self._status(error)
        except openai.APIConnectionError as error:
            trouble = _Trouble(None, f"no connection: {self._said(error.__cause__ or error)}")
        except openai.OpenAIError as error:
            trouble = _Trouble(AnswerOutcome.MALFORMED, f"the package openai gave up: {self._said(error)}")
        except Exception as error:
            names = _http_errors(error)
            if not names:
                raise
            late = "TimeoutException" in names
            trouble = (
                _Trouble(AnswerOutcome.TIMED_OUT, _no_answer_in(self._agent))
                if late
                else _Trouble(AnswerOutcome.MALFORMED, f"the answer broke off: {self._said(error)}")
            )
        # Raised outside of the handlers, so that no traceback refers to the package's own error.
        raise trouble

    def _status(self, error: "openai.APIStatusError") -> _Trouble:
        status = error.status_code
        said = f"HTTP {status}: {self._said(error)}"
        wait = _retry_after(error.response.headers)
        if status in (401, 403, 404) or getattr(error, "code", None) == "insufficient_quota":
            return _Trouble(None, said, final=True)
        if status == 429:
            return _Trouble(AnswerOutcome.RATE_LIMITED, said, wait=wait)
        if status == 408:
            return _Trouble(AnswerOutcome.TIMED_OUT, said, wait=wait)
        if status >= 500:
            return _Trouble(AnswerOutcome.SERVER_ERROR, said, wait=wait)
        return _Trouble(AnswerOutcome.REJECTED, said, final=True)

    def _said(self, error: object) -> str:
        """The error as one short line without the key."""
        body = getattr(error, "body", None)
        text = body.get("message") if isinstance(body, dict) else None
        line = " ".join(self._key.hide(str(text or error)).split())
        return line[:_SHOWN] or type(error).__name__


def check_package() -> None:
    """Check that the package is installed, without importing it.

    Raises
    ------
    AgentError
        It is not installed.
    """
    if importlib.util.find_spec("openai") is None:
        raise AgentError(MISSING)


def _open(agent: Agent, key: Key) -> "openai.OpenAI":
    try:
        import openai
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise AgentError(MISSING) from None
    # No proxy for this machine; no redirects, which could send the key elsewhere.
    local = urlsplit(agent.base_url).hostname in _LOOPBACK
    http = openai.DefaultHttpxClient(
        timeout=agent.seconds_at_most, trust_env=not local, follow_redirects=False
    )
    return openai.OpenAI(
        base_url=agent.base_url,
        api_key=key.reveal(),
        timeout=agent.seconds_at_most,
        max_retries=0,
        http_client=http,
    )


def _parameters(request: ModelRequest, agent: Agent) -> dict[str, Any]:
    """Parameters of the protocol."""
    parameters: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": each.role, "content": each.content} for each in request.messages],
        agent.tokens_parameter: request.tokens_at_most,
        "seed": request.seed,
    }
    if request.temperature is not None:
        parameters["temperature"] = request.temperature
    return parameters


def _answer(request: ModelRequest, found: Completion, seconds: float, tries: int) -> ModelAnswer:
    return ModelAnswer(
        request=request,
        model=found.model,
        text=found.text,
        refusal=found.refusal,
        finish=found.finish,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        seconds=seconds,
        tries=tries,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _http_errors(error: Exception) -> list[str]:
    """Class names of an error of the HTTP library that `openai` uses; empty for any other error.

    The package has changed that library, so it is not imported here.
    """
    return [each.__name__ for each in type(error).__mro__ if each.__module__.partition(".")[0] in _HTTP]


def _no_answer_in(agent: Agent) -> str:
    return f"no answer in {agent.seconds_at_most:g} s"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Delay in seconds that the endpoint asks for (RFC 9110, section 10.2.3), if any."""
    value = headers.get("retry-after", "").strip()
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError):
        moment = email.utils.parsedate_to_datetime(value)
        return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())
    return None


def read_completion(content: bytes) -> Completion | str:
    """The answer, or one line that says why there is none."""
    try:
        plain = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}"
    choices = _mapping(plain).get("choices")
    if not isinstance(choices, list) or not choices:
        return "JSON without choices"
    choice = _mapping(choices[0])
    message = _mapping(choice.get("message"))
    if not message:
        return "a choice without a message"
    usage = _mapping(_mapping(plain).get("usage"))
    text = message.get("content")
    return Completion(
        model=_text(_mapping(plain).get("model")),
        text=text if isinstance(text, str) else "",
        refusal=_text(message.get("refusal")),
        finish=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value >= 0 else None


NOTHING = "none"
"""What is sent where the endpoint wants no key: the protocol has no way to send none."""
_HIDDEN = "[key]"
_SHORTEST = 6  # characters; a shorter word is no secret, and would tear holes into texts


def key_of(agent: Agent) -> Key:
    """The key of the agent's endpoint.

    Raises
    ------
    AgentError
        The variable is not set.
    """
    if agent.key_variable is None:
        return Key(None)
    value = environment.api_key(agent.key_variable)
    if value is None:
        raise AgentError(
            f"${agent.key_variable} is not set: export it, or say search.llm.key_variable=null where"
            f" {agent.base_url} wants no key"
        )
    return Key(value.strip())
