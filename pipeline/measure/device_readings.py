"""What this machine tells about a device while it measures, and why the rest is absent, one line each.

python -m pipeline.measure.device_readings [cpu] [cuda]
"""

import argparse
import sys
from typing import get_args

from pipeline.backends.devices.cuda.nvml import NotAvailable
from pipeline.measure.counters import cpu, cuda
from pipeline.measure.device_monitor import source_for
from pipeline.records.configuration.hardware import BackendKind


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    every: tuple[BackendKind, ...] = get_args(BackendKind)
    kinds = tuple(kind for kind in every if kind != "recorded")
    parser = argparse.ArgumentParser(prog="python -m pipeline.measure.device_readings", description=__doc__)
    parser.add_argument("kind", nargs="*", help=f"of {', '.join(kinds)}; all but hip if none is given")
    chosen = parser.parse_args(arguments).kind
    unknown = [kind for kind in chosen if kind not in kinds]
    if unknown:
        parser.error(f"kind: got {unknown[0]}, expected one of {', '.join(kinds)}")
    for kind in kinds:
        if kind in chosen or (not chosen and kind != "hip"):
            for name, text in described(kind).items():
                print(f"{kind:<5}{name:<20}{text}")
    return 0


def described(kind: BackendKind) -> dict[str, str]:
    """Every quantity -> its value now with its unit, or `absent: ` and why."""
    try:
        source = source_for(kind)
    except NotAvailable as absent:
        return {"conditions": f"absent: {absent}"}
    try:
        lines = source.lines()
    finally:
        source.close()
    return lines | (cpu.lines() if kind == "cpu" else cuda.lines())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
