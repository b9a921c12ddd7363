"""Whose a file with machine code is: the system's, an installed package's, or the candidate's own."""

import functools
import sys
from pathlib import Path

_SYSTEM = ("/lib", "/usr/lib", "/usr/local/cuda", "/opt/")
_C_LIBRARIES = (
    "libc.",
    "libm.",
    "libdl.",
    "libpthread.",
    "libgomp.",
    "librt.",
    "libstdc++",
    "libcuda",
    "libcudart",
)


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to the system."""
    if not path:
        return True
    resolved = str(Path(path).resolve())
    return resolved.startswith((*_SYSTEM, *_prefixes()))


def is_c_library(path: str) -> bool:
    """Whether a library gives a language its run time and computes nothing."""
    return Path(path).name.startswith(_C_LIBRARIES)


@functools.cache
def _prefixes() -> tuple[str, ...]:
    return tuple({str(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix)})
