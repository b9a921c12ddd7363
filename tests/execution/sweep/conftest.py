"""Fixtures of the multirun's tests: Hydra's configuration of a whole sweep."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pipeline.plan.config.compose import HYDRA_VERSION, PRIMARY
from tests.paths import ROOT
from tests.report.conftest import collected, root, spec  # noqa: F401


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Callable[..., DictConfig]]:
    """Composes as `kernelmill sweep` does before the jobs."""
    before = HydraConfig.instance().cfg
    with initialize_config_dir(
        version_base=HYDRA_VERSION, config_dir=str(ROOT / "conf"), job_name="__main__"
    ):

        def make(*lines: str) -> DictConfig:
            given = [f"hydra.sweep.dir={tmp_path}/sweep", "hydra.mode=MULTIRUN", *lines]
            return compose(PRIMARY, overrides=given, return_hydra_config=True)

        yield make
    HydraConfig.instance().cfg = before
    GlobalHydra.instance().clear()
