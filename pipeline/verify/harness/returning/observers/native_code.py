"""Native code of the candidate's own in this process, and what it imports from libraries that compute.

In: nothing. Out: files that are mapped and were built by it; names of functions of PyTorch that they call
past its dispatcher, where nobody sees them being called.
"""

import re
import struct
from pathlib import Path

from pipeline.verify.harness.returning.observers import elf
from pipeline.verify.harness.returning.observers.libraries import is_installed

_MAPPED = re.compile(r"^\S+ \S*x\S* \S+ \S+ \S+ +(/.*)$", re.MULTILINE)
_DIRECT = re.compile(
    rb"_ZNK?2at(?:6native|3cpu|27compositeexplicitautograd)(\w+)|(cblas_\w+|[sd]gemm_|dnnl_\w+_execute)$"
)
_PASSED = ("(deleted)", "/memfd:", "/dev/", "/anon_hugepage", "/SYSV")


def mapped() -> tuple[str, ...]:
    """Files with machine code in this process that no package has installed."""
    found = dict.fromkeys(_MAPPED.findall(Path("/proc/self/maps").read_text(errors="replace")))
    return tuple(path for path in found if path.startswith("/memfd:") or not _is_known(path))


def _is_known(path: str) -> bool:
    return path.startswith(_PASSED) or is_installed(path)


def direct_calls(path: str) -> tuple[str, ...]:
    """Functions of PyTorch or of linear algebra that a shared object imports past the dispatcher."""
    try:
        names = elf.imported(Path(path).read_bytes())
    except (OSError, ValueError, struct.error, IndexError):
        return ()
    found = (_DIRECT.match(name) for name in names)
    return tuple(dict.fromkeys(_readable(match) for match in found if match))


def _readable(match: re.Match[bytes]) -> str:
    """`at::native::softmax_cpu` from a mangled name."""
    if match[2]:
        return match[2].decode()
    length = re.match(rb"(\d+)", match[1])
    rest = match[1][length.end() : length.end() + int(length[1])] if length else match[1]
    return f"at::native::{rest.decode(errors='replace')}"
