"""Sources that a search wrote, as the store keeps them: where they lie, and what stands in them.

In: a variant. Out: the folder that takes the repository's place for it, with the same paths below. A declared
variant's folder is the repository itself.
"""

from collections.abc import Iterable
from pathlib import Path

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import read_record
from pipeline.records.results.variant import Variant
from pipeline.records.search.written_source import KeptSource
from pipeline.store.entries import RECORD, bring_entries, require_entry

STAGE = "generate"
"""The stage whose entries they are."""
FILES = "files"


def root_of(variant: Variant, store: Path) -> Path:
    """Absolute path of the folder below which the variant's sources lie."""
    if not variant.written:
        return Path.cwd()
    return (entry_path(store, STAGE, variant.source_digest) / FILES).absolute()


def main_file(variant: Variant, store: Path) -> Path:
    """The written text itself.

    Raises
    ------
    StoreError
        The store has no such source, or a damaged one.
    """
    kept = read_record(entry_path(store, STAGE, variant.source_digest) / RECORD, KeptSource)
    return root_of(variant, store) / kept.main


def written_text(variant: Variant, store: Path) -> str:
    """What somebody wrote in place of the declared source.

    Raises
    ------
    StoreError
        The same, or the file is gone.
    """
    path = main_file(variant, store)
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def require_sources(variants: Iterable[Variant], store: Path, output: Path) -> None:
    """See that the written sources among them are whole before anything runs; shared ones are brought first.

    Raises
    ------
    StoreError
        One is not: it and the `output` that needs it are gone, so that the next run makes both again.
    """
    digests = list(dict.fromkeys(variant.source_digest for variant in variants if variant.written))
    if not digests:
        return
    bring_entries(store, STAGE, digests)
    for digest in digests:
        require_entry(store, STAGE, digest, output)
