"""The bench of one task: baselines, ceilings and its candidates, one after the other. Out: results."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.backends.backend import CompileJob
from pipeline.measure import bounds, ceilings, over_roofline, roofline, runner
from pipeline.measure.baselines import Baselines, Scene
from pipeline.measure.bounds import Traffic
from pipeline.measure.child import Candidate, Reference, SetUp
from pipeline.measure.device_ceilings import DeviceCeilings
from pipeline.measure.lock import device_lock
from pipeline.measure.member import Member, MemberGone, Place
from pipeline.measure.roofline import Work
from pipeline.measure.runner import CANDIDATE, Measured, Round, Unstable
from pipeline.measure.timer import usable_cores
from pipeline.records.compiled import Compiled
from pipeline.records.hardware import BackendKind
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.profiled import Ceilings, Profiled
from pipeline.records.record import to_json
from pipeline.records.specs import ProfileSpec
from pipeline.workers.sandbox import ForkServer

PRELOAD = ("numpy", "torch")
LOG = "log.txt"
ROUNDS = "rounds.json"


class Bench:
    """A context manager; start it before this process runs any torch operation."""

    def __init__(self, spec: ProfileSpec, work: Work, root: Path, logs: Path) -> None:
        self._spec = spec
        self._work = work
        self._cache = root / "cache"
        self._environment = {"OMP_NUM_THREADS": str(len(usable_cores()))}
        self._ceilings: DeviceCeilings | None = None
        # All processes share the processor, whatever they think it is.
        self._device_name = "cpu" if spec.target.kind == "cpu" else spec.device
        self._server = ForkServer(preload=PRELOAD)
        scene = Scene(
            set_up=self._set_up(Reference(function=spec.reference, gradient_of=spec.gradient_of)),
            settings=spec.settings,
            environment=self._environment,
            inductor_cache=self._cache / "inductor",
            logs=logs,
        )
        self._baselines = Baselines(self._server, scene)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._baselines.stop()
        self._server.close()

    def prepare(self) -> None:
        """Start the baselines and have the ceilings, so that no variant's own time holds them."""
        with device_lock(self._device_name):
            self._baselines.members()
            self._bounds()

    def profile(
        self, job: CompileJob, compiled: Compiled, artifact: Path, folder: Path
    ) -> Profiled | Failure:
        """Measure one candidate, the device held alone; its log and all rounds are left in `folder`."""
        with device_lock(self._device_name):
            return self._profile(job, compiled, artifact, folder)

    def _profile(
        self, job: CompileJob, compiled: Compiled, artifact: Path, folder: Path
    ) -> Profiled | Failure:
        candidate = Candidate(job=job, compiled=compiled, root=str(Path.cwd()), folder=str(artifact))
        try:
            measured = runner.measure(
                lambda: self._start(candidate, folder / LOG), self._baselines, self._spec.settings
            )
        except MemberGone as gone:
            return Failure(outcome=gone.outcome, reason=gone.reason, log=_kept(folder / LOG))
        except Unstable as unstable:
            _keep_rounds(folder, unstable.rounds)
            return Failure(outcome=Outcome.UNSTABLE_TIMING, reason=unstable.reason, log=ROUNDS)
        _keep_rounds(folder, measured.rounds)
        _kept(folder / LOG)
        return self._judge(measured)

    def _start(self, candidate: Candidate, log: Path) -> Member:
        log.unlink(missing_ok=True)
        seconds = self._spec.settings.time_limit
        place = Place(log=log, environment=self._environment, lifetime=seconds, patience=seconds)
        return Member(CANDIDATE, self._server, self._set_up(candidate), place)

    def _set_up(self, hosted: Candidate | Reference) -> SetUp:
        return SetUp(
            hosted=hosted,
            problem=self._spec.problem,
            kind=self._spec.target.kind,
            flush_cache=self._spec.settings.flush_cache,
        )

    def _judge(self, measured: Measured) -> Profiled | Failure:
        """Place the result under the roofline; what is above it is measured against fresh ceilings first."""
        seconds = measured.timing.median.value
        limits = self._bounds()
        if over_roofline.too_good(self._work, limits, seconds) is not None:
            self._ceilings = ceilings.measured_again(*self._device())
            limits = self._bounds()
            reason = over_roofline.too_good(self._work, limits, seconds)
            if reason is not None:
                return Failure(outcome=Outcome.OVER_ROOFLINE, reason=reason, log=ROUNDS)
        place = roofline.place(self._work, limits, seconds)
        return Profiled(
            timing=measured.timing,
            comparisons=measured.comparisons,
            absent=measured.absent,
            ceilings=limits,
            flops=self._work.flops,
            bytes=self._work.bytes,
            roofline_share=place.share,
            bound=place.bound,
            device=measured.facts,
            notes=measured.notes,
        )

    def _bounds(self) -> Ceilings:
        if self._ceilings is None:
            self._ceilings = ceilings.measured(*self._device())
        cold = self._spec.settings.flush_cache
        device = bounds.beyond_caches(self._ceilings) if cold else self._ceilings
        traffic = Traffic(read=self._work.read, written=self._work.written)
        return bounds.of_problem(device, traffic, self._work.dtype)

    def _device(self) -> tuple[ForkServer, BackendKind, str, Path]:
        return self._server, self._spec.target.kind, self._spec.device, self._cache / "ceilings"


def _keep_rounds(folder: Path, rounds: Sequence[Round]) -> None:
    """All batches in the order of their rounds: calls, seconds, and what else was seen of each."""
    (folder / ROUNDS).write_bytes(to_json(rounds))


def _kept(log: Path) -> str | None:
    """Name of a log that says something; an empty one is removed."""
    if log.is_file() and log.stat().st_size > 0:
        return log.name
    log.unlink(missing_ok=True)
    return None
