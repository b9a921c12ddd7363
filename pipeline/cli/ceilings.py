"""Shows what the device in this machine reaches: bandwidth by size, peaks per dtype, latency of a call.

    python -m pipeline.cli.ceilings [HARDWARE] [--again | --afresh] [--root artifacts] [--conf conf]

HARDWARE is a name from conf/hardware, `local` if left out. Figures that were measured in the same
circumstances, here or in another checkout of yours, are taken; `--again` measures now and keeps the better
ones, `--afresh` forgets what was measured before.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline.cli.printing import print_lines
from pipeline.records.errors import ConfigError, KernelmillError
from pipeline.records.hardware import Hardware
from pipeline.report.ceilings_text import Measured, ceilings_text


def main(arguments: list[str]) -> int:
    """Command line; the table goes to standard output."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.cli.ceilings", description=__doc__)
    parser.add_argument("hardware", nargs="?", default="local", help="a name from conf/hardware")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="measure now; the better figures are kept")
    which.add_argument("--afresh", action="store_true", help="forget what is known, and measure now")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument("--conf", type=Path, default=Path("conf"), help="folder of the option groups")
    options = parser.parse_args(arguments)
    try:
        text = ceilings_text(_measured(options))
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print_lines([text])
    return 0


def _measured(options: argparse.Namespace) -> Measured:
    """The device is held while it is measured.

    Raises
    ------
    ConfigError
        The hardware is not here, or not declared.
    """
    hardware, device = _device(options.hardware, options.conf)
    from pipeline.measure import ceilings
    from pipeline.measure.bench import PRELOAD
    from pipeline.measure.circumstances import circumstances
    from pipeline.measure.device_ceilings import DeviceCeilings
    from pipeline.measure.lock import device_lock
    from pipeline.sandbox.sandbox import ForkServer

    measure: Callable[[ForkServer, ceilings.Device], DeviceCeilings] = ceilings.measured
    if options.again or options.afresh:
        measure = ceilings.measured_again if options.again else ceilings.measured_afresh
    kept = ceilings.Device(hardware.kind, device, options.root / "cache" / "ceilings")
    server = ForkServer(preload=PRELOAD)
    try:
        with device_lock("cpu" if hardware.kind == "cpu" else device):
            found = measure(server, kept)
    finally:
        server.close()
    return Measured(
        hardware=hardware,
        ceilings=found,
        circumstances=circumstances(hardware.kind),
        file=ceilings.cache_path(kept),
    )


def _device(name: str, conf: Path) -> tuple[Hardware, str]:
    """A declared target as this machine has it, and the fingerprint under which results on it are kept."""
    from pipeline.plan.config.compose import composer
    from pipeline.plan.config.groups import check_option
    from pipeline.plan.config.options import OptionLoader
    from pipeline.plan.config.overrides import Overrides
    from pipeline.plan.local_machine import fingerprint, read_machine, resolve

    check_option(conf, "hardware", name, name)
    machine = read_machine()
    with composer(conf) as hydra:
        declared = OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent).all_hardware()
    device = resolve(declared[name], declared, machine)
    if not device.present:
        here = machine.gpu[2] if machine.gpu else machine.cpu.facts.get("model", "a CPU")
        raise ConfigError(
            f"{name}: no {device.hardware.architecture} device on this machine (it has {here}); "
            "`python -m pipeline.cli.ceilings` measures what is here"
        )
    return device.hardware, fingerprint(device, machine)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
