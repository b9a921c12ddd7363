"""What a prompt shows of a task and its trials: records in, short lines out.

Reasons, compilers' messages and changes that a model asked for are foreign text: one line each, cut short,
without marks. What a compiler says of another file than the candidate's own is not shown at all: it would
carry that file's content off this machine.
"""

from collections.abc import Mapping, Sequence

from pipeline.records.outcome import Outcome
from pipeline.records.results.compiled import StaticFacts
from pipeline.records.search.brief import Brief
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.prompts import line

REASON_AT_MOST = 500  # characters
HISTORY_AT_MOST = 12  # attempts
_CHANGE_AT_MOST = 200
_SHORT_REASON = 160
_FINDINGS_AT_MOST = 6


def device_lines(brief: Brief) -> list[str]:
    """The target's facts."""
    target = brief.target
    lines = [f"{target.kind}, architecture {target.architecture}"]
    if brief.device:
        lines.append(f"model: {line(brief.device, 100)}")
    if target.limits:
        lines.append(
            "limits: " + ", ".join(f"{name}={value}" for name, value in sorted(target.limits.items()))
        )
    if target.features:
        lines.append("instruction set: " + " ".join(target.features))
    for name, peak in sorted(brief.peaks.items()):
        lines.append(f"declared peak {name}: {peak.value:g} {peak.unit}")
    return lines


def promise_lines(brief: Brief) -> list[str]:
    """What the kernel promises, and what one call costs at least."""
    cost = brief.cost
    lines = [
        f"operations of one call: {cost.flops}; compulsory bytes: {cost.bytes} ({cost.unit} unit)",
    ]
    if brief.deterministic:
        lines.append("equal inputs give equal bits, in every call and with every number of threads")
    if brief.special_values:
        lines.append("NaN and infinity propagate as in the reference")
    return lines


def trial_lines(trial: Trial, own: str, first: Trial | None) -> list[str]:
    """Verdict, time, facts and diagnosis; `own` is the path of the candidate's source."""
    lines = [f"verdict of the check: {_verdict(trial, own, REASON_AT_MOST)}"]
    if trial.seconds is not None:
        found = trial.seconds
        between = f"{found.low * 1e6:.4g} to {found.high * 1e6:.4g} at {found.confidence:.0%}"
        lines.append(f"measured: {found.value * 1e6:.4g} us a call ({between}){_gain(trial, first)}")
    if trial.facts is not None:
        lines.append(f"read from its machine code: {_facts(trial.facts)}")
    for finding in trial.diagnosis[:_FINDINGS_AT_MOST]:
        gain = f" (at most {finding.gain_at_most:.3g} times faster)" if finding.gain_at_most else ""
        lines.append(f"diagnosis ({finding.basis}): {line(finding.sentence, REASON_AT_MOST)}{gain}")
    return lines


def history_lines(
    rounds: Sequence[Sequence[Attempt]], trials: Mapping[str, Trial], own: str, first: Trial | None
) -> list[str]:
    """The latest attempts, one line each; `trials` are by variant."""
    lines = []
    for number, attempts in enumerate(rounds):
        for attempt in attempts:
            if attempt.parent is None:
                continue
            wanted = line(attempt.change or "a change of the writer's choice", _CHANGE_AT_MOST)
            trial = trials.get(attempt.variant or "")
            if trial is None:
                came = f"{attempt.outcome}: {line(attempt.reason or 'no variant', _SHORT_REASON)}"
            else:
                came = _verdict(trial, own, _SHORT_REASON) + _gain(trial, first)
            lines.append(f"round {number}: {wanted} -> {came}")
    return lines[-HISTORY_AT_MOST:]


def _verdict(trial: Trial, own: str, at_most: int) -> str:
    if trial.outcome is Outcome.PASSED:
        return "passed"
    reason = line(trial.reason or "", at_most)
    if trial.outcome is Outcome.COMPILE_ERROR and not (reason.startswith(own) or _is_plain(reason)):
        reason = "the compiler complains about another file than the source"
    return f"{trial.outcome} in {trial.stage}: {reason}"


def _is_plain(reason: str) -> bool:
    """Our own words, or the linker's about a name: nothing of a file's content is in them."""
    return reason.startswith(("the source has no function", "the compiler did not finish")) or (
        "undefined reference" in reason
    )


def _gain(trial: Trial, first: Trial | None) -> str:
    if trial.seconds is None or first is None or first.seconds is None or trial is first:
        return ""
    return f", {first.seconds.value / trial.seconds.value:.3g} times as fast as the first source"


def _facts(facts: StaticFacts) -> str:
    parts = [] if facts.code_bytes is None else [f"{facts.code_bytes} bytes of code"]
    for name in ("registers", "spills", "shared_memory", "local_memory", "barriers"):
        value = getattr(facts, name)
        if value is not None:
            parts.append(f"{name} {value}")
    for label, counts in (("instructions", facts.instructions), ("extensions", facts.extensions)):
        if counts:
            parts.append(f"{label}: " + " ".join(f"{name}={count}" for name, count in sorted(counts.items())))
    return "; ".join(parts)
