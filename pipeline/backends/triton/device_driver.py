"""Importing this module loads Triton's driver for the device of this machine, which is not opened.

Work at import, against the house rule, because `Backend.device_preload` names modules. The driver is a
library that Triton compiles in half a second. It is kept in the user's cache, and processes that are forked
from this one have it: candidates compile none, and write to no cache but their own.
"""

import importlib.metadata
from pathlib import Path

from pipeline.backends.devices.device_registry import device
from pipeline.backends.triton import compiler_warm_up  # noqa: F401  (imports Triton, with our settings)
from pipeline.backends.triton.compiler_isolation import own_settings
from pipeline.backends.triton.triton_internals import use_driver
from pipeline.records.environment import user_cache

FOLDER = Path("kernelmill", "triton")
_NAMES = {"cuda": "nvidia", "hip": "amd"}


def load_driver(kind: str) -> None:
    """Make it the active one; Triton compiles its library if the cache has none, and raises if it cannot."""
    cache = user_cache()
    if cache is not None:
        with own_settings(cache / FOLDER / importlib.metadata.version("triton")):
            use_driver(_NAMES[kind])


for _kind in _NAMES:
    if device(_kind).found():
        load_driver(_kind)
