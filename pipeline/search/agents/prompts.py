"""Prompts: versioned templates, and what they show of a task and its trials.

Reasons, compiler messages and changes that a model requested are foreign text: one line each, shortened,
without markup. A compiler message about another file than the candidate's own is not shown at all: it would
send that file's content off this machine.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.outcome import Outcome
from pipeline.records.record import Record, digest_bytes
from pipeline.records.results.compiled import StaticFacts
from pipeline.records.search.brief import Brief
from pipeline.records.search.model_attempt import Attempt, Message, Template
from pipeline.records.search.search_trial import Trial

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent / "templates"
SUFFIX = ".md.j2"

_VERSION = re.compile(r"\A\{# version: (\d+) #\}\n")
# Control characters, and what changes the direction of text or does not show at all.
_CONTROL = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    r"|[\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_TAG = re.compile(r"<(?=/?data\b)", re.IGNORECASE)


class Prompt(Record, frozen=True, kw_only=True):
    """A rendered template."""

    template: Template
    system: str
    user: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """The first messages of the conversation."""
        return (Message(role="system", content=self.system), Message(role="user", content=self.user))


def render(name: str, values: Mapping[str, object]) -> Prompt:
    """Render the template of that name."""
    source = (FOLDER / f"{name}{SUFFIX}").read_bytes()
    template = _environment().get_template(f"{name}{SUFFIX}")
    context = template.new_context(dict(values))
    parts = {block: "".join(template.blocks[block](context)).strip() + "\n" for block in ("system", "user")}
    version = _VERSION.match(source.decode())
    assert version is not None, f"{name}{SUFFIX} does not begin with its version"
    return Prompt(
        template=Template(name=name, version=version[1], digest=digest_bytes(source)),
        system=parts["system"],
        user=parts["user"],
    )


def data(text: str, language: str) -> str:
    """Foreign text in a prompt: it cannot end its own section, and has no invisible characters."""
    shown = plain(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"<data>\n{fence}{language}\n{shown.rstrip()}\n{fence}\n</data>"


def line(text: str, at_most: int) -> str:
    """Foreign text as one line: shortened, without section tags and code fences."""
    flat = " ".join(plain(text).split()).replace("```", "'''")
    return flat if len(flat) <= at_most else flat[: at_most - 1] + "…"


def cut(text: str, at_most: int) -> str:
    """The beginning of a long text, with a note about what is missing."""
    if len(text) <= at_most:
        return text
    return f"{text[:at_most]}\n[… {len(text) - at_most} more characters]\n"


def plain(text: str) -> str:
    """The text without invisible characters and section tags."""
    return _TAG.sub("<\\\\", _CONTROL.sub("", text.replace("\r\n", "\n")))


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # prompts are no HTML; what is foreign goes through `data` or `line`
    )
    functions: dict[str, Any] = {"data": data}
    environment.globals.update(functions)
    return environment


REASON_AT_MOST = 500  # characters
HISTORY_AT_MOST = 12  # attempts
_CHANGE_AT_MOST = 200
_SHORT_REASON = 160
_FINDINGS_AT_MOST = 6


def device_lines(brief: Brief) -> list[str]:
    """Facts about the target."""
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
    """The kernel's guarantees, and the minimum cost of a call."""
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
    """Whether the reason is ours or the linker's, and cannot contain a file's content."""
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
