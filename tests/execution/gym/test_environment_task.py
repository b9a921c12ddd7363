"""Which environments can be made; each message names what is wrong and what is known."""

from pathlib import Path

import pytest

from pipeline.execution.gym import KernelEnvironment
from pipeline.records.errors import ConfigError

NAMES = {"kernel": "softmax", "workload": "awkward", "hardware": "cpu"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"kernel": "sofmax"}, "sofmax"),
        ({"hardware": "h200"}, "hardware=h200: no such device here, and a reward is measured on it"),
        ({"implementation": "triton"}, "implementation: got 'triton', expected one of cpp"),
        ({"baseline": "vendor"}, "baseline: got 'vendor', profile.baselines has "),
        ({"overrides": ("profile.baselines=[]",)}, "profile.baselines: a reward needs at least one"),
        ({"workload": "awkward,bert_base"}, "an environment is one task, "),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, names: dict, words: str) -> None:
    """Before anything is compiled, and nothing is left behind."""
    if names.get("hardware") == "h200" and Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU, perhaps this one")
    with pytest.raises(ConfigError, match="(?s)" + words):
        KernelEnvironment(**{**NAMES, **names}, store=tmp_path)
