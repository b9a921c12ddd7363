"""Texts of sources with their licences. In: variants and references. Out: Sources, and files that they need.

A text is the one that was judged: where the checkout changed since, it comes from the store, or is absent.
A text without a licence is left out unless it is requested; the user may declare the licence of generated
texts. Paths and names of this machine are removed.
"""

import collections
import getpass
import platform
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.language import PYTHON, Language
from pipeline.backends.registry import backend, backend_names
from pipeline.backends.source_digests import Sources
from pipeline.interop.dataset.row_schema import DatasetSource, File, SourcePart
from pipeline.records import environment
from pipeline.records.configuration.kernel import Implementation, Kernel
from pipeline.records.errors import ConfigError, StoreError, ToolchainError
from pipeline.records.layout import entry_path
from pipeline.records.record import Record, digest_bytes, digest_parts, read_record
from pipeline.records.results.variant import Variant
from pipeline.records.search.written_source import KeptSource, SourceRecord
from pipeline.store.entries import RECORD
from pipeline.store.privacy import SHORTEST, private_paths, without_paths
from pipeline.store.stored_sources import STAGE, root_of

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


COPIES = "sources"
"""Folder of a compile entry in which backends keep what they compiled."""
REMEMBERED = 200  # sources
UNLICENSED = "no licence is known: --unlicensed exports it, --declare WRITER=LICENCE says one"


class Licensing(Record, frozen=True, kw_only=True):
    """What the user says of licences."""

    unlicensed: bool = False
    """Export texts without one, too."""
    declared: dict[str, str] = {}
    """Writer of sources (`llm`, `candidates`) -> the licence of what it wrote, given by the user."""


class _Found(NamedTuple):
    """Files of a source below a folder, the main one first; or why there are none."""

    folder: Path
    names: tuple[str, ...]
    absent: str | None = None


class SourceTextReader:
    """Reads each source once; `files` yields what they include, each once."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        *,
        folder: Path,
        root: Path,
        licensing: Licensing,
        cleaner: Redactor,
    ) -> None:
        """`folder` is the checkout, `root` its artifact store, `kernels` what it declares now."""
        self._kernels = kernels
        self._folder = folder
        self._root = root
        self._licensing = licensing
        self._cleaner = cleaner
        self._sources = Sources(folder)
        self.remembered: collections.OrderedDict[str, DatasetSource] = collections.OrderedDict()
        self._new: list[File] = []
        self._seen: set[str] = set()
        self._licence = project_licence(folder)

    def files(self) -> Iterator[File]:
        """Files that sources since the last call were the first to include."""
        new, self._new = self._new, []
        yield from new

    def reference(self, kernel: str, named: str | None, digest: str | None) -> DatasetSource:
        """The reference's module, if it still is what was judged against; `named` is `module:function`."""
        declared = self._kernels.get(kernel)
        key = f"reference {named} {digest}"
        return self._once(key, lambda: self._module(declared, named, digest))

    def _once(self, key: str, read: Callable[[], DatasetSource]) -> DatasetSource:
        """What was read lately is not read again; all of it would not fit into memory."""
        if key not in self.remembered:
            self.remembered[key] = read()
            if len(self.remembered) > REMEMBERED:
                self.remembered.popitem(last=False)
        self.remembered.move_to_end(key)
        return self.remembered[key]

    def _module(self, kernel: Kernel | None, named: str | None, digest: str | None) -> DatasetSource:
        absent = self._why_no_reference(kernel, named, digest)
        path = None if named is None else "/".join(named.partition(":")[0].split(".")) + ".py"
        return DatasetSource(
            text=None if absent or path is None else (self._folder / path).read_text(),
            absent=absent,
            path=path,
            language=PYTHON.name,
            origin="this project",
            licence=self._licence,
        )

    def _why_no_reference(self, kernel: Kernel | None, named: str | None, digest: str | None) -> str | None:
        if named is None or digest is None:
            return "the plan that names it is not at hand"
        if kernel is None or kernel.reference != named:
            return "it is not declared any more"
        if self._licence is None and not self._licensing.unlicensed:
            return UNLICENSED
        try:
            now = self._sources.reference(kernel, kernel.name)
        except ConfigError:
            return "it is gone"
        if now != digest:
            return "it has changed since"
        module = self._folder.joinpath(*named.partition(":")[0].split(".")).with_suffix(".py")
        return None if module.is_file() else "it is a part of an installed package"

    def source(self, variant: Variant, written: SourceRecord | None, entry: str | None) -> DatasetSource:
        """The variant's source; `entry` is that of the stage compile."""
        key = f"{variant.kernel} {variant.implementation} {variant.source_digest}"
        return self._once(key, lambda: self._read(variant, written, entry))

    def _read(self, variant: Variant, written: SourceRecord | None, entry: str | None) -> DatasetSource:
        implementation = self._implementation(variant)
        origin, licence = self._origin(implementation, variant, written)
        found = self._found(variant, implementation, entry)
        withheld = UNLICENSED if licence is None and not self._licensing.unlicensed else None
        absent = found.absent or withheld
        own = implementation.licence if implementation else None  # they are the repository's
        parts = () if absent else tuple(self._part(found.folder, name, own) for name in found.names[1:])
        return DatasetSource(
            text=None if absent else self._text(found.folder / found.names[0], clean=variant.written),
            absent=absent,
            path=found.names[0] if found.names else None,
            language=_language(variant.backend).name,
            origin=origin,
            licence=licence,
            parts=parts,
        )

    def _implementation(self, variant: Variant) -> Implementation | None:
        kernel = self._kernels.get(variant.kernel)
        return kernel.implementations.get(variant.implementation) if kernel else None

    def _origin(
        self, implementation: Implementation | None, variant: Variant, written: SourceRecord | None
    ) -> tuple[str | None, str | None]:
        """Where the text comes from, and its licence; None if this is not known."""
        origin = implementation.origin if implementation else None
        licence = implementation.licence if implementation else None
        if not variant.written:
            return origin, licence
        if written is None:
            return None, None
        author = written.author
        named = f"{author.writer}: {author.name}"
        if author.derived:
            return f"{named}, from: {origin}", licence
        return named, author.details.get("licence") or self._licensing.declared.get(author.writer)

    def _found(self, variant: Variant, implementation: Implementation | None, entry: str | None) -> _Found:
        """Where its files lie, as they were when it was judged."""
        if variant.written:
            return self._kept(variant)
        if implementation is not None and implementation.call is not None:
            call = implementation.call
            return _Found(self._folder, (), f"calls {call.function} of the package {call.package}")
        if implementation is not None:
            names = self._unchanged(variant, implementation)
            if names:
                return _Found(self._folder, names)
        names = self._copied(variant, implementation, entry)
        if entry is not None and names:
            return _Found(entry_path(self._root, "compile", entry) / COPIES, names)
        return _Found(self._folder, (), "it has changed since, and the store keeps no copy of it")

    def _kept(self, variant: Variant) -> _Found:
        folder = root_of(variant, self._root)
        try:
            kept = read_record(entry_path(self._root, STAGE, variant.source_digest) / RECORD, KeptSource)
        except StoreError:
            return _Found(folder, (), "the store has lost it")
        if any(not (folder / name).is_file() for name in kept.files):
            return _Found(folder, (), "the store has lost a part of it")
        return _Found(folder, (kept.main, *(name for name in sorted(kept.files) if name != kept.main)))

    def _unchanged(self, variant: Variant, implementation: Implementation) -> tuple[str, ...]:
        """Names in the checkout; none where it is not the source that was judged."""
        try:
            if self._sources.implementation(implementation) != variant.source_digest:
                return ()
        except (ConfigError, ToolchainError, OSError):
            return ()
        top = self._folder.resolve()
        files = backend(implementation.backend).sources(implementation, self._folder)
        names = [path.resolve().relative_to(top).as_posix() for path in files]
        main = implementation.source
        return (main, *(name for name in sorted(names) if name != main))

    def _copied(
        self, variant: Variant, implementation: Implementation | None, entry: str | None
    ) -> tuple[str, ...]:
        """Names of the copies that compile kept, if they are whole and the main one is known."""
        if entry is None or implementation is None:
            return ()
        folder = entry_path(self._root, "compile", entry) / COPIES
        digests = {
            path.relative_to(folder).as_posix(): digest_bytes(path.read_bytes())
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        main = implementation.source
        if main not in digests or digest_parts(digests) != variant.source_digest:
            return ()
        return (main, *(name for name in digests if name != main))

    def _part(self, folder: Path, name: str, licence: str | None) -> SourcePart:
        text = self._text(folder / name, clean=False)
        part = SourcePart(path=name, digest=digest_bytes(text.encode()))
        if part.digest not in self._seen and (licence is not None or self._licensing.unlicensed):
            self._seen.add(part.digest)
            self._new.append(File(digest=part.digest, path=name, text=text, licence=licence))
        return part

    def _text(self, path: Path, *, clean: bool) -> str:
        """As it is; what somebody wrote without what is private."""
        text = path.read_bytes().decode(errors="replace")
        return self._cleaner.text(text) if clean else text


def _language(name: str) -> Language:
    """Of a backend's sources; a backend that is not installed here is taken for one of Python functions."""
    return backend(name).language if name in backend_names() else PYTHON


def project_licence(folder: Path) -> str | None:
    """What the checkout's pyproject.toml states; it is that of the references, which stand in it."""
    try:
        stated = tomllib.loads((folder / "pyproject.toml").read_text())["project"].get("license")
    except (OSError, tomllib.TOMLDecodeError, KeyError):
        return None
    return stated if isinstance(stated, str) else None
