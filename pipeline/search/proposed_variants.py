"""Turn the proposals of a round into variants, and put the sources that a search wrote into the store.

Equal texts at equal points are one variant, whichever search wrote them; a text equal to the declared source
is the declared variant. A written source is stored together with every file of the repository that it
includes or imports, so that its meaning does not change: when a header changes, declared variants change with
it, and written ones do not.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, digest_bytes, digest_parts
from pipeline.records.results.variant import Variant
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.written_source import (
    LARGEST,
    KeptSource,
    Proposal,
    SourceRecord,
    Unfit,
    WrittenSource,
    unfit,
)
from pipeline.search.spaces.search_space import Point
from pipeline.store.entries import find_entry, new_entry, put_record
from pipeline.store.stored_sources import FILES, STAGE


class ProposedVariants(Record, frozen=True, kw_only=True):
    """The variants of a round's proposals, and the proposals that are no variants."""

    variants: tuple[Variant, ...]
    records: tuple[SourceRecord, ...]
    unfit: tuple[Unfit, ...]
    attempts: tuple[Attempt, ...]
    """Attempts of a language model, with their variants."""


def variants_of(
    spec: GenerateSpec, proposals: Sequence[Point | Proposal | Unfit], *, repository: Path, store: Path
) -> ProposedVariants:
    """Variants in the order of the proposals; written sources are in the store afterwards.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    variants: dict[str, Variant] = {}
    records: dict[str, SourceRecord] = {}
    unfit: list[Unfit] = []
    attempts: list[Attempt] = []
    with written_sources(repository, store) as written:
        for proposal in proposals:
            attempt = None if isinstance(proposal, tuple) else proposal.attempt
            if isinstance(proposal, Unfit):
                unfit.append(proposal)
                attempts += [attempt] if attempt is not None else []
                continue
            point, source = _parts(proposal)
            name = point[0]
            found = written.put(name, spec.implementations[name], source) if source else None
            if isinstance(found, Unfit):
                unfit.append(found)
                attempts += [attempt] if attempt is not None else []
                continue
            variant = _variant(spec, point, found.entry if found else None)
            if attempt is not None:
                attempts.append(msgspec.structs.replace(attempt, variant=variant.id))
            variants.setdefault(variant.id, variant)
            if found is not None and variant.written:
                records.setdefault(found.entry, found)
    return ProposedVariants(
        variants=tuple(variants.values()),
        records=tuple(records.values()),
        unfit=tuple(unfit),
        attempts=tuple(attempts),
    )


def _parts(proposal: Point | Proposal) -> tuple[Point, WrittenSource | None]:
    if isinstance(proposal, Proposal):
        return (proposal.implementation, proposal.tunables), proposal.source
    return proposal, None


def _variant(spec: GenerateSpec, point: Point, entry: str | None) -> Variant:
    name, tunables = point
    declared = spec.source_digests[name]
    return Variant(
        kernel=spec.kernel,
        implementation=name,
        backend=spec.implementations[name].backend,
        source_digest=entry or declared,
        attributes=spec.problem.attributes,
        tunables=tunables,
        written=entry is not None and entry != declared,
    )


class WrittenSources:
    """Stores the written sources of one task; made by `written_sources`."""

    def __init__(self, repository: Path, store: Path, copy: Path) -> None:
        self._repository = repository
        self._store = store
        self._copy = copy
        self._copied: set[str] = set()

    def put(self, name: str, implementation: Implementation, source: WrittenSource) -> SourceRecord | Unfit:
        """Store a text that replaces the source of the implementation `name`."""
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
        """The files that the text needs if it replaces the implementation's source.

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
        """Copy the folder of the kernels: what a source includes is looked up there."""
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
def written_sources(repository: Path, store: Path) -> Iterator[WrittenSources]:
    """The storage, with a scratch copy of the repository's sources that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="kernelmill-sources-") as copy:
        yield WrittenSources(repository, store, Path(copy))
