"""What fork servers import for their children never opens the driver of a GPU: no fork survives that."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.backends.registry import backend, backend_names, device_preload
from pipeline.execution.workers.zygote import PRELOAD as WARM_WORKER
from pipeline.measure.comparison.bench import PRELOAD as MEASURING
from pipeline.verify.harness.cross_compilation import PRELOAD as CROSS_COMPILING
from pipeline.verify.harness.process import MODEL_PRELOAD as MODELS
from tests import driver_stand_in
from tests.paths import ROOT

pytestmark = pytest.mark.slow  # each imports torch

COMPILING = (
    *(WARM_WORKER, MEASURING, CROSS_COMPILING),
    *(device_preload(kind) for kind in ("cuda", "hip")),
    *(backend(name).preload for name in backend_names()),
)
PRELOADS = {"0": [name for modules in COMPILING for name in modules], "1": MODELS}
"""$TRITON_INTERPRET -> all that is imported ahead where it has this value."""
IMPORTS = """
import importlib, sys, torch
def asked(*arguments, **keywords):
    raise AssertionError("the driver was asked")
for name in ("init", "_lazy_init", "is_available", "device_count", "current_device", "get_device_properties"):
    setattr(torch.cuda, name, asked)
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a driver that writes each call to stderr."""
    return driver_stand_in.build(tmp_path_factory.mktemp("driver")).parent


@pytest.mark.parametrize("interpreted", PRELOADS)
def test_no_preload_asks_for_a_gpu(interpreted: str, driver: Path) -> None:
    """Neither through torch nor through any other library."""
    require_silence(driver, TRITON_INTERPRET=interpreted, modules=PRELOADS[interpreted])


def test_loading_tritons_driver_asks_for_no_gpu(driver: Path, tmp_path: Path) -> None:
    """It is loaded if there is a device, in a process that is forked from afterwards."""
    loads = "\nfrom pipeline.backends.triton.device_driver import load_driver\nload_driver('cuda')"
    require_silence(driver, loads, XDG_CACHE_HOME=str(tmp_path), modules=())
    assert list(tmp_path.rglob("cuda_utils*.so"))


def require_silence(driver: Path, then: str = "", *, modules: Sequence[str], **settings: str) -> None:
    """A process that imports them and goes on so calls nothing of the driver."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "CUDA_STAND_IN_LOG": "1"} | settings
    command = [sys.executable, "-c", IMPORTS + then, *modules]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "[driver]" not in done.stderr
