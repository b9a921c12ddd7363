"""From proposals to variants. In: what a strategy proposed, the task's spec. Out: variants, sources kept.

Equal texts at equal points are one variant, whoever wrote them; a text equal to the declared source is the
declared variant.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.variant import Variant
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.written_source import Proposal, SourceRecord, Unfit, WrittenSource
from pipeline.search.source_storage import keeper
from pipeline.search.spaces.search_space import Point


class Made(Record, frozen=True, kw_only=True):
    """What became of a round's proposals."""

    variants: tuple[Variant, ...]
    records: tuple[SourceRecord, ...]
    unfit: tuple[Unfit, ...]
    attempts: tuple[Attempt, ...]
    """Of a language model, with the variants that came of them."""


def variants_of(
    spec: GenerateSpec, proposals: Sequence[Point | Proposal | Unfit], *, repository: Path, store: Path
) -> Made:
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
    with keeper(repository, store) as kept:
        for proposal in proposals:
            attempt = None if isinstance(proposal, tuple) else proposal.attempt
            if isinstance(proposal, Unfit):
                unfit.append(proposal)
                attempts += [attempt] if attempt is not None else []
                continue
            point, source = _parts(proposal)
            name = point[0]
            found = kept.keep(name, spec.implementations[name], source) if source else None
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
    return Made(
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
