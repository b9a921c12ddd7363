"""What this machine reports about a device while it measures, and why the rest is absent, one line each.

python -m pipeline.measure.device_readings [cpu] [cuda]
"""

import argparse
import sys

from pipeline.backends.devices.device import NotAvailable
from pipeline.backends.devices.device_registry import device, device_kinds
from pipeline.records.configuration.hardware import DeviceKind


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    kinds = device_kinds()
    parser = argparse.ArgumentParser(prog="python -m pipeline.measure.device_readings", description=__doc__)
    parser.add_argument("kind", nargs="*", help=f"of {', '.join(kinds)}; all if none is given")
    chosen = parser.parse_args(arguments).kind
    unknown = [kind for kind in chosen if kind not in kinds]
    if unknown:
        parser.error(f"kind: got {unknown[0]}, expected one of {', '.join(kinds)}")
    for kind in chosen or kinds:
        for name, text in described(kind).items():
            print(f"{kind:<5}{name:<20}{text}")
    return 0


def described(kind: DeviceKind) -> dict[str, str]:
    """Every quantity -> its value now with its unit, or `absent: ` and why."""
    measurement = device(kind).measurement()
    try:
        source = measurement.conditions()
    except NotAvailable as absent:
        return {"conditions": f"absent: {absent}"}
    try:
        lines = source.lines()
    finally:
        source.close()
    return lines | measurement.counter_lines()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
