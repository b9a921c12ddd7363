"""The MLflow server as `make ui` starts it, for as long as a test needs it."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.records import environment
from pipeline.track import mlflow_ui as ui
from pipeline.track.mlflow_ui import HOST

START_SECONDS = 120.0  # ten on a quiet machine


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """Its address, on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    environment.mlflow_defaults()
    log = root / "server.log"
    with log.open("wb") as stream:
        command = ui.server_command(root, port)
        process = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=root)
        try:
            base = f"http://{HOST}:{port}"
            wait_for_health(base, process, log)
            yield base
        finally:
            process.terminate()
            process.wait(30)


def wait_for_health(base: str, process: subprocess.Popen[Any], log: Path) -> None:
    """Return when the server answers; `log` is shown if it ends instead."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"the server did not answer within {START_SECONDS:.0f} s:\n{log.read_text()}")
