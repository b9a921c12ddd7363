"""likwid-bench (Debian: likwid) as an independent tool: a short run in, bytes or operations a second out."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "likwid-bench"
# Its kernels are written in assembly, one for each instruction set: the widest that the processor has counts.
WIDTHS = (("avx512f", ("_avx512_fma", "_avx512")), ("avx", ("_avx_fma", "_avx")), ("sse2", ("_sse",)))
RATE = re.compile(r"^(MByte|MFlops)/s:\s+([\d.]+)$", re.MULTILINE)
FLOPS = re.compile(r"^Flops per element: (\d+)$", re.MULTILINE)
ASLEEP_AFTER = 2.0
"""Seconds from its start within which it goes to sleep, where it does."""
HOLD_AFTER = 0.7
"""Seconds from there to its second sleep: before anything else it counts its clock through two, of half a
second each."""


def missing() -> str | None:
    """Why it cannot be run; None where it can."""
    if shutil.which(PROGRAM) is None:
        return f"no {PROGRAM} on the PATH (Debian: apt-get install likwid)"
    return None


@functools.cache
def version() -> str:
    """As it names itself."""
    done = subprocess.run([PROGRAM, "-v"], capture_output=True, text=True, check=False)
    found = re.search(r"Version ([\d.]+)", done.stdout)
    return f"likwid {found[1] if found else 'of unknown version'}"


@functools.cache
def _available() -> frozenset[str]:
    done = subprocess.run([PROGRAM, "-a"], capture_output=True, text=True, check=True)
    return frozenset(line.partition(" ")[0] for line in done.stdout.splitlines())


def widest(name: str, features: Sequence[str]) -> str:
    """The kernel of this name for the widest vectors that the processor has."""
    for feature, suffixes in WIDTHS:
        if feature in features:
            for suffix in suffixes:
                if name + suffix in _available():
                    return name + suffix
    return name


def flops_per_element(kernel: str) -> int:
    """Operations that it does with each element of its stream."""
    done = subprocess.run([PROGRAM, "-l", kernel], capture_output=True, text=True, check=True)
    found = FLOPS.search(done.stdout)
    if found is None:
        raise ValueError(f"{PROGRAM} -l {kernel} tells no 'Flops per element': {done.stdout}")
    return int(found[1])


class Run:
    """A run of one kernel on `size` bytes of all arrays over so many cores, as often as it is called.

    Before it computes, likwid-bench sleeps for a second. `prepare` starts a process and stops it (SIGSTOP) in
    that sleep, so that many sleep side by side; the next call lets it go on. Where Linux does not tell that a
    process sleeps, a call starts it and waits.
    """

    def __init__(self, kernel: str, *, size: int, cores: int, iterations: int) -> None:
        workgroup = f"S0:{max(1, size // 1000)}kB:{cores}"
        self._command = [PROGRAM, "-t", kernel, "-W", workgroup, "-i", str(iterations)]
        self._unit = "MFlops" if kernel.startswith("peakflops") else "MByte"
        self._started: subprocess.Popen[str] | None = None
        self._holding: threading.Timer | None = None

    def prepare(self) -> None:
        """Start the process of the next call, and have it stopped while it sleeps."""
        self._started = started = self._start()
        end = time.monotonic() + ASLEEP_AFTER
        while started.poll() is None and time.monotonic() < end:
            if "nanosleep" in _read(started.pid, "wchan"):
                self._holding = threading.Timer(HOLD_AFTER, started.send_signal, (signal.SIGSTOP,))
                self._holding.start()
                return
            time.sleep(0.005)
        self.end()

    def held(self) -> None:
        """Wait until it is stopped; one that computes already is given up, and the next call starts anew."""
        if self._started is None or self._holding is None:
            return
        self._holding.join()
        self._holding = None
        with contextlib.suppress(OSError):  # it has ended
            if len(os.listdir(f"/proc/{self._started.pid}/task")) == 1:  # noqa: PTH208
                return
        self.end()

    def __call__(self) -> float:
        """Bytes (STREAM's count) or operations per second. Its MByte and MFlop are 1e6."""
        self.held()
        started = self._started or self._start()
        self._started = None
        started.send_signal(signal.SIGCONT)
        output, _ = started.communicate()
        if started.returncode != 0:
            raise RuntimeError(f"{' '.join(self._command)} ended with {started.returncode}: {output}")
        return 1e6 * float(dict(RATE.findall(output))[self._unit])

    def end(self) -> None:
        """End a process that was started ahead and is not needed."""
        if self._started is not None:
            self._started.kill()
            self._started.communicate()
            self._started = None

    def _start(self) -> subprocess.Popen[str]:
        # One that is stopped would be left behind where this process ends on an error, or is killed.
        with_us = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
        command = [*with_us, *self._command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _read(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text()
    except OSError:
        return ""
