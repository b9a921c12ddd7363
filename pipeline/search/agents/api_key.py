"""The key of an endpoint: read from the environment when it is needed, and taken out of every text."""

from pipeline.records import environment
from pipeline.records.errors import AgentError
from pipeline.search.agents.agent_settings import Agent

NOTHING = "none"
"""What is sent where the endpoint wants no key: the protocol has no way to send none."""
_HIDDEN = "[key]"
_SHORTEST = 6  # characters; a shorter word is no secret, and would tear holes into texts


class Key:
    """A key that shows itself nowhere: not in its repr, not in a text that went through `hide`."""

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
