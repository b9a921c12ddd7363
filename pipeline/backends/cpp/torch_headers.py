"""Sources that PyTorch generated include a header of its own. In: a source. Out: what compiles it.

The header brings vectors (`at::vec`), whose exponentials are in libtorch_cpu. Flags are those that Inductor
compiles with (torch/_inductor/cpp_builder.py), as far as they decide what code computes.
"""

import importlib.util
import re
from pathlib import Path

from pipeline.records.errors import ToolchainError

_INCLUDE = re.compile(r"^\s*#\s*include\s*<torch/csrc/inductor/", re.MULTILINE)
_FLAGS = ("-std=c++20", "-DNDEBUG", "-ffp-contract=off", "-fno-tree-loop-vectorize")


def arguments(source: str) -> tuple[str, ...]:
    """Of the compiler, for such a source; none for any other.

    Raises
    ------
    ToolchainError
        PyTorch is not installed with its headers.
    """
    if not _INCLUDE.search(source):
        return ()
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise ToolchainError("a source includes PyTorch's headers: python -m pip install torch")
    folder = Path(found.origin).parent
    includes = (folder / "include", folder / "include/torch/csrc/api/include")
    return (
        *_FLAGS,
        *(f"-I{include}" for include in includes),
        *(f"-L{folder / 'lib'}", "-Wl,--as-needed", "-ltorch_cpu", "-lc10"),
    )
