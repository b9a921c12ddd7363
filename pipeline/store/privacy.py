"""Take out of texts what says where they were made: paths and name of the machine in, placeholders out."""

import platform
import re
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

SHORTEST = 4  # letters of a path or a name worth replacing: `/` and `/a` stand everywhere


def private_paths(folder: Path) -> dict[str, str]:
    """Paths of this machine, the longest first, and what stands for each; `folder` is that of the run."""
    found = {
        str(folder.absolute()): ".",
        str(folder.resolve()): ".",
        sysconfig.get_path("purelib"): "<packages>",
        sysconfig.get_path("platlib"): "<packages>",
        sys.prefix: "<python>",
        sys.base_prefix: "<python>",
        str(Path.home()): "~",
    }
    # /usr is where the system's Python lives, and on every machine alike.
    kept = {path: name for path, name in found.items() if len(path) >= SHORTEST and path != "/usr"}
    return dict(sorted(kept.items(), key=lambda item: -len(item[0])))


def without_paths(content: bytes, paths: Mapping[str, str]) -> bytes:
    """The text with every path replaced; in JSON too, as neither side needs an escape there."""
    for path, name in paths.items():
        content = re.sub(re.escape(path.encode()) + rb"(?![\w.-])", name.encode(), content)
    return content


def without_host(content: bytes, host: str | None = None) -> bytes:
    """A log without the machine's name; not for records, in which a name such as `h200` means something."""
    name = platform.node() if host is None else host
    if len(name) < SHORTEST or name == "localhost":
        return content
    return re.sub(rb"(?<![\w-])" + re.escape(name.encode()) + rb"(?![\w-])", b"<host>", content)
