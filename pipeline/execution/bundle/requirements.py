"""The libraries that a command needs: looked for before they are imported, all missing ones in one line."""

import importlib.util

from pipeline.records.errors import BundleError

RECORDS = {"click": "click", "msgspec": "msgspec"}
"""Modules that every command imports, and the libraries that hold them."""
STAGES = {
    "grimp": "grimp",
    "hydra": "hydra-core",
    "numpy": "numpy",
    "omegaconf": "omegaconf",
    "simpleeval": "simpleeval",
    "torch": "torch",
}
"""The same for planning and the stages."""


def check(modules: dict[str, str]) -> None:
    """Find them, without importing them.

    Raises
    ------
    BundleError
        Names all that are missing.
    """
    missing = [name for module, name in modules.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise BundleError(
            f"this environment lacks {', '.join(missing)}: on a machine with network, "
            "`kernelmill bundle pack` makes a job that brings what it needs"
        )
