"""Put what a search wrote into the store. In: proposals with texts of their own. Out: their digests.

A written source is kept together with every file of the repository that it includes or imports, so that it
means the same for ever: when a header changes, the declared variants change, but not what somebody wrote.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.errors import ConfigError
from pipeline.records.record import digest_bytes, digest_parts
from pipeline.records.search.written_source import (
    LARGEST,
    KeptSource,
    SourceRecord,
    Unfit,
    WrittenSource,
    unfit,
)
from pipeline.store.entries import find_entry, new_entry, put_record
from pipeline.store.stored_sources import FILES, STAGE


class Keeper:
    """Keeps written sources of one task; made by `keeper`."""

    def __init__(self, repository: Path, store: Path, copy: Path) -> None:
        self._repository = repository
        self._store = store
        self._copy = copy
        self._copied: set[str] = set()

    def keep(self, name: str, implementation: Implementation, source: WrittenSource) -> SourceRecord | Unfit:
        """Put one text in the place of the implementation's source; `name` is the implementation's."""
        problem = self._problem(implementation, source)
        if problem is not None:
            return unfit(source.author, problem, name)
        try:
            kept = self._files(implementation, source.text)
        except ConfigError as error:
            return unfit(source.author, str(error), name)
        entry = digest_parts(kept.files)
        if find_entry(self._store, STAGE, entry, KeptSource) is None:
            self._write(entry, kept, source.text)
        return SourceRecord(entry=entry, implementation=name, author=source.author, parents=source.parents)

    def _problem(self, implementation: Implementation, source: WrittenSource) -> str | None:
        if implementation.call is not None:
            function = implementation.call.function
            return f"the implementation calls {function} of an installed package: it has no source to replace"
        try:
            size = len(source.text.encode())
        except UnicodeEncodeError as error:
            return f"not a text: {error.reason}"
        if size > LARGEST:
            return f"{size:,} bytes, expected at most {LARGEST:,}"
        if not source.text.strip():
            return "the text is empty"
        if "\0" in source.text:
            return "not a text: it holds a null byte"
        return None

    def _files(self, implementation: Implementation, text: str) -> KeptSource:
        """What the text needs, as if it stood in the repository.

        Raises
        ------
        ConfigError
            It includes a file outside of the repository.
        """
        main = self._copy / implementation.source
        self._copy_folder(Path(implementation.source).parts[0])
        declared = main.read_bytes()
        try:
            main.write_bytes(text.encode())
            found = backend(implementation.backend).sources(implementation, self._copy)
            root = self._copy.resolve()
            return KeptSource(
                main=implementation.source,
                files={
                    path.resolve().relative_to(root).as_posix(): digest_bytes(path.read_bytes())
                    for path in found
                },
            )
        finally:
            main.write_bytes(declared)

    def _copy_folder(self, top: str) -> None:
        """Of the repository's folder that holds the kernels: what a source includes is sought in it."""
        if top not in self._copied:
            self._copied.add(top)
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(self._repository / top, self._copy / top, ignore=ignored)

    def _write(self, entry: str, kept: KeptSource, text: str) -> None:
        with new_entry(self._store, STAGE, entry) as folder:
            for name in kept.files:
                target = folder / FILES / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if name == kept.main:
                    target.write_bytes(text.encode())
                else:
                    shutil.copyfile(self._copy / name, target)
            put_record(folder, kept)


@contextmanager
def keeper(repository: Path, store: Path) -> Iterator[Keeper]:
    """A keeper with a scratch copy of the repository's sources, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kernelmill-sources-") as copy:
        yield Keeper(repository, store, Path(copy))
