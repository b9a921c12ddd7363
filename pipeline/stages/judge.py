"""judge: one problem in the format of KernelBench and its candidates -> verdicts.

In: a JudgeSpec. Out: a JudgeOutput with one verdict per candidate. Each verdict is stored at once, so that a
run that was killed resumes, and one more candidate costs only itself.
"""

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.backends.backend import Interpreter
from pipeline.backends.devices.device_registry import HOST, executes_on_host
from pipeline.backends.language import TRITON
from pipeline.backends.registry import backend, candidate_backends, device_preload
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.environment import warm_worker
from pipeline.records.errors import KernelmillError, WorkerError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.judged import (
    CandidateFile,
    JudgedWhere,
    JudgeOutput,
    JudgeRecord,
    JudgeSpec,
    Verdict,
)
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.sandbox.processes.fork_service import import_all
from pipeline.sandbox.processes.worker_client import fork_server
from pipeline.sandbox.progress_messages import StageProgress
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from pipeline.store.integrity import write_sealed

if TYPE_CHECKING:  # these import torch, which must not be used before the fork server is there
    from pipeline.verify.harness.failed_call import FailedCall
    from pipeline.verify.harness.messages import CompileReply
    from pipeline.verify.harness.model_cases import ModelCaseSet
    from pipeline.verify.harness.model_trial import ModelTrialResult
    from pipeline.verify.harness.session import ModelSubject

INTERPRETED = "pipeline.verify.harness.process:prepare"
"""Imports, in an environment where kernels are interpreted, what candidates need."""
PREPARED = (
    *("torch", "torch._dynamo", "torch._refs", "torch.fx.experimental.symbolic_shapes"),  # for `meta` tensors
    "pipeline.verify.harness.cross_compilation",
    "pipeline.verify.harness.model_cases",
    "pipeline.verify.harness.model_trial",
    "pipeline.verify.harness.process",
)
"""What judging imports late."""
_LESS = 16
"""Times smaller are the tensors that a kernel is tried on again which takes too long in the interpreter."""
ID_LENGTH = 12
"""Characters of the entry's digest in the table."""


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.judge", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="JudgeSpec as JSON")
    parser.add_argument("--out", type=Path, required=True, help="JudgeOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument(
        "--workers", type=int, default=len(os.sched_getaffinity(0)), help="candidates at once"
    )
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: judge_problem(options))


def prepare() -> None:
    """Import what judging needs, in a process that jobs are forked from; candidates run in none of these."""
    import_all(PREPARED)


def judge_problem(options: argparse.Namespace) -> None:
    """Judge what the store does not hold yet, several candidates side by side."""
    started = time.monotonic()
    spec = read_record(options.spec, JudgeSpec)
    bring_entries(options.root, "judge", (entry_of(spec, each) for each in spec.problem.candidates))
    found = {each.path: known_verdict(spec, each, options.root) for each in spec.problem.candidates}
    missing = [each for each in spec.problem.candidates if found[each.path] is None]
    known = [verdict.outcome for verdict in found.values() if verdict is not None]
    made = _judge_all(spec, missing, known, options) if missing else {}
    verdicts = tuple(found[each.path] or made[each.path] for each in spec.problem.candidates)
    write_sealed(options.out, to_json(JudgeOutput(key=options.spec.stem, verdicts=verdicts)))
    results = [
        verdict
        if verdict.outcome is Outcome.PASSED
        else Failure(outcome=verdict.outcome, reason=verdict.reason)
        for verdict in verdicts
    ]
    stage_command.report(
        f"judge {spec.problem.name}",
        results,
        cached=sum(
            found[each.path] is not None and _first_look(spec, each) is None
            for each in spec.problem.candidates
        ),
        seconds=time.monotonic() - started,
        noun="candidate",
    )


def entry_of(spec: JudgeSpec, candidate: CandidateFile) -> str:
    """Identity of a verdict: what it depends on, and no name."""
    return digest(
        {
            "problem": spec.problem.digest,
            "candidate": candidate.digest,
            "settings": msgspec.structs.replace(spec.settings, name="", description="", editing_only=False),
            "target": spec.target,
            "device_present": spec.device_present,
            "build": spec.build,
        }
    )


def known_verdict(spec: JudgeSpec, candidate: CandidateFile, root: Path) -> Verdict | None:
    """What a first look found, or the store holds."""
    failure = _first_look(spec, candidate)
    if failure is not None:
        return _failed(spec, candidate, failure)
    record = find_entry(root, "judge", entry_of(spec, candidate), JudgeRecord)
    if record is None:
        return None
    return msgspec.structs.replace(record.verdict, problem=spec.problem.name, solution=candidate.name)


def _first_look(spec: JudgeSpec, candidate: CandidateFile) -> Failure | None:
    """What is wrong without running anything."""
    return spec.problem.failure or candidate.failure


def _failed(spec: JudgeSpec, candidate: CandidateFile, failure: Failure) -> Verdict:
    return Verdict(
        problem=spec.problem.name,
        solution=candidate.name,
        outcome=failure.outcome,
        reason=failure.reason,
    )


def _judge_all(
    spec: JudgeSpec, candidates: list[CandidateFile], known: list[Outcome], options: argparse.Namespace
) -> dict[str, Verdict]:
    """Threads of this process judge, each with a candidate in a forked process; the problem runs here.

    `known`: the outcomes of the other candidates.
    """
    from pipeline.verify.harness.session import DEVICE_CANDIDATES

    limits = _limits(spec, candidates)
    progress = StageProgress(options.out, len(known) + len(candidates), known=known, limits=limits)
    # Forked before this process computes anything: a child inherits no thread pool and no expected value.
    with (
        _candidate_server(spec) as server,
        _compilers(spec) as compilers,
    ):
        servers = _Servers(server, compilers)
        import torch

        torch.set_num_threads(1)  # there are several judges
        at_once = DEVICE_CANDIDATES if _on_device(spec) else options.workers
        made: dict[str, Verdict] = {}
        elements = spec.settings.interpreter_elements_at_most
        for share in (1, _LESS):
            left = [each for each in candidates if each.path not in made]
            if not left:
                break
            settings = msgspec.structs.replace(
                spec.settings, interpreter_elements_at_most=max(elements // share, 1)
            )
            case_set = _case_set(spec, settings)
            if isinstance(case_set, Failure):
                return made | {each.path: _failed(spec, each, case_set) for each in left}
            judge = _Judge(spec, case_set, options.root, servers, last=share == _LESS)
            made |= judge.verdicts(left, min(options.workers, at_once), progress)
    return made


def _limits(spec: JudgeSpec, candidates: list[CandidateFile]) -> str:
    """Of a candidate: no time of day, as what the judge computes and compiles for it does not count."""
    from pipeline.backends.cpp.extension_builds import may_build
    from pipeline.verify.harness.session import time_allowed

    builds = any(may_build(Path(each.path).read_text(errors="replace")) for each in candidates)
    return f"each may take {time_allowed(spec.settings, builds=builds)}"


def _candidate_server(spec: JudgeSpec) -> ForkServer:
    """Forks candidates: from a branch of the warm worker, else from what this process is now.

    Triton either interprets or compiles from its import on, so each of the two has a branch.
    """
    from pipeline.verify.harness.process import MODEL_PRELOAD, interpreting

    if _on_device(spec):
        return ForkServer(preload=(*device_preload(spec.target.kind), *MODEL_PRELOAD))
    worker = warm_worker()
    if worker is None:
        return ForkServer(preload=MODEL_PRELOAD, environment=interpreting())
    control = fork_server(worker, INTERPRETED, interpreting())
    if control is None:  # this process has Triton's compiler: its own forks could not interpret
        raise WorkerError(
            f"the warm worker has no process for candidates: run again; its logs: {worker.parent}"
        )
    return ForkServer.at(control)


def _report(progress: StageProgress, ended: "Future[Verdict | None]") -> None:
    """Unless it is tried again; what the judge failed on raises where its result is read."""
    if ended.cancelled() or ended.exception():
        progress.finished(Outcome.NOT_JUDGED)
        return
    verdict = ended.result()
    if verdict is not None:
        progress.finished(verdict.outcome)


def _compilers(spec: JudgeSpec) -> AbstractContextManager[ForkServer | None]:
    """Processes whose Triton compiles, where the target is absent."""
    if spec.device_present:
        return contextlib.nullcontext()
    from pipeline.verify.harness.cross_compilation import PRELOAD

    return ForkServer(preload=PRELOAD)


def _interpreters(languages: Collection[str] | None = None) -> dict[str, Interpreter]:
    """Backend -> its interpreter, for all that candidates use, or for some."""
    found = {name: backend(name) for name in candidate_backends()}
    return {
        name: each.interpreter
        for name, each in found.items()
        if each.interpreter is not None and (languages is None or name in languages)
    }


def _on_device(spec: JudgeSpec) -> bool:
    return spec.device_present and not executes_on_host(spec.target.kind)


def _case_set(spec: JudgeSpec, settings: Verify) -> "ModelCaseSet | Failure":
    """The cases of the problem, or what is wrong with it."""
    from pipeline.sandbox.models.model_problem import ModelProblem, ProblemError
    from pipeline.verify.harness.model_cases import PROBLEM_SECONDS, ModelCaseSet, time_limited

    try:
        with time_limited(PROBLEM_SECONDS, "importing it"):
            problem = ModelProblem(Path(spec.problem.path))
        return ModelCaseSet(problem, settings, spec.target.kind if _on_device(spec) else HOST)
    except ProblemError as error:
        return _bad_problem(spec, error)


def _bad_problem(spec: JudgeSpec, error: Exception) -> Failure:
    print(f"error: {spec.problem.path}: {error}", file=sys.stderr)
    return Failure(outcome=Outcome.BAD_PROBLEM, reason=str(error))


class _Servers(NamedTuple):
    """What forks candidates, and what forks processes whose Triton compiles where the target is absent."""

    candidates: ForkServer
    compilers: ForkServer | None


class _TooSlow(Exception):
    """The interpreter could not make enough calls."""


class _Judge:
    """Holds what all candidates of the problem share."""

    def __init__(
        self,
        spec: JudgeSpec,
        case_set: "ModelCaseSet",
        root: Path,
        servers: _Servers,
        *,
        last: bool,
    ) -> None:
        self._last = last
        """Whether no smaller sizes follow."""
        self._spec = spec
        self._server, self._compilers = servers
        self._case_set = case_set
        self._root = root

    def verdicts(
        self, candidates: list[CandidateFile], at_once: int, progress: StageProgress
    ) -> dict[str, Verdict]:
        """By path; without those that smaller sizes may tell more of."""
        with ThreadPoolExecutor(max(1, min(at_once, len(candidates)))) as pool:
            futures = {each.path: pool.submit(self.verdict, each) for each in candidates}
            for future in futures.values():
                future.add_done_callback(lambda ended: _report(progress, ended))
            self._case_set.prepare()
            found = {path: future.result() for path, future in futures.items()}
        return {path: verdict for path, verdict in found.items() if verdict is not None}

    def verdict(self, candidate: CandidateFile) -> Verdict | None:
        """Judge one candidate; None where smaller sizes may tell more.

        A bug of the judge's concerns this candidate only, and is printed.
        """
        from pipeline.sandbox.models.model_problem import ProblemError

        try:
            return self._judged(candidate)
        except _TooSlow:
            return None
        except ProblemError as error:
            return _failed(self._spec, candidate, _bad_problem(self._spec, error))
        except KernelmillError:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = f"the judge failed: {type(error).__name__}: {error}"
            failure = Failure(outcome=Outcome.NOT_JUDGED, reason=" ".join(reason.split())[:300])
            return _failed(self._spec, candidate, failure)

    def _judged(self, candidate: CandidateFile) -> Verdict:
        from pipeline.verify.harness.model_trial import try_candidate

        started = time.monotonic()
        entry = entry_of(self._spec, candidate)
        with new_entry(self._root, "judge", entry) as folder:
            subject = self._subject(candidate)
            tried = try_candidate(self._server, subject, self._case_set, folder)
            if machine_resources.is_doubtful(
                tried.failure, folder
            ):  # only what happens twice is the candidate's
                machine_resources.require(folder)
                tried = try_candidate(self._server, subject, self._case_set, folder)
            if tried.too_slow and not self._last:
                raise _TooSlow
            assembled = self._assembled(candidate, subject, tried, folder)
            verdict = self._row(candidate, tried, subject, assembled)
            if verdict.outcome is not Outcome.PASSED:
                self._failed_call(candidate, subject, tried, verdict).write(folder)
            seconds = round(time.monotonic() - started, 3)
            verdict = msgspec.structs.replace(verdict, seconds=seconds, id=entry[:ID_LENGTH])
            record = JudgeRecord(
                verdict=verdict,
                entry=entry,
                conditions=tried.conditions,
                isolation=tried.isolation,
                provenance=provenance(self._spec.build),
            )
            put_record(folder, record)
        return verdict

    def _subject(self, candidate: CandidateFile) -> "ModelSubject":
        from pipeline.verify.harness.model_trial import model_subject

        where: JudgedWhere = "interpreter" if _interpreters(candidate.languages) else "host"
        on_device = _on_device(self._spec)
        return model_subject(
            Path(candidate.path),
            where="device" if on_device else where,
            device=self._spec.target.kind if on_device else HOST,
            limits={} if executes_on_host(self._spec.target.kind) else self._spec.target.limits,
            settings=self._spec.settings,
        )

    def _failed_call(
        self, candidate: CandidateFile, subject: "ModelSubject", tried: "ModelTrialResult", verdict: Verdict
    ) -> "FailedCall":
        """What `kernelmill judge --repeat` makes again."""
        from pipeline.verify.harness.failed_call import FailedCall

        return FailedCall(
            problem=str(Path(self._spec.problem.path).absolute()),
            candidate=str(Path(candidate.path).absolute()),
            where=subject.candidate.where,
            device=subject.candidate.device,
            limits=subject.candidate.limits,
            settings=subject.settings,
            failure=Failure(outcome=verdict.outcome, reason=verdict.reason),
            calls=tried.until_failure,
        )

    def _row(
        self,
        candidate: CandidateFile,
        tried: "ModelTrialResult",
        subject: "ModelSubject",
        assembled: "CompileReply",
    ) -> Verdict:
        from pipeline.verify.harness.cross_compilation import facts_text

        failure = assembled.failure or tried.failure
        compiled = assembled.failure is None and not assembled.incomplete and bool(assembled.kernels)
        notes = list(tried.notes)
        if assembled.kernels or assembled.incomplete:
            facts = [f"not compiled: {assembled.incomplete}" if assembled.incomplete else ""]
            facts.append(facts_text(assembled))
            notes.append(f"{self._spec.hardware}: {'; '.join(fact for fact in facts if fact)}")
        where = subject.candidate.where
        if where == "interpreter" and tried.launched:
            own = [found.where for kind, found in _interpreters().items() if kind in tried.launched]
            where = "host" if not own else "emulator" if set(own) == {"emulator"} else "interpreter"
        if failure is None and tried.untried:
            failure = Failure(outcome=Outcome.PASSED_REDUCED, reason=tried.untried)
        return Verdict(
            problem=self._spec.problem.name,
            solution=candidate.name,
            outcome=Outcome.PASSED if failure is None else failure.outcome,
            reason="" if failure is None else failure.reason,
            share=tried.share,
            checks=tried.checks,
            where=where,
            device=self._spec.device,
            calls=tried.calls,
            peak_memory=tried.peak_memory or None,
            compiled_for=self._spec.hardware if compiled else None,
            notes=tuple(notes),
        )

    def _assembled(
        self, candidate: CandidateFile, subject: "ModelSubject", tried: "ModelTrialResult", folder: Path
    ) -> "CompileReply":
        """What is right in the interpreter, or beyond it, is compiled for the target that is absent."""
        from pipeline.verify.harness.cross_compilation import cross_compile
        from pipeline.verify.harness.messages import CompileReply

        is_compiled = any(
            backend(name).language is TRITON or backend(name).extension_compiler(self._spec.target)
            for name in candidate.languages
        )
        absent = self._compilers is None or not is_compiled
        beyond = tried.failure is not None and tried.failure.outcome is Outcome.DEVICE_UNAVAILABLE
        if absent or (tried.failure is not None and not beyond):
            return CompileReply()
        assert self._compilers is not None
        return cross_compile(
            self._compilers,
            subject,
            self._case_set.largest,
            self._spec.target,
            folder,
            interpreted=tried.interpreted,
            gradients=self._case_set.check_gradients,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
