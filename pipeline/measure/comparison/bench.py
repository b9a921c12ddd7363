"""The bench of one task: baselines, ceilings and its candidates, one after the other. Out: results."""

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.backends.devices.device_lock import device_lock
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import device_preload
from pipeline.measure.ceilings import ceiling_measurement, problem_bounds, roofline_share
from pipeline.measure.ceilings.estimated_bounds import counted_work, estimated_bound
from pipeline.measure.ceilings.problem_bounds import Traffic
from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.comparison import candidate_runner
from pipeline.measure.comparison.baselines import BaselineSets, HostedBaseline, MeasurementContext
from pipeline.measure.comparison.bench_task import BenchTask
from pipeline.measure.comparison.reference_times import ReferenceTimes, drift_note
from pipeline.measure.comparison.round_summary import Measured, Unstable
from pipeline.measure.comparison.rounds import CANDIDATE, Round, fresh_seed
from pipeline.measure.hosting import torch_compile
from pipeline.measure.hosting.measuring_messages import (
    Candidate,
    DispatchedWork,
    Hosted,
    HostedModel,
    SetUp,
    is_compiled,
    is_written,
)
from pipeline.measure.hosting.process_handle import OUTPUT, Member, MemberGone, Place
from pipeline.measure.hosting.single_call import count_single_call
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest, to_json
from pipeline.records.results.profiled import (
    Ceilings,
    Memory,
    Profiled,
    ReferenceTime,
    Unmeasured,
    reduced_time,
)
from pipeline.records.results.timed import EstimatedBound
from pipeline.sandbox.processes.fork_server import ForkServer

PRELOAD = ("numpy", "torch")
OPERATORS = "operators"
COUNT_SECONDS = 300.0  # for two calls of Model, every operator of which goes through Python
OTHER = "other"  # the baseline of `Bench.against`
BUILD_SECONDS = 300.0  # for an extension that is compiled when a model is loaded, as the judge allows
BUILD_OUTPUT = 1 << 30  # bytes of any file that a compiler writes
AHEAD_SECONDS = 2.0
"""How long a process that was started ahead may have waited for its turn."""
LOG = "log.txt"
ROUNDS = "rounds.json"


Measurable = Candidate | HostedModel


class _Work(NamedTuple):
    """What one call has to do."""

    usual: WorkPerCall
    """By the kernel's formulas, or as the operators of `Model` do it, all of them fused."""
    least: WorkPerCall
    """What no algorithm can avoid: who is faster than that is not believed."""
    counted: DispatchedWork | None
    """Where there are no formulas."""


class _Ahead(NamedTuple):
    """A process that waits for its turn."""

    candidate: Measurable
    member: Member
    since: float


class Bench:
    """A context manager; start it before this process runs any torch operation."""

    def __init__(self, task: BenchTask, root: Path, logs: Path, beside: "Bench | None" = None) -> None:
        """`beside`: another bench of the same candidates, which outlives this one; they share processes."""
        self._task = task
        self._cache = root / "cache"
        self._logs = logs
        self._environment = {"OMP_NUM_THREADS": str(len(usable_cores()))}
        self._ceilings: DeviceCeilings | None = None
        self._known_work: _Work | None = None
        self._scratches: dict[str, Path] = {} if beside is None else beside._scratches
        self._device = device(task.kind)
        self._measurement = self._device.measurement()
        self._device_name = self._measurement.lock_name(task.device)
        self._beside = beside
        preload = (*PRELOAD, *device_preload(task.kind))
        self._server: ForkServer = ForkServer(preload=preload) if beside is None else beside._server
        context = MeasurementContext(
            set_up=self._set_up(task.reference),
            baselines=task.baselines,
            absent=task.absent,
            settings=task.settings,
            environment=self._environment,
            inductor_cache=self._cache / "inductor",
            logs=logs,
        )
        self._context = context
        compiled = any(is_compiled(each.hosted) for each in task.baselines)
        self._prepared = torch_compile.warm_server() if compiled else None
        self._baselines = BaselineSets(self._prepared or self._server, context)
        self._references = ReferenceTimes(self._cache / "references", task)
        self._ahead: _Ahead | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop_ahead()
        self._baselines.stop()
        if self._prepared is not None:
            self._prepared.close()
        if self._beside is None:
            self._server.close()

    def prepare(self) -> dict[str, float]:
        """Start the baselines and have the ceilings, which is no variant's own time; seconds of each."""
        with device_lock(self._device_name):
            started = time.monotonic()
            for process in range(self._task.settings.processes_at_least):
                self._baselines.of(process).members()
            there = time.monotonic()
            self._bounds(self._work().usual)
            return {"baselines": there - started, "ceilings": time.monotonic() - there}

    def profile(
        self, candidate: Measurable, folder: Path, upcoming: Measurable | None = None
    ) -> Profiled | Failure:
        """Measure one candidate, the device held alone; its log and all rounds are left in `folder`.

        On a CPU the process of the upcoming one starts while this one's ends, when nothing is timed any more.
        """
        with device_lock(self._device_name):
            return self._profile(candidate, folder, upcoming)

    def against(self, candidate: Measurable, other: Measurable, folder: Path) -> Measured:
        """One candidate against another one, all in processes that were started for this comparison.

        Raises
        ------
        MemberGone
            The candidate, or twice the other one, broke down.
        Unstable
            The samples scatter beyond use.
        """
        context = msgspec.structs.replace(
            self._context, baselines=(HostedBaseline(name=OTHER, hosted=other),), absent=()
        )
        baselines = BaselineSets(self._server, context)
        try:
            with device_lock(self._device_name):
                return candidate_runner.measure(
                    lambda: self._launch(candidate, folder / LOG),
                    baselines,
                    self._task.settings,
                    self._task.kind,
                )
        finally:
            baselines.stop()

    def _profile(
        self, candidate: Measurable, folder: Path, upcoming: Measurable | None
    ) -> Profiled | Failure:
        try:
            measured = candidate_runner.measure(
                lambda: self._start(candidate),
                self._baselines,
                self._task.settings,
                self._task.kind,
                lambda: self._start_ahead(upcoming),
            )
        except MemberGone as gone:
            return Failure(outcome=gone.outcome, reason=gone.reason, log=_kept(self._log(candidate), folder))
        except Unstable as unstable:
            _keep_rounds(folder, unstable.rounds)
            return Failure(outcome=Outcome.UNSTABLE_TIMING, reason=unstable.reason, log=ROUNDS)
        _keep_rounds(folder, measured.rounds)
        _kept(self._log(candidate), folder)
        result = self._judge(measured)
        if isinstance(result, Profiled) and self._task.settings.gpu_counters:
            return self._counted(result, candidate, folder)
        return result

    def _counted(self, result: Profiled, candidate: Measurable, folder: Path) -> Profiled:
        """With the counters of a profiler, read in a process of its own while the baselines are stopped."""
        if not self._measurement.has_profiler:
            return result
        if is_written(candidate):
            lost = Unmeasured(quantity="counters", reason="a profiler would run a written source unconfined")
            return msgspec.structs.replace(result, unmeasured=(*result.unmeasured, lost))
        found = count_single_call(self._measurement, self._set_up(candidate), folder)
        if isinstance(found, Unmeasured):
            return msgspec.structs.replace(result, unmeasured=(*result.unmeasured, found))
        return msgspec.structs.replace(result, counters=found)

    def _start(self, candidate: Measurable) -> Member:
        """The process that was started ahead, where it is this candidate's."""
        ahead = self._ahead
        # Its time limit runs: it does not pay for another run that had the device meanwhile.
        late = ahead is not None and time.monotonic() - ahead.since > AHEAD_SECONDS
        if ahead is None or late or ahead.candidate != candidate:
            self._drop_ahead()
            return self._launch(candidate, self._log(candidate))
        self._ahead = None
        return ahead.member

    def _start_ahead(self, upcoming: Measurable | None) -> None:
        """On a processor, where it touches no memory yet: on a GPU two would hold their tensors at once."""
        if upcoming is not None and self._device.is_host:
            self._drop_ahead()
            member = self._launch(upcoming, self._log(upcoming))
            self._ahead = _Ahead(upcoming, member, time.monotonic())

    def _drop_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.member.stop()
            self._ahead = None

    def _launch(self, candidate: Measurable, log: Path) -> Member:
        log.unlink(missing_ok=True)
        builds = isinstance(candidate, HostedModel) and candidate.builds
        seconds = self._task.settings.time_limit + (BUILD_SECONDS if builds else 0.0)
        place = Place(
            log=log,
            environment=self._environment,
            lifetime=seconds,
            patience=seconds,
            output=BUILD_OUTPUT if builds else OUTPUT,
            scratch=self._scratch(candidate),
        )
        return Member(CANDIDATE, self._server, self._set_up(candidate), place)

    def _scratch(self, candidate: Measurable) -> Path | None:
        """An empty folder for a source that somebody wrote; removed with the logs."""
        if not is_written(candidate):
            return None
        if isinstance(candidate, HostedModel):  # all its processes share what the first one builds
            name = str(candidate.candidate)
            if name not in self._scratches:
                self._scratches[name] = Path(tempfile.mkdtemp(prefix="model-", dir=self._logs))
            return self._scratches[name]
        return Path(tempfile.mkdtemp(prefix="written-", dir=self._logs))

    def _log(self, candidate: Measurable) -> Path:
        """Where its process writes; what it wrote is copied when that has ended."""
        return self._logs / f"{CANDIDATE}-{_name(candidate)}.txt"

    def _set_up(self, hosted: Hosted) -> SetUp:
        return SetUp(
            hosted=hosted,
            problem=self._task.problem,
            kind=self._task.kind,
            flush_cache=self._task.settings.flush_cache,
            cuda_graph=self._task.settings.cuda_graph,
        )

    def _judge(self, measured: Measured) -> Profiled | Failure:
        """Place the result under the roofline; what is above it is measured against fresh ceilings first."""
        seconds = measured.timing.median.value
        least = self._work().least
        if roofline_share.too_good(least, self._bounds(least), seconds) is not None:
            self._ceilings = ceiling_measurement.measured_again(*self._device_and_products())
            reason = roofline_share.too_good(least, self._bounds(least), seconds)
            if reason is not None:
                return Failure(outcome=Outcome.OVER_ROOFLINE, reason=reason, log=ROUNDS)
        reference = self._references.of(measured.comparisons)
        reduced = reduced_time(measured.timing, measured.comparisons, reference).value
        if roofline_share.place(least, self._bounds(least), reduced).share > roofline_share.OVER:
            # The ceilings and the reference are of different states of the device: no time beats a ceiling.
            return self._profiled(measured, None)
        return self._profiled(measured, reference)

    def _profiled(self, measured: Measured, reference: ReferenceTime | None) -> Profiled:
        seconds = reduced_time(measured.timing, measured.comparisons, reference).value
        examined, work = measured.examined, self._task.work
        limits = self._bounds(self._work().usual, in_graph=self._is_in_graph(measured))
        place = None if work is None else roofline_share.place(work, limits, seconds)
        return Profiled(
            timing=measured.timing,
            reference=reference,
            comparisons=measured.comparisons,
            absent=measured.absent,
            ceilings=limits,
            flops=None if work is None else work.flops,
            bytes=None if work is None else work.bytes,
            roofline_share=None if place is None else place.share,
            bound=None if place is None else place.bound,
            device=measured.facts | _how(self._task.settings),
            notes=(*measured.notes, *drift_note(reference, measured.comparisons)),
            energy=examined.energy if examined else None,
            memory=_memory(measured, work),
            counters=examined.counters if examined else None,
            conditions=measured.conditions if measured.conditions.samples else None,
            unmeasured=measured.unmeasured,
        )

    def counted(self) -> DispatchedWork | None:
        """What the operators of `Model` do; None where there are formulas, or `Model` cannot be called."""
        return self._work().counted

    def estimate(self) -> EstimatedBound | None:
        """Least time of a call by the operators of `Model`; None where they could not be counted."""
        work = self._work()
        if work.counted is None:
            return None
        return estimated_bound(work.counted, work.usual, self._bounds(work.usual))

    def _work(self) -> _Work:
        if self._known_work is None:
            formulas = self._task.work
            self._known_work = self._count() if formulas is None else _Work(formulas, formulas, None)
        return self._known_work

    def _count(self) -> _Work:
        """In a process of its own: counting brings libraries, which slow down calls."""
        seconds = self._task.settings.time_limit
        place = Place(
            log=self._logs / "operators.txt",
            environment=self._environment,
            lifetime=COUNT_SECONDS,
            patience=max(seconds, COUNT_SECONDS),
        )
        member = Member(OPERATORS, self._server, self._set_up(self._task.reference), place)
        try:
            counted = member.count(fresh_seed())
        except MemberGone as gone:
            print(uncounted(self._task.reference, gone), file=sys.stderr)
            nothing = WorkPerCall(flops=0.0, read=1.0, written=0.0, unit="vector", dtype="float32")
            return _Work(nothing, nothing, None)
        finally:
            member.stop()
        return _Work(*counted_work(counted), counted)

    def _is_in_graph(self, measured: Measured) -> bool:
        """Whether many calls are one graph: with flushes or gaps between them, each is a graph of its own."""
        settings = self._task.settings
        is_alone = settings.flush_cache or settings.mode != "offline"
        return measured.timing.launch == "graph" and not is_alone

    def _bounds(self, work: WorkPerCall, *, in_graph: bool = False) -> Ceilings:
        if self._ceilings is None:
            self._ceilings = ceiling_measurement.measured(*self._device_and_products())
        cold = self._task.settings.flush_cache
        device = problem_bounds.beyond_caches(self._ceilings) if cold else self._ceilings
        traffic = Traffic(read=work.read, written=work.written)
        return problem_bounds.of_problem(device, traffic, work.dtype, in_graph=in_graph)

    def _device_and_products(self) -> tuple[ForkServer, ceiling_measurement.CeilingsDevice, tuple[str, ...]]:
        device = ceiling_measurement.CeilingsDevice(
            self._task.kind, self._task.device, self._cache / "ceilings"
        )
        return self._server, device, problem_bounds.products_of(self._work().usual.dtype)


def uncounted(model: Hosted, gone: MemberGone) -> str:
    """What follows if `Model` cannot be called: other sizes are left out, declared ones have no estimate."""
    reason = gone.reason.removeprefix("ProblemError: ")
    sizes = model.sizes if isinstance(model, HostedModel) else {}
    if not sizes:
        return f"no estimated bound, as the operators of Model are not counted: {reason}"
    text = " ".join(f"{name}={value}" for name, value in sizes.items())
    refuses = gone.outcome is Outcome.LAUNCH_ERROR
    why = "Model refuses them" if refuses else "Model cannot be called on them"
    return f"sizes that the problem does not declare, {text}, are not tried, as {why}: {reason}"


def _how(settings: Profile) -> dict[str, str]:
    """What the figures must not be compared without."""
    return {"mode": settings.mode, "cache": "flushed" if settings.flush_cache else "warm"}


def _memory(measured: Measured, work: WorkPerCall | None) -> Memory | None:
    if measured.examined is None or measured.first_peak is None:
        return None
    formula = None if work is None else work.bytes
    return Memory(first=measured.first_peak, steady=measured.examined.peak, formula_bytes=formula)


def _name(candidate: Measurable) -> str:
    """Of its files."""
    return digest(candidate) if isinstance(candidate, HostedModel) else Path(candidate.folder).name


def _keep_rounds(folder: Path, rounds: Sequence[Round]) -> None:
    """All batches in the order of their rounds: calls, seconds, and what else was seen of each."""
    (folder / ROUNDS).write_bytes(to_json(rounds))


def _kept(log: Path, folder: Path) -> str | None:
    """Name of the copy of a log in `folder`; None of one that says nothing."""
    if not log.is_file() or log.stat().st_size == 0:
        return None
    shutil.copyfile(log, folder / LOG)
    return LOG
