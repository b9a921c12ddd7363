"""Adapter for Gymnasium: a KernelEnvironment in, a `gymnasium.Env` out.

Observations and actions are dicts of texts and of indices into the values of each tunable. No other module
needs Gymnasium.
"""

import importlib.util
from typing import Any

import msgspec

from pipeline.execution.gym.environment_task import Action, Observation, TunableAxis
from pipeline.execution.gym.kernel_environment import Info, KernelEnvironment
from pipeline.records.errors import ConfigError
from pipeline.records.results.profiled import ConfidenceInterval

TEXT_AT_MOST = 1 << 20  # characters of what is observed
SOURCE_AT_MOST = 1 << 16  # characters of an action's source
_RANGES = ((9, 11), (13, 14), (32, 127), (160, 0x2600))
"""Code points of the text spaces; any other character is written as an escape."""
LETTERS = frozenset(chr(number) for first, end in _RANGES for number in range(first, end))


def as_gymnasium(environment: KernelEnvironment) -> Any:
    """A `gymnasium.Env`; closing it closes the environment. An empty source in an action leaves it as it is.

    Raises
    ------
    ConfigError
        Gymnasium is not installed.
    """
    if importlib.util.find_spec("gymnasium") is None:
        raise ConfigError("as_gymnasium: gymnasium is not installed: python -m pip install gymnasium")
    import gymnasium

    return type("KernelEnv", (_GymnasiumMethods, gymnasium.Env), {})(environment)


class _GymnasiumMethods:
    """The methods that Gymnasium calls."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, environment: KernelEnvironment) -> None:
        self._environment = environment
        self._axes = environment.start.axes
        self.observation_space, self.action_space = _spaces(self._axes)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002  (Gymnasium's interface)
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        import gymnasium

        gymnasium.Env.reset(self, seed=seed)
        observation, info = self._environment.reset(seed=seed)
        return _encoded_observation(observation), _plain_info(info)

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        tunables = {
            axis.name: axis.values[int(action["tunables"][axis.name])]
            for axis in self._axes
            if "tunables" in action
        }
        done = self._environment.step(Action(source=action["source"] or None, tunables=tunables))
        return (
            _encoded_observation(done.observation),
            done.reward,
            done.terminated,
            done.truncated,
            _plain_info(done.info),
        )

    def close(self) -> None:
        self._environment.close()


def _spaces(axes: tuple[TunableAxis, ...]) -> tuple[Any, Any]:
    """Spaces of observations and of actions."""
    from gymnasium import spaces

    def text(at_most: int) -> Any:
        return spaces.Text(at_most, min_length=0, charset=LETTERS)

    def tunables() -> dict[str, Any]:
        if not axes:  # Gymnasium has no empty dict
            return {}
        return {"tunables": spaces.Dict({axis.name: spaces.Discrete(len(axis.values)) for axis in axes})}

    observed = {name: text(TEXT_AT_MOST) for name in ("task", "source", "feedback")}
    done = {"source": text(SOURCE_AT_MOST)}
    return spaces.Dict(observed | tunables()), spaces.Dict(done | tunables())


def _encoded_observation(observation: Observation) -> dict[str, Any]:
    texts = {
        "task": task_text(observation),
        "source": observation.source,
        "feedback": "\n".join(observation.feedback),
    }
    found: dict[str, Any] = {name: _encoded_text(text) for name, text in texts.items()}
    if observation.axes:
        found["tunables"] = {
            axis.name: axis.values.index(observation.tunables[axis.name]) for axis in observation.axes
        }
    return found


def task_text(observation: Observation) -> str:
    """The task as one text, for the beginning of a prompt."""
    values = [
        f"- {axis.name}: {', '.join(map(str, axis.values))} ({axis.description})" for axis in observation.axes
    ]
    parts = [
        f"{observation.kernel}: {observation.description}",
        f"Language: {observation.language}. Signature: {observation.signature}",
        *(f"- {line}" for line in observation.contract),
        "Hardware:",
        *(f"- {line}" for line in observation.hardware),
        "Tunables:",
        *(values or ["- none"]),
        f"Reference:\n{observation.reference}",
    ]
    return "\n".join(parts)


def _encoded_text(text: str) -> str:
    shown = "".join(
        letter if letter in LETTERS else letter.encode("unicode_escape").decode() for letter in text
    )
    return shown[:TEXT_AT_MOST]


def _plain_info(info: Info) -> dict[str, Any]:
    """A new dict of plain values, which the caller may change."""
    found: dict[str, Any] = {
        "outcome": None if info.outcome is None else str(info.outcome),
        "stage": info.stage,
        "reason": info.reason,
        "variant": info.variant,
        "verdict": info.verdict,
    }
    for name, interval in (("seconds", info.seconds), ("speedup", info.speedup)):
        if isinstance(interval, ConfidenceInterval):
            found[name] = msgspec.to_builtins(interval)
    return {name: value for name, value in found.items() if value is not None}
