"""Why variants and candidates failed: outputs of a plan in, one line for each distinct reason out.

Reasons that differ in numbers alone are one: the first is shown, with how many there are of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from pipeline.performance.quantities import counted
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record, read_record
from pipeline.records.results.judged import Verdict
from pipeline.records.search.written_source import SourceRecord
from pipeline.sandbox.progress_messages import NEUTRAL
from pipeline.stages.table import STAGES, rounds

SHOWN = 12
"""Reasons that are printed; the report and the tables have all."""
PASSED = (Outcome.PASSED, Outcome.PASSED_REDUCED)
"""Outcomes of candidates that have nothing to explain."""
_TRIED = tuple(stage.name for stage in rounds() if stage.entry is not None)
_NUMBER = re.compile(r"-?\d[\w.]*(?:e[-+]\d+)?|nan|inf")


class FailureReason(Record, frozen=True, kw_only=True):
    """Variants, or candidates, that failed for one reason."""

    stage: str
    subject: str
    """`softmax bert_base cpu`, or `problem/candidate`."""
    implementation: str
    """Of the variant; empty: a candidate, which has none."""
    outcome: Outcome
    reason: str
    """Of the first of them: what happened, got, expected, bound."""
    variant: str
    """The first of them: who wrote its source, if a search did, and its tunables."""
    log: str | None
    """Folder of its store entry, or the log in it."""
    repeat: str = ""
    """The command that makes the failed call again; empty: there is none."""
    count: int


class RunOutcome(Record, frozen=True, kw_only=True):
    """How the variants of a plan ended."""

    variants: int
    passed: int
    """Those of which no stage that tried them says anything bad."""
    failures: tuple[FailureReason, ...]

    @property
    def succeeded(self) -> bool:
        """Whether anything of what was asked for did."""
        return self.passed > 0


class _Variant(msgspec.Struct):
    implementation: str
    tunables: dict[str, TunableValue] = {}
    source_digest: str = ""
    written: bool = False


class _Result(msgspec.Struct):
    outcome: Outcome = Outcome.PASSED
    reason: str = ""
    log: str | None = None


class _Tried(msgspec.Struct):
    """As much of a record as this needs: whole ones take five times as long to read."""

    variant: _Variant
    entry: str
    result: _Result


class _Output(msgspec.Struct):
    records: list[_Tried]


class _Proposed(msgspec.Struct):
    records: list[SourceRecord] = []


def find_outcome(plan: Plan, root: Path) -> RunOutcome:
    """Of all outputs that are there; tasks may share them."""
    found: list[FailureReason] = []
    variants = failed = 0
    for path, stage, row in _outputs(plan, root):
        records = read_record(path, _Output).records
        variants += len(records) if stage == _TRIED[0] else 0
        bad = [each for each in records if each.result.outcome not in NEUTRAL]
        failed += len(bad)
        authors = _authors(row, root) if any(each.variant.written for each in bad) else {}
        found += [_reason(stage, row, each, root, authors) for each in bad]
    return RunOutcome(variants=variants, passed=variants - failed, failures=tuple(_grouped(found)))


def _outputs(plan: Plan, root: Path) -> Iterator[tuple[Path, str, TaskRow]]:
    seen: set[Path] = set()
    for stage in _TRIED:
        for row in (task.row for task in plan.tasks):
            for number in range(row.rounds):
                path = STAGES[stage].output_path(root, getattr(row, stage), number)
                if path not in seen and path.is_file():
                    seen.add(path)
                    yield path, stage, row


def _authors(row: TaskRow, root: Path) -> dict[str, str]:
    """Identity of a source that a search wrote -> `candidates: fast.cpp`."""
    paths = [STAGES["generate"].output_path(root, row.generate, number) for number in range(row.rounds)]
    sources = [each for path in paths if path.is_file() for each in read_record(path, _Proposed).records]
    return {each.entry: f"{each.author.writer}: {each.author.name}" for each in sources}


def _reason(stage: str, row: TaskRow, tried: _Tried, root: Path, authors: Mapping[str, str]) -> FailureReason:
    folder = entry_path(root, stage, tried.entry)
    tunables = (f"{name}={value}" for name, value in tried.variant.tunables.items())
    author = authors.get(tried.variant.source_digest) if tried.variant.written else None
    log = folder / tried.result.log if tried.result.log else folder
    return FailureReason(
        stage=stage,
        subject=f"{row.kernel} {row.workload} {row.hardware}",
        implementation=tried.variant.implementation,
        outcome=tried.result.outcome,
        reason=tried.result.reason,
        variant=" ".join([*([f"({author})"] if author else []), *tunables]),
        log=str(log) if log.exists() else None,
        count=1,
    )


def judged_reasons(verdicts: Iterable[Verdict], root: Path) -> list[FailureReason]:
    """Of candidates: one for each, as no two are alike but those that the judge did not come to."""
    found = []
    for each in verdicts:
        if each.outcome in PASSED:
            continue
        logs = list((root / "store" / "judge").glob(f"{each.id[:2]}/{each.id}*/log.txt")) if each.id else []
        found.append(
            FailureReason(
                stage="judge",
                subject=f"{each.problem}/{each.solution}",
                implementation="",
                outcome=each.outcome,
                reason=each.reason,
                variant="",
                log=str(logs[0]) if logs else None,
                repeat=f"kernelmill judge --repeat {each.id}" if each.id else "",
                count=1,
            )
        )
    return found


def _grouped(found: Iterable[FailureReason]) -> Iterator[FailureReason]:
    groups: dict[tuple[str, ...], list[FailureReason]] = {}
    for each in found:
        alike = _NUMBER.sub("#", each.reason)
        groups.setdefault((each.stage, each.subject, each.implementation, each.outcome, alike), []).append(
            each
        )
    for several in groups.values():
        yield msgspec.structs.replace(several[0], count=len(several))


def failure_lines(failures: Sequence[FailureReason], *, heading: str = "") -> list[str]:
    """A heading, and for each reason a line with the reason and one with what there is to look at."""
    if not failures:
        return []
    lines = [heading or f"{counted(sum(each.count for each in failures), 'variant')} failed:"]
    for each in failures[:SHOWN]:
        times = f" ({each.count}x)" if each.count > 1 else ""
        name = f"{each.subject} {each.implementation}".rstrip()
        lines.append(f"  {name}: {each.outcome}: {_shortened(each.reason)}{times}")
        where = [each.variant, each.repeat, f"log {each.log}" if each.log else ""]
        if any(where):
            lines.append(f"      {' · '.join(part for part in where if part)}")
    if len(failures) > SHOWN:
        lines.append(f"  … and {len(failures) - SHOWN} more reasons in the tables")
    return lines


REASON_LENGTH = 400  # characters: what was wrong, got, expected and bound fit; a compiler's page does not


def _shortened(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= REASON_LENGTH else f"{line[: REASON_LENGTH - 1]}…"
