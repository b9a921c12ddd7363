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


def rate(kernel: str, *, size: int, cores: int, iterations: int | None = None) -> float:
    """Bytes (STREAM's count) or operations per second on `size` bytes of all arrays over so many cores.

    `iterations` traversals of each thread, or as many as take a second. Its MByte and MFlop are 1e6.
    """
    workgroup = f"S0:{max(1, size // 1000)}kB:{cores}"
    command = [PROGRAM, "-t", kernel, "-W", workgroup]
    command += [] if iterations is None else ["-i", str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(RATE.findall(done.stdout))
    return 1e6 * float(found["MFlops" if kernel.startswith("peakflops") else "MByte"])
