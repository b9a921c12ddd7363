"""Checks that end in every way, for a process of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path

from pipeline.backends.devices.device import NotAvailable
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.records.errors import ConfigError


def works(setting: CheckSetting) -> CheckAnswer:
    """With figures and a log."""
    print(f"in {Path.home()}/somewhere")
    return CheckAnswer(
        status="ok", detail=f"{setting.subject}\nworks in {Path.cwd()}", figures={"size": "1 B"}
    )


def meets(setting: CheckSetting) -> CheckAnswer:
    """Ends only once the other check has begun."""
    own, other = setting.subject.split()
    (Path(setting.folder) / own).touch()
    end = time.monotonic() + 20
    while not (Path(setting.folder) / other).exists():
        if time.monotonic() > end:
            return CheckAnswer(status="failed", detail="the other one did not begin")
        time.sleep(0.01)
    return CheckAnswer(status="ok", detail="")


def is_alone(setting: CheckSetting) -> CheckAnswer:
    """Whether no other one of these ran meanwhile."""
    here = Path(setting.folder) / f"{setting.subject}.running"
    here.touch()
    time.sleep(0.2)
    others = [path for path in here.parent.glob("*.running") if path != here]
    here.unlink()
    return CheckAnswer(status="failed" if others else "ok", detail="")


def absent(setting: CheckSetting) -> CheckAnswer:
    """Something is not here."""
    raise NotAvailable(setting.absence)


def user_error(setting: CheckSetting) -> CheckAnswer:
    """What a user can fix."""
    raise ConfigError("conf/a.yaml: unknown key")


def raises(setting: CheckSetting) -> CheckAnswer:
    """A bug."""
    raise RuntimeError("no such luck")


def crashes(setting: CheckSetting) -> CheckAnswer:
    """By a signal."""
    print("about to crash", flush=True)
    os.abort()


def ends(setting: CheckSetting) -> CheckAnswer:
    """Without an answer."""
    sys.exit(0)


def hangs(setting: CheckSetting) -> CheckAnswer:
    """With a process below it, whose id it leaves."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(setting.folder) / "child").write_text(str(child.pid))
    time.sleep(600)
    raise AssertionError
