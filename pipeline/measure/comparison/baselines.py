"""The baselines of one task: started at first need, kept for all variants, or absent with a reason."""

import random
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.measuring_messages import (
    Candidate,
    Hosted,
    HostedModel,
    Reference,
    SetUp,
    is_compiled,
    is_confined,
)
from pipeline.measure.hosting.process_handle import Member, MemberGone, Place
from pipeline.records.configuration.stage_settings import IMPLEMENTATION, Profile
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record
from pipeline.records.results.profiled import AbsentBaseline
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.fork_server import ForkServer


class HostedBaseline(Record, frozen=True, kw_only=True):
    """One baseline by its name, and what its process hosts."""

    name: str
    hosted: Hosted


def select_baselines(
    spec: ProfileSpec, defaults: dict[str, Candidate]
) -> tuple[tuple[HostedBaseline, ...], tuple[AbsentBaseline, ...]]:
    """Those that the settings name; `defaults` holds verified default variants by implementation."""
    found: list[HostedBaseline] = []
    absent: list[AbsentBaseline] = []
    for name in spec.settings.baselines:
        if name == "vendor":
            vendors = _vendors(spec)
            found += vendors
            if not vendors:
                reason = f"the kernel declares no vendor library's operator for {spec.target.kind} targets"
                absent.append(AbsentBaseline(baseline=name, reason=reason))
        elif name.startswith(IMPLEMENTATION):
            implementation = name.removeprefix(IMPLEMENTATION)
            if implementation in defaults:
                found.append(HostedBaseline(name=implementation, hosted=defaults[implementation]))
            else:
                absent.append(AbsentBaseline(baseline=implementation, reason=_why(spec, implementation)))
        else:
            found.append(HostedBaseline(name=name, hosted=_reference(spec, name)))
    return tuple(found), tuple(absent)


def _reference(spec: ProfileSpec, name: str) -> Reference:
    eager = Reference(function=spec.reference, gradient_of=spec.gradient_of)
    match name:
        case "compile":
            return msgspec.structs.replace(eager, compiled="default")
        case "compile_max_autotune":
            return msgspec.structs.replace(eager, compiled="max-autotune-no-cudagraphs")
    return eager


def _vendors(spec: ProfileSpec) -> list[HostedBaseline]:
    return [
        HostedBaseline(
            name=name,
            hosted=Reference(function=vendor.function, set_up=vendor.set_up, prepare=vendor.prepare),
        )
        for name, vendor in spec.vendors.items()
    ]


def _why(spec: ProfileSpec, implementation: str) -> str:
    """Why an implementation's default variant cannot take part."""
    if implementation not in spec.implementations:
        known = ", ".join(sorted(spec.implementations))
        return f"no implementation of that name for {spec.target.kind} targets; there are {known}"
    return "its default variant was not among the variants of this task that verified"


COMPILE_SECONDS = 300.0  # torch.compile on a busy machine with a cold cache of its own: some tens
LIFETIME = 86400.0  # seconds: they serve every variant of the task
SLOWEST = 1 / 24  # of the time limit that one call may take: of two such baselines, all rounds end within it
STARTS = 2  # a baseline that dies once is restarted, one that dies twice is absent
LEFT = 0.25  # of the machine's memory: each further process of a baseline has its own tensors
COMPILE_OUTPUT = 1 << 30  # bytes: precompiled headers are large


class MeasurementContext(Record, frozen=True, kw_only=True):
    """What all callables of one task share."""

    set_up: SetUp
    """Whose hosted callable each baseline replaces by its own."""
    baselines: tuple[HostedBaseline, ...]
    absent: tuple[AbsentBaseline, ...] = ()
    """Those that are known not to be there."""
    settings: Profile
    environment: dict[str, str]
    inductor_cache: Path
    logs: Path
    """Folder for the baselines' logs."""


def room() -> bool:
    """Whether enough of the machine's memory is left for further processes with tensors of their own."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return True
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return sizes.get("MemAvailable", 1) >= LEFT * sizes.get("MemTotal", 1)


class BaselineSets:
    """One process of each baseline for the first process of a candidate, others for its second, and so on.

    They serve every candidate of the task. On a GPU the first ones serve all: more contexts and tensors would
    fill its memory. Where the machine's memory runs short, those that there are serve in turn.
    """

    def __init__(self, server: ForkServer, context: MeasurementContext) -> None:
        self._server = server
        self._context = context
        self._sets: list[Baselines] = []

    def of(self, process: int) -> "Baselines":
        """Those that run with the candidate's process of this number, from 0."""
        more = not self._sets or (device(self._context.set_up.kind).is_host and room())
        if process == len(self._sets) and more:
            self._sets.append(Baselines(self._server, self._context, process))
        number = process % len(self._sets)
        if number:  # what the first process has nothing of cannot be compared with in a later one
            self._sets[number].leave_out(self._sets[0].absent())
        return self._sets[number]

    def stop(self) -> None:
        """End all."""
        for each in self._sets:
            each.stop()


class Baselines:
    """Measuring children of what the candidates are compared with: a process of each."""

    def __init__(self, server: ForkServer, context: MeasurementContext, number: int = 0) -> None:
        self._server = server
        self._context = context
        self._number = number
        self._running: dict[str, Member] = {}
        self._starts: dict[str, int] = {}
        self._absent = {each.baseline: each for each in context.absent}

    def members(self) -> tuple[Member, ...]:
        """Those that can be measured now, started where they were not."""
        for baseline in self._context.baselines:
            while baseline.name not in self._running and baseline.name not in self._absent:
                self._start(baseline)
        return tuple(self._running.values())

    def absent(self) -> tuple[AbsentBaseline, ...]:
        """Those that cannot be measured, and why."""
        return tuple(self._absent.values())

    def leave_out(self, absent: Iterable[AbsentBaseline]) -> None:
        """Neither start these nor keep them."""
        for each in absent:
            self._absent.setdefault(each.baseline, each)
            member = self._running.pop(each.baseline, None)
            if member is not None:
                member.stop()

    def lost(self, gone: MemberGone) -> None:
        """One of them ended: restart it at next need, or give it up."""
        self._running.pop(gone.name, None)
        if self._starts[gone.name] >= STARTS:
            if machine_resources.is_doubtful(
                Failure(outcome=gone.outcome, reason=gone.reason), self._context.logs
            ):
                machine_resources.require(self._context.logs)
            self._absent[gone.name] = AbsentBaseline(baseline=gone.name, reason=gone.reason)

    def stop(self) -> None:
        """End all."""
        for member in self._running.values():
            member.stop()
        self._running.clear()

    def _start(self, baseline: HostedBaseline) -> None:
        name = baseline.name
        self._starts[name] = self._starts.get(name, 0) + 1
        try:
            self._running[name] = self._load(baseline)
        except MemberGone as gone:
            self.lost(gone)

    def _load(self, baseline: HostedBaseline) -> Member:
        context, name, hosted = self._context, baseline.name, baseline.hosted
        compiled = is_compiled(hosted)
        if compiled and isinstance(hosted, Reference | HostedModel) and self._starts[name] > 1:
            # A compiler too old for the processor's vector instructions fails; so try them out.
            hosted = msgspec.structs.replace(hosted, vector_instructions="tried")
        place = Place(
            log=context.logs / (f"{name}-{self._number}.txt" if self._number else f"{name}.txt"),
            environment=context.environment
            | {"TORCHINDUCTOR_CACHE_DIR": str(context.inductor_cache.absolute())},
            lifetime=LIFETIME,
            patience=COMPILE_SECONDS if compiled else context.settings.time_limit,
            output=COMPILE_OUTPUT,
            scratch=self._scratch(hosted),
        )
        set_up = msgspec.structs.replace(context.set_up, hosted=hosted)
        member = Member(name, self._server, set_up, place)
        member.load(random.SystemRandom().getrandbits(48), context.settings)
        slowest = SLOWEST * context.settings.time_limit
        if member.call_seconds > slowest:
            member.stop()
            self._starts[name] = STARTS
            reason = (
                f"one call takes {member.call_seconds:.3g} s, over {slowest:.3g} (profile.time_limit / 24)"
            )
            raise MemberGone(name, Outcome.TIMEOUT, reason)
        return member

    def _scratch(self, hosted: Hosted) -> Path | None:
        """An empty folder for one that is confined; removed with the logs."""
        if not is_confined(hosted):
            return None
        return Path(tempfile.mkdtemp(prefix="model-", dir=self._context.logs))
