"""Where a program of NVIDIA's toolkit is."""

import shutil
import sys
from pathlib import Path

_PLACE = Path("/usr/local/cuda/bin")


def find_tool(name: str) -> str | None:
    """A program on the path, next to this Python or to nvcc, or where NVIDIA's packages put it."""
    compiler = shutil.which("nvcc")
    beside = () if compiler is None else (Path(compiler).resolve().parent,)
    places = (Path(sys.executable).parent, *beside, _PLACE)
    return shutil.which(name) or next((str(path / name) for path in places if (path / name).is_file()), None)
