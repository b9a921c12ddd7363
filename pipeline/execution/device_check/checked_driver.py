"""Whether the driver of a device can be opened: in a plain process, and in one that is confined.

The process is forked from a server that has torch imported, as the process of every candidate is.
"""

from pathlib import Path

from pipeline.backends.devices.device_registry import device
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.record import Record
from pipeline.sandbox.confinement.confine import MECHANISMS, Mechanism, confine
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits
from pipeline.store.temporary import scratch_folder

TARGET = "pipeline.execution.device_check.checked_driver:serve"
PRELOAD = ("numpy", "torch", "pipeline.execution.device_check.checked_driver")
SECONDS = 90.0  # the server's imports included
ELEMENTS = 1024
PLAIN, CONFINED, UNDUMPABLE = "plain", "confined", "undumpable"
SUBJECTS = (PLAIN, CONFINED, UNDUMPABLE, *MECHANISMS)
"""Not confined; by all mechanisms; by what every confined process has in any case; by one mechanism each."""


class DriverRequest(Record, frozen=True, kw_only=True):
    """What the process does."""

    kind: DeviceKind
    mechanisms: tuple[Mechanism, ...] | None
    """None: it is not confined."""
    present: bool
    """Whether there is a device to open."""


class ConfinedDriver(Record, frozen=True, kw_only=True):
    """First answer: it is confined."""

    active: tuple[str, ...]


class OpenedDriver(Record, frozen=True, kw_only=True):
    """Second answer: it has computed on the device."""

    total: float
    """Sum of the tensor."""
    seconds: float


def check_driver(setting: CheckSetting) -> CheckAnswer:
    """Add on the device in a process that is confined as the subject says."""
    present = setting.device is not None
    request = DriverRequest(kind=setting.kind, mechanisms=_mechanisms(setting.subject), present=present)
    log = Path(setting.folder) / f"driver_{setting.subject.replace(' ', '_')}.txt"
    with ForkServer(preload=PRELOAD) as server, scratch_folder() as scratch:
        child = server.start(TARGET, limits=Limits(seconds=SECONDS), log=log, scratch=scratch)
        try:
            child.send(request)
            active = child.receive(SECONDS, ConfinedDriver).active
            opened = child.receive(SECONDS, OpenedDriver) if present else None
        except ChildEnded as ended:
            text = log.read_text(errors="replace") if log.is_file() else ""  # it may not have begun
            print(text)
            words = (text.strip().splitlines() or [ended.exit.detail])[-1]
            return CheckAnswer(status="failed", detail=f"{ended.exit.kind}: {words}")
        finally:
            child.stop()
    return _judged(setting, active, opened)


def _judged(setting: CheckSetting, active: tuple[str, ...], opened: OpenedDriver | None) -> CheckAnswer:
    how = ", ".join(active) or "not confined"
    wanted = setting.subject
    if wanted in MECHANISMS and not any(wanted in name for name in active):  # `landlock 7`
        return CheckAnswer(status="absent", detail=f"this system does not offer it (active: {how})")
    if opened is None:
        also = f"; active: {how}" if active else ""
        return CheckAnswer(status="absent", detail=f"{setting.absence}{also}")
    if opened.total != 2.0 * ELEMENTS:
        return CheckAnswer(
            status="failed", detail=f"1 + 1 in {ELEMENTS} elements: sum {opened.total:g} ({how})"
        )
    return CheckAnswer(status="ok", detail=f"added on the device after {opened.seconds:.1f} s ({how})")


def _mechanisms(subject: str) -> tuple[Mechanism, ...] | None:
    if subject == PLAIN:
        return None
    return MECHANISMS if subject == CONFINED else tuple(name for name in MECHANISMS if name == subject)


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    import time

    import torch

    request: DriverRequest = channel.receive(DriverRequest)
    here = device(request.kind)
    active: tuple[str, ...] = ()
    if request.mechanisms is not None:
        active = confine(Path.cwd(), here.driver_folders(), mechanisms=request.mechanisms)
    channel.send(ConfinedDriver(active=active))
    if not request.present:
        return
    started = time.monotonic()
    ones = here.allocate(ELEMENTS, torch.float32) + 1
    total = float((ones + ones).sum().cpu())
    here.synchronize()
    channel.send(OpenedDriver(total=total, seconds=time.monotonic() - started))
