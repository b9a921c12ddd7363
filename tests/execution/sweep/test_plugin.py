"""Hydra finds the plugin and has it on by default; without -m nothing of it is seen."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT


def test_found_and_on_by_default() -> None:
    """Launcher, sweeper and folders of `kernelmill run`."""
    command = [sys.executable, "-m", "pipeline", "run", "--cfg", "hydra"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for line in (
        "_target_: hydra_plugins.kernelmill_launcher.KernelmillLauncher",
        "_target_: hydra_plugins.kernelmill_launcher.KernelmillSweeper",
        "dir: artifacts/multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}",
        "output_subdir: .hydra",
    ):
        assert line in text


def test_loading_it_is_cheap() -> None:
    """Hydra executes the module at every start."""
    program = (
        "import sys; from hydra.core.plugins import Plugins; Plugins.instance()\n"
        "print('hydra_plugins.kernelmill_launcher' in sys.modules)\n"
        "heavy = ('torch', 'pandas', 'grimp', 'pipeline.execution.sweep')\n"
        "print(*(name for name in heavy if name in sys.modules))\n"
    )
    command = [sys.executable, "-c", program]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert text.splitlines() == ["True", ""]


@pytest.mark.slow
def test_in_a_wheel(tmp_path: Path) -> None:
    """An installed Kernelmill brings its plugin, and no `hydra_plugins/__init__.py`, which hides others."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    ended = subprocess.run(
        [*command, "-w", str(tmp_path), str(ROOT)], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0 and "setuptools" in ended.stderr:
        pytest.skip(f"no wheel can be built here: {ended.stderr.splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "hydra_plugins/kernelmill_launcher/__init__.py" in names
    assert "hydra_plugins/__init__.py" not in names
