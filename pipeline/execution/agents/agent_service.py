"""What a coding agent can ask: names and texts in, records that a model understands out.

Every submission is recorded in its client's history, which holds the limits and is exported with the data
set. One client's submissions are judged one after the other; those of others do not wait for them.
"""

import ast
import contextlib
import datetime
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.execution.agents.single_judging import SingleVerdict, SubmissionJudge
from pipeline.performance.quantities import counted
from pipeline.records.errors import ConfigError, hint
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.attempts import Attempt, AttemptSpeedup, MeasuredAttempt
from pipeline.records.results.judged import JudgeSpec, Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.stages.timing import PASSED
from pipeline.store.attempt_history import append_attempt, locked, put_source, read_attempts, source_path
from pipeline.verify.candidates.verdict_meanings import CONDITIONS, MEANINGS, VerdictMeaning

LONGEST_SOURCE = 1 << 20
"""Characters of a source: what a person or a model writes is far below."""
NOT_TIMED = "this attempt was not measured: call measure with its source"
NO_CODE = (
    "machine code by source line and hardware counters are not available for candidates: judging keeps none "
    "of their binaries"
)
CANDIDATE = (
    "the text of a Python file with `class ModelNew(torch.nn.Module)`: its constructor and its forward take "
    "the arguments of Model's; kernels in Triton, in C++ or CUDA through load_inline, or by ctypes"
)
Finish = Callable[[Attempt, float], Attempt]
"""What follows on a verdict, within so many seconds."""
Logger = Callable[[Attempt, str], None]
"""Is given every attempt with its source."""


class ClientLimits(Record, frozen=True, kw_only=True):
    """What one client may use; None: as much as it likes. Verdicts that are known cost no time."""

    calls: int | None = None
    """Submissions."""
    seconds: float | None = None
    """Of judging and measuring, in all."""
    seconds_per_call: float = 600.0
    """Until a call ends without a verdict, waiting for a free core included."""
    price: float = 0.0
    """Of a second of judging or measuring, in any currency."""
    budget: float | None = None
    """In the same currency."""


class ServiceOptions(NamedTuple):
    """What the server offers, and how."""

    folder: Path
    hardware: str
    verify: str
    store: Path
    limits: ClientLimits


class ListedProblem(Record, frozen=True, kw_only=True):
    """A line of the list of problems."""

    name: str
    attempts: int
    """Of this client."""
    best: Outcome | None
    """`passed` if one of them did, else the outcome of the last; None: there is none."""
    unusable: str | None
    """Why no candidate can be judged."""


class ReadProblem(Record, frozen=True, kw_only=True):
    """A problem as an agent needs it to write a candidate."""

    name: str
    source: str
    """`problem.py`."""
    sizes: tuple[str, ...]
    """Assignments of the module, `columns = 2 * 40`: candidates are also called with smaller sizes."""
    inputs: str
    """The functions that make the arguments of `forward` and of the constructor."""
    submit: str
    """What a candidate is."""
    judged_on: str
    conditions: tuple[str, ...]
    """All that it must be right for."""


class Usage(Record, frozen=True, kw_only=True):
    """What a client has used, and what is left; None: there is no limit."""

    calls: int
    seconds: float
    cost: float
    calls_left: int | None
    seconds_left: float | None
    budget_left: float | None


class JudgedSubmission(Record, frozen=True, kw_only=True):
    """The answer to a submission."""

    attempt: int
    """For `profile`."""
    outcome: Outcome
    reason: str
    """Where it went wrong, got, expected, bound."""
    meaning: VerdictMeaning
    error_share: float | None
    """Largest error as a share of its bound."""
    notes: tuple[str, ...]
    where: str | None
    repeat: str | None
    """Command for a person that makes the call again that failed."""
    known: bool
    judged_seconds: float
    measured: MeasuredAttempt | None
    unmeasured: str | None
    """Why it was not measured, though that was asked for."""
    usage: Usage


class PastAttempt(Record, frozen=True, kw_only=True):
    """A line of the history."""

    attempt: int
    created: str
    outcome: Outcome
    reason: str
    seconds: float
    measured: MeasuredAttempt | None
    source: str | None
    """Of the last attempt, and of the last that passed."""


class CandidateProfile(Record, frozen=True, kw_only=True):
    """What is known of a candidate beyond its verdict."""

    attempt: int
    outcome: Outcome
    measured: MeasuredAttempt | None
    facts: tuple[str, ...]
    """Notes of the verdict, with registers and spills of kernels that were compiled for an absent target."""
    not_available: tuple[str, ...]


class AgentService:
    """The problems of one folder, for any number of clients."""

    def __init__(self, options: ServiceOptions, log: Logger | None = None) -> None:
        """Plan the problems; ConfigError if there are none."""
        self._options = options
        self._log = log
        self._judge = SubmissionJudge(
            options.folder, hardware=options.hardware, verify=options.verify, store=options.store
        )
        self._conversation = uuid.uuid4().hex
        self._history = threading.Lock()

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong with the folder, one line each."""
        return self._judge.complaints

    def problems(self, client: str) -> tuple[ListedProblem, ...]:
        """All of them, with what the client did."""
        attempts = read_attempts(self._options.store, client)
        listed = []
        for name in self._judge.names:
            ended = [each.verdict.outcome for each in attempts if each.verdict.problem == name]
            best = Outcome.PASSED if Outcome.PASSED in ended else ended[-1] if ended else None
            failure = self._judge.spec(name).problem.failure
            unusable = None if failure is None else failure.reason
            listed.append(ListedProblem(name=name, attempts=len(ended), best=best, unusable=unusable))
        return tuple(listed)

    def problem(self, name: str) -> ReadProblem:
        """One of them.

        Raises
        ------
        ConfigError
            There is no problem of that name, or its file cannot be read.
        """
        spec = self._judge.spec(name)
        text = _text(spec)
        if spec.problem.failure is not None:
            raise ConfigError(f"{name}: cannot be judged: {spec.problem.failure.reason}")
        return ReadProblem(
            name=name,
            source=text,
            sizes=_sizes(text),
            inputs=_functions(text, ("get_inputs", "get_init_inputs", "get_input_groups")),
            submit=CANDIDATE,
            judged_on=_place(spec),
            conditions=CONDITIONS,
        )

    def judge(self, client: str, problem: str, source: str) -> JudgedSubmission:
        """Judge a source, and add it to the history.

        Raises
        ------
        ConfigError
            There is no problem of that name, the source is too long, or the client's limits are reached.
        """
        return self._submit(client, problem, source, self._unmeasured)

    def measure(self, client: str, problem: str, source: str) -> JudgedSubmission:
        """Judge a source, and measure it if it passes.

        Raises
        ------
        ConfigError
            As for `judge`.
        """
        return self._submit(client, problem, source, self._measured)

    def _submit(self, client: str, problem: str, source: str, finish: Finish) -> JudgedSubmission:
        if len(source) > LONGEST_SOURCE:
            raise ConfigError(
                f"the source has {len(source):,} characters: at most {LONGEST_SOURCE:,} are judged"
            )
        spec = self._judge.spec(problem)
        with self._turn(client):
            attempts = read_attempts(self._options.store, client)
            used = self._usage(attempts)
            self._check(client, used)
            digest = put_source(self._options.store, source)
            ended = self._judge.judge(problem, digest, self._seconds(used))
            attempt = finish(self._attempt(client, attempts, spec, digest, ended), self._seconds(used))
            append_attempt(self._options.store, attempt)
        if self._log is not None:
            self._log(attempt, source)
        return _answer(attempt, ended, self._usage((*attempts, attempt)))

    def _unmeasured(self, attempt: Attempt, seconds: float) -> Attempt:  # noqa: ARG002
        return attempt

    def _measured(self, attempt: Attempt, seconds: float) -> Attempt:
        if attempt.verdict.outcome not in PASSED:
            return attempt
        left = max(0.0, seconds - attempt.seconds)
        timing = self._judge.time(attempt.verdict.problem, attempt.source, left)
        measured = None
        if timing.record is not None and isinstance(timing.record.result, Profiled):
            found = timing.record.result
            measured = MeasuredAttempt(
                seconds=found.time,
                speedups=tuple(
                    AttemptSpeedup(baseline=each.baseline, speedup=each.speedup, verdict=each.verdict)
                    for each in found.comparisons
                ),
                estimate_bound_share=timing.record.bound_share,
            )
        return msgspec.structs.replace(
            attempt,
            measured=measured,
            unmeasured=timing.error,
            seconds=round(attempt.seconds + timing.seconds, 3),
        )

    def meaning(self, outcome: str) -> VerdictMeaning:
        """What an outcome means, and what to look at.

        Raises
        ------
        ConfigError
            There is no such outcome.
        """
        found = {each.value: meaning for each, meaning in MEANINGS.items()}
        if outcome not in found:
            raise ConfigError(f"no outcome '{outcome}'{hint(outcome, found)}")
        return found[outcome]

    def profile(self, client: str, problem: str, number: int) -> CandidateProfile:
        """What is known of an attempt beyond its verdict, and what is not.

        Raises
        ------
        ConfigError
            The client has no such attempt.
        """
        attempts = {each.number: each for each in self._attempts(client, problem)}
        if number not in attempts:
            known = ", ".join(map(str, attempts)) or "none"
            raise ConfigError(f"{problem}: no attempt {number} (known: {known})")
        attempt = attempts[number]
        missing = [NO_CODE] if attempt.measured is not None else [NOT_TIMED, NO_CODE]
        return CandidateProfile(
            attempt=number,
            outcome=attempt.verdict.outcome,
            measured=attempt.measured,
            facts=attempt.verdict.notes,
            not_available=tuple(missing),
        )

    def history(self, client: str, problem: str) -> tuple[PastAttempt, ...]:
        """The client's attempts at a problem, in order.

        Raises
        ------
        ConfigError
            There is no problem of that name.
        """
        attempts = self._attempts(client, problem)
        passed = [each.number for each in attempts if each.verdict.outcome is Outcome.PASSED]
        shown = {len(attempts), *passed[-1:]}
        return tuple(
            PastAttempt(
                attempt=each.number,
                created=each.created,
                outcome=each.verdict.outcome,
                reason=each.verdict.reason,
                seconds=each.seconds,
                measured=each.measured,
                source=self._source(each) if each.number in shown else None,
            )
            for each in attempts
        )

    def usage(self, client: str) -> Usage:
        """What the client has used, and what is left."""
        return self._usage(read_attempts(self._options.store, client))

    def _attempts(self, client: str, problem: str) -> list[Attempt]:
        self._judge.spec(problem)
        found = read_attempts(self._options.store, client)
        return [each for each in found if each.verdict.problem == problem]

    def _source(self, attempt: Attempt) -> str | None:
        with contextlib.suppress(OSError):
            return source_path(self._options.store, attempt.source).read_text(errors="replace")
        return None

    @contextlib.contextmanager
    def _turn(self, client: str) -> Iterator[None]:
        """One submission of a client at a time, also through several servers: its limits are exact."""
        seconds = self._options.limits.seconds_per_call
        try:
            with locked(self._options.store, f"client {client}", deadline=time.monotonic() + seconds):
                yield
        except TimeoutError:
            raise ConfigError(
                f"client '{client}': earlier submissions are still being judged after {seconds:g} s: submit "
                "one after the other, or start servers with different --client"
            ) from None

    def _check(self, client: str, used: Usage) -> None:
        limits = self._options.limits
        if used.calls_left == 0:
            raise ConfigError(
                f"client '{client}' has used its {counted(limits.calls or 0, 'submission')}: stop"
            )
        if used.seconds_left == 0:
            raise ConfigError(f"client '{client}' has used its {limits.seconds:g} s of judging: stop")
        if used.budget_left == 0:
            raise ConfigError(f"client '{client}' has used its budget of {limits.budget:g}: stop")

    def _seconds(self, used: Usage) -> float:
        """How long a call may take: what is left, too."""
        limits = self._options.limits
        left = [limits.seconds_per_call]
        left += [] if used.seconds_left is None else [used.seconds_left]
        left += [used.budget_left / limits.price] if used.budget_left is not None and limits.price else []
        return min(left)

    def _usage(self, attempts: tuple[Attempt, ...]) -> Usage:
        limits = self._options.limits
        seconds = sum(each.seconds for each in attempts)
        cost = seconds * limits.price
        return Usage(
            calls=len(attempts),
            seconds=round(seconds, 3),
            cost=round(cost, 6),
            calls_left=None if limits.calls is None else max(0, limits.calls - len(attempts)),
            seconds_left=None if limits.seconds is None else max(0.0, limits.seconds - seconds),
            budget_left=None if limits.budget is None else max(0.0, limits.budget - cost),
        )

    def _attempt(
        self, client: str, before: tuple[Attempt, ...], spec: JudgeSpec, source: str, ended: SingleVerdict
    ) -> Attempt:
        problem = spec.problem.name
        return Attempt(
            client=client,
            conversation=self._conversation,
            order=len(before) + 1,
            number=sum(each.verdict.problem == problem for each in before) + 1,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            hardware=spec.hardware,
            problem_digest=spec.problem.digest,
            problem_source=put_source(self._options.store, _text(spec)),
            source=source,
            verdict=msgspec.structs.replace(ended.verdict, solution=source),
            known=ended.known,
            seconds=0.0 if ended.known else round(ended.seconds, 3),
        )


def _answer(attempt: Attempt, ended: SingleVerdict, usage: Usage) -> JudgedSubmission:
    verdict: Verdict = ended.verdict
    refused = verdict.outcome is not Outcome.PASSED and verdict.id
    return JudgedSubmission(
        attempt=attempt.number,
        outcome=verdict.outcome,
        reason=verdict.reason,
        meaning=MEANINGS[verdict.outcome],
        error_share=verdict.share,
        notes=verdict.notes,
        where=verdict.where,
        repeat=f"kernelmill judge --repeat {verdict.id}" if refused else None,
        known=ended.known,
        judged_seconds=attempt.seconds,
        measured=attempt.measured,
        unmeasured=attempt.unmeasured,
        usage=usage,
    )


def _text(spec: JudgeSpec) -> str:
    try:
        return Path(spec.problem.path).read_text(errors="surrogateescape")
    except OSError as error:
        name = spec.problem.name
        raise ConfigError(f"{name}: problem.py cannot be read: {error.strerror}") from error


def _place(spec: JudgeSpec) -> str:
    if spec.device_present:
        return f"{spec.device} (--hardware {spec.hardware})"
    return (
        f"{spec.device}, in an interpreter: {spec.hardware} is absent, kernels are compiled for it and "
        "tried on reduced sizes"
    )


def _sizes(text: str) -> tuple[str, ...]:
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return tuple(ast.unparse(node) for node in nodes)


def _functions(text: str, names: tuple[str, ...]) -> str:
    nodes = [
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    return "\n\n".join(ast.get_source_segment(text, node) or "" for node in nodes)
