"""Digest of the code of another package that comes in by entry point, on which results depend."""

import importlib.util
from pathlib import Path

from pipeline.backends.local_imports import closure
from pipeline.records.errors import ConfigError
from pipeline.records.record import digest_bytes, digest_parts


def package_digest(entry: str, module: str) -> str:
    """Digest of a module and all of its package that it imports; comments count.

    `entry` names the entry point in messages, for example `backend numpy`.
    """
    parts = module.split(".")
    specification = importlib.util.find_spec(module)
    if specification is None or specification.origin is None:
        raise ConfigError(f"{entry}: there is no module {module}")
    file = Path(specification.origin)
    root = file.parents[len(parts) - (file.name != "__init__.py")]
    initials = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts))]
    files = closure([file, *(path for path in initials if path.is_file())], root, within=parts[0])
    return digest_parts(
        {path.relative_to(root).as_posix(): digest_bytes(path.read_bytes()) for path in files}
    )
