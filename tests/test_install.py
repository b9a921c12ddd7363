"""What `make run` prints while the environment is installed."""

import importlib.util
import os
import re
import sys

import pytest

from tests.paths import ROOT


def test_signs_of_life(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Installers are quiet for minutes: a line now and then, and their exit code in the end."""
    spec = importlib.util.spec_from_file_location("install", ROOT / ".ci" / "install.py")
    assert spec is not None and spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    monkeypatch.setattr(install, "SAY_SECONDS", 0.5)
    program = "import os, time; os.write(os.open(os.devnull, os.O_WRONLY), bytes(3_000_000)); time.sleep(2)"
    assert install._run([sys.executable, "-c", f"{program}; exit(3)"], os.environ) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"  \d s: \d MB downloaded or unpacked, \d+ packages installed", line)
