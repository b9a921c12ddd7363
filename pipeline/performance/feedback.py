"""What the stages said of a variant, in words: a Result and its findings in, one line for each fact out."""

from collections.abc import Iterator, Sequence

from pipeline.performance.quantities import seconds
from pipeline.records.outcome import Failure
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding
from pipeline.records.results.profiled import Comparison, Profiled
from pipeline.records.results.verified import Verified


def feedback(result: Result, findings: Sequence[Finding] = ()) -> tuple[str, ...]:
    """Outcome of each stage that was reached, the measurement, and the diagnosis."""
    return tuple(_lines(result, findings))


def _lines(result: Result, findings: Sequence[Finding]) -> Iterator[str]:
    for stage, record in result.records.items():
        if isinstance(record.result, Failure):
            yield f"{stage}: {record.result.outcome}: {' '.join(record.result.reason.split())}"
        elif isinstance(record.result, Verified):
            yield f"verify: passed, {_seen(record.result)}"
        elif isinstance(record.result, Profiled):
            yield from _measured(record.result)
        else:
            yield f"{stage}: passed"
    for finding in findings:
        gain = f" (at most {finding.gain_at_most:.3g} times faster)" if finding.gain_at_most else ""
        yield f"diagnosis ({finding.basis}): {finding.sentence}{gain}"


def _seen(verified: Verified) -> str:
    """The size of the errors; unknown if nothing ran here."""
    if verified.worst_share is None:
        return "as recorded: the errors were not seen"
    return f"largest error {verified.worst_share:.3g} of its bound"


def _measured(profiled: Profiled) -> Iterator[str]:
    median = profiled.time
    between = f"{seconds(median.low)} to {seconds(median.high)} at {median.confidence:.0%}"
    how = "measured" if profiled.recorded is None else f"recorded, not measured here ({profiled.recorded})"
    yield f"{how}: {seconds(median.value)} a call ({between})"
    for each in profiled.comparisons:
        yield _compared(each)
    for absent in profiled.absent:
        yield f"against {absent.baseline}: not measured: {absent.reason}"


def _compared(each: Comparison) -> str:
    found = each.speedup
    times = f"{found.value:.3g} times as fast ({found.low:.3g} to {found.high:.3g} at {found.confidence:.0%})"
    return f"against {each.baseline}: {times}: {each.verdict}"
