"""The bench of one task: baselines, ceilings and its candidates, one after the other. Out: results."""

import shutil
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
from pipeline.measure.ceilings import ceiling_measurement, problem_bounds, roofline_share
from pipeline.measure.ceilings.problem_bounds import Traffic
from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.comparison import candidate_runner
from pipeline.measure.comparison.baselines import (
    BaselineSets,
    HostedBaseline,
    MeasurementContext,
    select_baselines,
)
from pipeline.measure.comparison.reference_times import ReferenceTimes, drift_note
from pipeline.measure.comparison.round_summary import Measured, Unstable
from pipeline.measure.comparison.rounds import CANDIDATE, Round
from pipeline.measure.hosting import torch_compile
from pipeline.measure.hosting.measuring_messages import Candidate, Reference, SetUp
from pipeline.measure.hosting.process_handle import Member, MemberGone, Place
from pipeline.measure.hosting.single_call import count_single_call
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import to_json
from pipeline.records.results.profiled import (
    Ceilings,
    Memory,
    Profiled,
    ReferenceTime,
    Unmeasured,
    reduced_time,
)
from pipeline.sandbox.processes.fork_server import ForkServer

PRELOAD = ("numpy", "torch")
OTHER = "other"  # the baseline of `Bench.against`
AHEAD_SECONDS = 2.0
"""How long a process that was started ahead may have waited for its turn."""
LOG = "log.txt"
ROUNDS = "rounds.json"


class _Ahead(NamedTuple):
    """A process that waits for its turn."""

    candidate: Candidate
    member: Member
    since: float


class Bench:
    """A context manager; start it before this process runs any torch operation."""

    def __init__(
        self, spec: ProfileSpec, work: WorkPerCall, root: Path, logs: Path, defaults: dict[str, Candidate]
    ) -> None:
        self._spec = spec
        self._work = work
        self._cache = root / "cache"
        self._logs = logs
        self._environment = {"OMP_NUM_THREADS": str(len(usable_cores()))}
        self._ceilings: DeviceCeilings | None = None
        self._device = device(spec.target.kind)
        self._measurement = self._device.measurement()
        self._device_name = self._measurement.lock_name(spec.device)
        self._server = ForkServer(preload=PRELOAD)
        found, absent = select_baselines(spec, defaults)
        context = MeasurementContext(
            set_up=self._set_up(Reference(function=spec.reference, gradient_of=spec.gradient_of)),
            baselines=found,
            absent=absent,
            settings=spec.settings,
            environment=self._environment,
            inductor_cache=self._cache / "inductor",
            logs=logs,
        )
        self._context = context
        compiled = any(isinstance(each.hosted, Reference) and each.hosted.compiled != "no" for each in found)
        self._prepared = torch_compile.warm_server() if compiled else None
        self._baselines = BaselineSets(self._prepared or self._server, context)
        self._references = ReferenceTimes(self._cache / "references", spec)
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
        self._server.close()

    def prepare(self) -> dict[str, float]:
        """Start the baselines and have the ceilings, which is no variant's own time; seconds of each."""
        with device_lock(self._device_name):
            started = time.monotonic()
            for process in range(self._spec.settings.processes_at_least):
                self._baselines.of(process).members()
            there = time.monotonic()
            self._bounds()
            return {"baselines": there - started, "ceilings": time.monotonic() - there}

    def profile(
        self, candidate: Candidate, folder: Path, upcoming: Candidate | None = None
    ) -> Profiled | Failure:
        """Measure one candidate, the device held alone; its log and all rounds are left in `folder`.

        On a CPU the process of the upcoming one starts while this one's ends, when nothing is timed any more.
        """
        with device_lock(self._device_name):
            return self._profile(candidate, folder, upcoming)

    def against(self, candidate: Candidate, other: Candidate, folder: Path) -> Measured:
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
                    self._spec.settings,
                    self._spec.target.kind,
                )
        finally:
            baselines.stop()

    def _profile(self, candidate: Candidate, folder: Path, upcoming: Candidate | None) -> Profiled | Failure:
        try:
            measured = candidate_runner.measure(
                lambda: self._start(candidate),
                self._baselines,
                self._spec.settings,
                self._spec.target.kind,
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
        if isinstance(result, Profiled) and self._spec.settings.gpu_counters:
            return self._counted(result, candidate, folder)
        return result

    def _counted(self, result: Profiled, candidate: Candidate, folder: Path) -> Profiled:
        """With the counters of a profiler, read in a process of its own while the baselines are stopped."""
        if not self._measurement.has_profiler:
            return result
        if candidate.job.variant.written:
            lost = Unmeasured(quantity="counters", reason="a profiler would run a written source unconfined")
            return msgspec.structs.replace(result, unmeasured=(*result.unmeasured, lost))
        found = count_single_call(self._measurement, self._set_up(candidate), folder)
        if isinstance(found, Unmeasured):
            return msgspec.structs.replace(result, unmeasured=(*result.unmeasured, found))
        return msgspec.structs.replace(result, counters=found)

    def _start(self, candidate: Candidate) -> Member:
        """The process that was started ahead, where it is this candidate's."""
        ahead = self._ahead
        # Its time limit runs: it does not pay for another run that had the device meanwhile.
        late = ahead is not None and time.monotonic() - ahead.since > AHEAD_SECONDS
        if ahead is None or late or ahead.candidate != candidate:
            self._drop_ahead()
            return self._launch(candidate, self._log(candidate))
        self._ahead = None
        return ahead.member

    def _start_ahead(self, upcoming: Candidate | None) -> None:
        """On a processor, where it touches no memory yet: on a GPU two would hold their tensors at once."""
        if upcoming is not None and self._device.is_host:
            self._drop_ahead()
            member = self._launch(upcoming, self._log(upcoming))
            self._ahead = _Ahead(upcoming, member, time.monotonic())

    def _drop_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.member.stop()
            self._ahead = None

    def _launch(self, candidate: Candidate, log: Path) -> Member:
        log.unlink(missing_ok=True)
        seconds = self._spec.settings.time_limit
        place = Place(
            log=log,
            environment=self._environment,
            lifetime=seconds,
            patience=seconds,
            scratch=self._scratch(candidate),
        )
        return Member(CANDIDATE, self._server, self._set_up(candidate), place)

    def _scratch(self, candidate: Candidate) -> Path | None:
        """An empty folder for a source that somebody wrote; removed with the logs."""
        if not candidate.job.variant.written:
            return None
        return Path(tempfile.mkdtemp(prefix="written-", dir=self._logs))

    def _log(self, candidate: Candidate) -> Path:
        """Where its process writes; what it wrote is copied when that has ended."""
        return self._logs / f"{CANDIDATE}-{Path(candidate.folder).name}.txt"

    def _set_up(self, hosted: Candidate | Reference) -> SetUp:
        return SetUp(
            hosted=hosted,
            problem=self._spec.problem,
            kind=self._spec.target.kind,
            flush_cache=self._spec.settings.flush_cache,
            cuda_graph=self._spec.settings.cuda_graph,
        )

    def _judge(self, measured: Measured) -> Profiled | Failure:
        """Place the result under the roofline; what is above it is measured against fresh ceilings first."""
        seconds = measured.timing.median.value
        limits = self._bounds()
        if roofline_share.too_good(self._work, limits, seconds) is not None:
            self._ceilings = ceiling_measurement.measured_again(*self._device_and_products())
            limits = self._bounds()
            reason = roofline_share.too_good(self._work, limits, seconds)
            if reason is not None:
                return Failure(outcome=Outcome.OVER_ROOFLINE, reason=reason, log=ROUNDS)
        reference = self._references.of(measured.comparisons)
        result = self._profiled(measured, limits, reference)
        assert result.roofline_share is not None
        if result.roofline_share > roofline_share.OVER:
            # The ceilings and the reference are of different states of the device: no time beats a ceiling.
            return self._profiled(measured, limits, None)
        return result

    def _profiled(self, measured: Measured, limits: Ceilings, reference: ReferenceTime | None) -> Profiled:
        seconds = reduced_time(measured.timing, measured.comparisons, reference).value
        place = roofline_share.place(self._work, limits, seconds)
        examined = measured.examined
        return Profiled(
            timing=measured.timing,
            reference=reference,
            comparisons=measured.comparisons,
            absent=measured.absent,
            ceilings=limits,
            flops=self._work.flops,
            bytes=self._work.bytes,
            roofline_share=place.share,
            bound=place.bound,
            device=measured.facts | _how(self._spec.settings),
            notes=(*measured.notes, *drift_note(reference, measured.comparisons)),
            energy=examined.energy if examined else None,
            memory=_memory(measured, self._work),
            counters=examined.counters if examined else None,
            conditions=measured.conditions if measured.conditions.samples else None,
            unmeasured=measured.unmeasured,
        )

    def _bounds(self) -> Ceilings:
        if self._ceilings is None:
            self._ceilings = ceiling_measurement.measured(*self._device_and_products())
        cold = self._spec.settings.flush_cache
        device = problem_bounds.beyond_caches(self._ceilings) if cold else self._ceilings
        traffic = Traffic(read=self._work.read, written=self._work.written)
        return problem_bounds.of_problem(device, traffic, self._work.dtype)

    def _device_and_products(self) -> tuple[ForkServer, ceiling_measurement.CeilingsDevice, tuple[str, ...]]:
        device = ceiling_measurement.CeilingsDevice(
            self._spec.target.kind, self._spec.device, self._cache / "ceilings"
        )
        return self._server, device, problem_bounds.products_of(self._work.dtype)


def _how(settings: Profile) -> dict[str, str]:
    """What the figures must not be compared without."""
    return {"mode": settings.mode, "cache": "flushed" if settings.flush_cache else "warm"}


def _memory(measured: Measured, work: WorkPerCall) -> Memory | None:
    if measured.examined is None or measured.first_peak is None:
        return None
    return Memory(first=measured.first_peak, steady=measured.examined.peak, formula_bytes=work.bytes)


def _keep_rounds(folder: Path, rounds: Sequence[Round]) -> None:
    """All batches in the order of their rounds: calls, seconds, and what else was seen of each."""
    (folder / ROUNDS).write_bytes(to_json(rounds))


def _kept(log: Path, folder: Path) -> str | None:
    """Name of the copy of a log in `folder`; None of one that says nothing."""
    if not log.is_file() or log.stat().st_size == 0:
        return None
    shutil.copyfile(log, folder / LOG)
    return LOG
