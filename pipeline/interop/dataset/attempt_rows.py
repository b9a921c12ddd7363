"""Rows of what coding agents submitted: the history of the store in, one row per attempt out, in order."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.interop.dataset.row_schema import AttemptRow, DatasetSource
from pipeline.interop.dataset.source_texts import UNLICENSED, Licensing, Redactor
from pipeline.records.record import digest, to_json
from pipeline.records.results.attempts import Attempt
from pipeline.store.attempt_history import read_attempts, source_path

WRITER = "agents"
"""Who wrote the sources, for `--declare`."""


def attempt_rows(root: Path, licensing: Licensing, cleaner: Redactor) -> Iterator[AttemptRow]:
    """All attempts of all clients; refused ones too, which the chains are made of."""
    latest: dict[tuple[str, str], str] = {}
    for attempt in read_attempts(root):
        chain = (attempt.client, attempt.verdict.problem)
        row = _row(attempt, latest.get(chain), root, licensing, cleaner)
        latest[chain] = row.id
        yield row


def _row(
    attempt: Attempt, previous: str | None, root: Path, licensing: Licensing, cleaner: Redactor
) -> AttemptRow:
    verdict, measured = attempt.verdict, attempt.measured

    def source(name: str, licence: str | None) -> DatasetSource:
        path = source_path(root, name)
        text = path.read_text(errors="replace") if path.is_file() else None
        allowed = licence is not None or licensing.unlicensed
        absent = "it is not in the store" if text is None else None if allowed else UNLICENSED
        return DatasetSource(
            text=None if text is None or absent is not None else cleaner.text(text),
            absent=absent,
            path=None,
            language="Python",
            origin=None,
            licence=licence,
        )

    return AttemptRow(
        id=digest(to_json(attempt).decode()),
        previous=previous,
        client=cleaner.text(attempt.client),
        conversation=attempt.conversation,
        order=attempt.order,
        number=attempt.number,
        created=attempt.created,
        hardware=attempt.hardware,
        problem=verdict.problem,
        problem_digest=attempt.problem_digest,
        reference=source(attempt.problem_source, None),
        source=source(attempt.source, licensing.declared.get(WRITER)),
        source_digest=attempt.source,
        outcome=verdict.outcome,
        feedback=cleaner.text("\n".join([f"{verdict.outcome}: {verdict.reason}", *verdict.notes])),
        worst_share=verdict.share,
        checks=verdict.checks,
        seconds=None if measured is None else measured.seconds,
        speedups=() if measured is None else measured.speedups,
        estimate_bound_share=None if measured is None else measured.estimate_bound_share,
    )
