"""What fork servers import for their children never opens the driver of a GPU: no fork survives that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.registry import backend, backend_names
from pipeline.execution.workers.zygote import PRELOAD as WARM_WORKER
from pipeline.measure.comparison.bench import PRELOAD as MEASURING
from pipeline.verify.harness.cross_compilation import PRELOAD as CROSS_COMPILING
from pipeline.verify.harness.process import MODEL_PRELOAD as MODELS
from tests import driver_stand_in
from tests.paths import ROOT

pytestmark = pytest.mark.slow  # each imports torch

PRELOADS = {
    "warm worker": WARM_WORKER,
    "measuring": MEASURING,
    "models": MODELS,
    "cross-compiling": CROSS_COMPILING,
    **{name: backend(name).preload for name in backend_names()},
}
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


@pytest.mark.parametrize("name", PRELOADS)
def test_no_preload_asks_for_a_gpu(name: str, driver: Path) -> None:
    """Neither through torch nor through any other library."""
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(driver),
        "CUDA_STAND_IN_LOG": "1",
        "TRITON_INTERPRET": str(int(name == "models")),
    }
    command = [sys.executable, "-c", IMPORTS, *PRELOADS[name]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "[driver]" not in done.stderr
