"""The environment as Gymnasium's own checker sees it."""

import importlib.util
from pathlib import Path

import pytest

from pipeline.execution.gym import KernelEnvironment, as_gymnasium, task_text
from pipeline.records.errors import ConfigError

NAMES = {"kernel": "softmax", "workload": "awkward", "hardware": "cpu"}
EAGER = ("profile.baselines=[eager]",)


@pytest.mark.timeout(400)
def test_gymnasium_accepts_it(tmp_path: Path) -> None:
    """Spaces, resets, steps with random texts, determinism."""
    checker = pytest.importorskip("gymnasium.utils.env_checker", reason="gymnasium is not installed")
    made = as_gymnasium(KernelEnvironment(**NAMES, overrides=EAGER, store=tmp_path))
    try:
        checker.check_env(made, skip_render_check=True)
        made.reset(seed=1)
        observation, reward, terminated, truncated, info = made.step({"source": "no kernel"})
        assert observation in made.observation_space
        assert (observation["source"], reward, terminated, truncated) == ("no kernel", 0.0, False, False)
        assert info["outcome"] == "compile_error"
    finally:
        made.close()


def test_without_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install; nothing else needs it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="gymnasium is not installed: python -m pip install gymnasium"):
        as_gymnasium(None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_task_as_a_text(tmp_path: Path) -> None:
    """A prompt's beginning: what to compute, how it is called, on what."""
    with KernelEnvironment(**NAMES, overrides=EAGER, store=tmp_path) as environment:
        text = task_text(environment.reset()[0])
    for words in ("softmax: Row-wise", 'extern "C" int softmax(', "- LANES: 1, 8, 16 (", "torch.softmax"):
        assert words in text
