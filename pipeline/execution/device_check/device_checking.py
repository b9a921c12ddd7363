"""`kernelmill check --device`: this machine in, a line per check in the terminal and a file out."""

import concurrent.futures
import fnmatch
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.backends.devices.device import FoundDevice, NotAvailable
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend, backend_names
from pipeline.execution.device_check.check_processes import Check, CheckSetting, run_check
from pipeline.execution.device_check.check_report import (
    CheckedLine,
    DeviceCheck,
    line_text,
    verdict_text,
    write_report,
)
from pipeline.execution.device_check.checked_candidates import CANDIDATES
from pipeline.execution.device_check.checked_driver import SUBJECTS
from pipeline.execution.device_check.checked_kernels import KERNEL, LAUNCHES, SEPARATOR
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.local_machine import read_machine
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.errors import ConfigError, suggestion
from pipeline.records.outcome import Outcome
from pipeline.store.current_provenance import provenance
from pipeline.store.temporary import scratch_folder

USUAL_KIND: DeviceKind = "cuda"
"""What is looked for on a machine without any device but its CPU."""
CORES_OF_A_CHECK = 2
LIMIT = 120.0
"""Seconds of a check that takes a few: the first import of torch from a cold disk takes half a minute."""
_ROOM = "pipeline.execution.device_check"


def check_device(out: Path, only: Sequence[str] = ()) -> DeviceCheck:
    """Run the checks whose names match a pattern, or all; print a line for each as it ends, write the file.

    Raises
    ------
    ConfigError
        A pattern matches no check.
    StoreError
        The file cannot be written.
    """
    found = read_machine().accelerator
    kind = USUAL_KIND if found is None else found.kind
    name = f"no {kind} device here" if found is None else f"{found.name} ({found.architecture})"
    checks = _matching(checks_for(kind), only or ("*",))
    print(f"device check: {name}", flush=True)
    check = empty_report(kind, found)
    write_report(out, check)  # a file that cannot be written is said now
    for line in run_checks(checks, kind, found):
        check = msgspec.structs.replace(check, lines=(*check.lines, line))
        write_report(out, check)  # a run that is killed leaves what it has
    print(f"{verdict_text(check)}\n{out}")
    return check


def _matching(checks: tuple[Check, ...], patterns: Sequence[str]) -> tuple[Check, ...]:
    """Those whose names match a pattern of the shell."""
    names = [check.name for check in checks]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ConfigError(f"--only: no line matches '{pattern}'{suggestion(pattern, names)}")
    return tuple(check for check in checks if any(fnmatch.fnmatch(check.name, each) for each in patterns))


def checks_for(kind: DeviceKind) -> tuple[Check, ...]:
    """All checks for a kind of device, in the order of the table."""
    compiling = [name for name in backend_names() if kind in backend(name).kinds]
    return (
        Check("versions", f"{_ROOM}.checked_machine:check_versions", LIMIT),
        Check("device", f"{_ROOM}.checked_machine:check_device", LIMIT),
        *(
            Check(f"driver, {subject}", f"{_ROOM}.checked_driver:check_driver", LIMIT, subject)
            for subject in SUBJECTS
        ),
        *(
            Check(
                f"{KERNEL}, {name}, {launch}",
                f"{_ROOM}.checked_kernels:check_kernel_stages",
                180.0,
                f"{name}{SEPARATOR}{launch}",
                alone=True,
            )
            for name in compiling
            for launch in LAUNCHES
        ),
        *(
            Check(f"judge, {subject}", f"{_ROOM}.checked_candidates:check_candidate", known.limit, subject)
            for subject, known in CANDIDATES.items()
        ),
        *(
            Check(
                f"time, {subject}",
                f"{_ROOM}.checked_times:check_candidate_time",
                known.limit,
                subject,
                alone=True,
            )
            for subject, known in CANDIDATES.items()
            if known.expected == (Outcome.PASSED,)
        ),
        Check("clock, power, energy", f"{_ROOM}.checked_machine:check_conditions", LIMIT, alone=True),
        Check("counters", f"{_ROOM}.checked_machine:check_counters", 150.0, alone=True),
        Check("ceilings", f"{_ROOM}.checked_machine:check_ceilings", 180.0, alone=True),
    )


def run_checks(checks: Sequence[Check], kind: DeviceKind, found: FoundDevice | None) -> Iterator[CheckedLine]:
    """As they end; those that do not measure run side by side, as far as the cores allow."""
    absence = "" if found is not None else absence_of(kind)
    with scratch_folder() as folder, concurrent.futures.ThreadPoolExecutor(_workers()) as pool:

        def line_of(check: Check) -> CheckedLine:
            setting = CheckSetting(
                kind=kind,
                device=None if found is None else found.name,
                architecture=None if found is None else found.architecture,
                absence=absence,
                folder=str(folder),
                subject=check.subject,
            )
            return run_check(check, setting)

        for alone, group in itertools.groupby(checks, lambda check: check.alone):
            futures = () if alone else [pool.submit(line_of, check) for check in group]
            ended = (future.result() for future in concurrent.futures.as_completed(futures))
            for line in map(line_of, group) if alone else ended:
                print(line_text(line), flush=True)
                yield line


def _workers() -> int:
    """Checks side by side: the judge's start processes of their own."""
    return max(1, len(os.sched_getaffinity(0)) // CORES_OF_A_CHECK)


def absence_of(kind: DeviceKind) -> str:
    """Why this machine has no device of a kind, as its driver's library says."""
    try:
        device(kind).measurement().conditions().close()
    except NotAvailable as error:
        return str(error)
    return f"no {kind} device is visible to this process"


def empty_report(kind: DeviceKind, found: FoundDevice | None) -> DeviceCheck:
    """The file's content before the first check."""
    return DeviceCheck(
        provenance=provenance(StageBuilds().program(f"{_ROOM}.device_checking")),
        kind=kind,
        device=None if found is None else found.name,
        architecture=None if found is None else found.architecture,
        lines=(),
    )
