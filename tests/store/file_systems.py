"""File systems behind URLs, in memory: one whose files grow while they are written, and one that refuses."""

from typing import Any, ClassVar

from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem


class Ftp(MemoryFileSystem):
    """Like FTP: no whole objects, but files that grow, and a rename."""

    protocol = "ftplike"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs = [""]
    seen: ClassVar[list[set[str]]] = []
    """The names that others saw, each time a part was written."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix(f"{cls.protocol}:/")))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **named: Any) -> None:
        """In two halves."""
        super().pipe_file(path, value[: len(value) // 2])
        self.seen.append(set(self.store))
        super().pipe_file(path, value)

    def mv(self, path1: str, path2: str, **named: Any) -> None:
        """Rename."""
        self.store[self._strip_protocol(path2)] = self.store.pop(self._strip_protocol(path1))


class Refusing(MemoryFileSystem):
    """Like a bucket that one may not use."""

    protocol = "refusing"
    store: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix(f"{cls.protocol}:/")))

    def cat_file(self, path: str, *given: Any, **named: Any) -> bytes:
        """No."""
        self.asked.append(path)
        raise PermissionError("Access Denied")

    def exists(self, path: str, **named: Any) -> bool:
        """No."""
        self.asked.append(path)
        raise PermissionError("Access Denied")


def register() -> None:
    """Make them known to fsspec."""
    for system in (Ftp, Refusing):
        register_implementation(system.protocol, system, clobber=True)
        system.store.clear()
    Ftp.seen.clear()
    Refusing.asked.clear()
    MemoryFileSystem.store.clear()
