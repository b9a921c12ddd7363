"""Where a figure was measured: one line for a results page."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence

from pipeline.plan.local_machine import read_machine


def where(packages: Sequence[str], *, tools: Sequence[str] = ()) -> str:
    """Date, processor, kernel, versions, and what else the machine had to do."""
    machine = read_machine()
    facts = machine.cpu.facts
    gpu = f" with {machine.accelerator.name}" if machine.accelerator else ""
    date = datetime.datetime.now(datetime.UTC).date()
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return (
        f"Measured {date} on {facts['cores']} cores of a machine with {facts['model']}{gpu}, "
        f"{facts['system']}, Python {platform.python_version()}, {', '.join([*versions, *tools])}; "
        f"load of the machine at the end: {os.getloadavg()[0]:.1f}."
    )
