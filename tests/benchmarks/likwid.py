"""likwid-bench (Debian: likwid) as an independent tool: a short run in, bytes or operations a second out."""

import functools
import re
import shutil
import subprocess
from collections.abc import Sequence

PROGRAM = "likwid-bench"
# Its kernels are written in assembly, one for each instruction set: the widest that the processor has counts.
WIDTHS = (("avx512f", ("_avx512_fma", "_avx512")), ("avx", ("_avx_fma", "_avx")), ("sse2", ("_sse",)))
RATE = re.compile(r"^(MByte|MFlops)/s:\s+([\d.]+)$", re.MULTILINE)
FLOPS = re.compile(r"^Flops per element: (\d+)$", re.MULTILINE)


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

    Each takes a second more than it computes: likwid-bench counts its clock through two sleeps of half a
    second. Stopping it in these (SIGSTOP), so that several wait side by side, makes it count falsely: with
    that, its figures were two to five times too low.
    """

    def __init__(self, kernel: str, *, size: int, cores: int, iterations: int) -> None:
        workgroup = f"S0:{max(1, size // 1000)}kB:{cores}"
        self._command = [PROGRAM, "-t", kernel, "-W", workgroup, "-i", str(iterations)]
        self._unit = "MFlops" if kernel.startswith("peakflops") else "MByte"

    def __call__(self) -> float:
        """Bytes (STREAM's count) or operations per second. Its MByte and MFlop are 1e6."""
        done = subprocess.run(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(self._command)} ended with {done.returncode}: {done.stdout}")
        return 1e6 * float(dict(RATE.findall(done.stdout))[self._unit])
