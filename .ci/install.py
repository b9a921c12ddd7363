"""Installs this project into the environment that runs it: extras in, the pinned versions installed.

`python .ci/install.py [EXTRA…]` uses uv, which takes a fraction of pip's time, with the indexes that pip is
configured for. If uv cannot be installed, or fails, pip installs. Both are quiet for minutes, so every
15 seconds a line says how much is there.
"""

import ast
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

SAY_SECONDS = 15.0
PIP = (sys.executable, "-m", "pip")
UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""pip's setting -> uv's variable: uv reads no configuration of pip."""


def main(extras: list[str]) -> int:
    """Install with uv, otherwise with pip; the exit code."""
    project = f".[{','.join(extras)}]" if extras else "."
    wanted = ["--quiet", "--constraint", "requirements.lock", "--editable", project]
    if _has_uv():
        uv = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, *wanted]
        if _run(uv, {**_uv_settings(), **os.environ}) == 0:
            return 0
        print("uv did not install it: pip tries", file=sys.stderr)
    return _run([*PIP, "install", "--disable-pip-version-check", *wanted], os.environ)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run it to its end, with signs of life; the exit code."""
    started = time.monotonic()
    with subprocess.Popen(command, env=environment) as process:
        while True:
            try:
                return process.wait(timeout=SAY_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"  {time.monotonic() - started:.0f} s: {_so_far(process.pid)}", flush=True)


def _so_far(process: int) -> str:
    """What it has written, downloads included, because most packages appear only at the end."""
    packages = len(list(Path(sysconfig.get_path("purelib")).glob("*.dist-info")))
    try:
        counters = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
    except OSError:  # it has just ended, or the kernel does not count
        return f"{packages} packages installed"
    return f"{int(counters['wchar']) / 1e6:,.0f} MB downloaded or unpacked, {packages} packages installed"


def _has_uv() -> bool:
    """Install uv; whether it is there."""
    add = [
        *PIP,
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--constraint",
        "requirements.lock",
        "uv",
    ]
    return subprocess.run(add, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _uv_settings() -> Mapping[str, str]:
    """What pip is configured for, as uv's variables; like pip, uv then takes the best version of all."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for line in listed.splitlines():  # global.find-links='…'; the environment's, which win, are listed first
        name, _, value = line.partition("=")
        variable = UV.get(name.rpartition(".")[2])
        if variable:
            words = str(ast.literal_eval(value)).split()
            found.setdefault(variable, ("," if variable == "UV_FIND_LINKS" else " ").join(words))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
