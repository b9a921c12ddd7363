"""Take out of texts what says where they were made, and by whom: texts in, the same with placeholders out."""

import getpass
import platform
import re
import tempfile
from pathlib import Path

from pipeline.records import environment
from pipeline.store.privacy import SHORTEST, private_paths, without_paths

EVERYWHERE = frozenset({"localhost", "root", "user", "admin", "runner", "ubuntu"})
"""Names that say nothing of a machine or a person, and stand in texts for other things."""
KEY_AT_LEAST = 6  # characters; a shorter word is no secret, and would tear holes into texts
_HOME = re.compile(rb"/(?:home|Users)/[^/\s\"'<>:;,)\]}\\]+")


class Redactor:
    """Knows what is private on this machine; made once for an export."""

    def __init__(self, folder: Path, root: Path) -> None:
        """`folder` is that of the checkout, `root` the artifact store."""
        extra = {
            str(root.absolute()): "artifacts",
            str(root.resolve()): "artifacts",
            tempfile.gettempdir(): "<tmp>",
        }
        found = extra | private_paths(folder)
        longest_first = sorted(found.items(), key=lambda item: -len(item[0]))
        self._paths = {path: name for path, name in longest_first if len(path) >= SHORTEST}
        names = {platform.node(): "<host>", _user(): "<user>"}
        self._names = {
            re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"): shown
            for name, shown in names.items()
            if len(name) >= SHORTEST and name not in EVERYWHERE
        }
        self._keys = tuple(key for key in environment.api_keys() if len(key) >= KEY_AT_LEAST)

    def encoded(self, content: bytes) -> bytes:
        """A whole row in JSON: no path of this machine, no key."""
        for key in self._keys:
            content = content.replace(key.encode(), b"[key]")
        return _HOME.sub(b"~", without_paths(content, self._paths))

    def text(self, text: str) -> str:
        """A text that a program or a model wrote: no name of machine or user either.

        Not for names of ours, such as `h200`, which a machine may have as well.
        """
        for pattern, shown in self._names.items():
            text = pattern.sub(shown, text)
        return self.encoded(text.encode()).decode()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in containers
        return ""
