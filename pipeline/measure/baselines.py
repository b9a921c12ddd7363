"""The baselines of one task: started at first need, kept for all variants, or absent with a reason."""

import random
from pathlib import Path
from typing import Literal

import msgspec

from pipeline.measure.child import Reference, SetUp
from pipeline.measure.member import Member, MemberGone, Place
from pipeline.records.outcome import Outcome
from pipeline.records.profiled import AbsentBaseline
from pipeline.records.record import Record
from pipeline.records.settings import Profile
from pipeline.workers.sandbox import ForkServer

COMPILE_SECONDS = 300.0  # torch.compile on a busy machine with a cold cache of its own: some tens
LIFETIME = 86400.0  # seconds: they serve every variant of the task
TOO_SLOW = 2.0  # budgets of a variant that one call may take: it would be called for every variant
STARTS = 2  # a baseline that dies once is restarted, one that dies twice is absent
COMPILE_OUTPUT = 1 << 30  # bytes: precompiled headers are large


class Scene(Record, frozen=True, kw_only=True):
    """What all callables of one task share."""

    set_up: SetUp
    """With the eager reference as the hosted callable."""
    settings: Profile
    environment: dict[str, str]
    inductor_cache: Path
    logs: Path
    """Folder for the baselines' logs."""


class Baselines:
    """Measuring children of the reference: eager, and compiled by torch.compile."""

    def __init__(self, server: ForkServer, scene: Scene) -> None:
        self._server = server
        self._scene = scene
        self._running: dict[str, Member] = {}
        self._starts: dict[str, int] = {}
        self._absent: dict[str, AbsentBaseline] = {}

    def members(self) -> tuple[Member, ...]:
        """Those that can be measured now, started where they were not."""
        for name in self._scene.settings.baselines:
            while name not in self._running and name not in self._absent:
                self._start(name)
        return tuple(self._running.values())

    def absent(self) -> tuple[AbsentBaseline, ...]:
        """Those that cannot be measured, and why."""
        return tuple(self._absent.values())

    def lost(self, gone: MemberGone) -> None:
        """One of them ended: restart it at next need, or give it up."""
        self._running.pop(gone.name, None)
        if self._starts[gone.name] >= STARTS:
            self._absent[gone.name] = AbsentBaseline(baseline=gone.name, reason=gone.reason)

    def stop(self) -> None:
        """End all."""
        for member in self._running.values():
            member.stop()
        self._running.clear()

    def _start(self, name: str) -> None:
        self._starts[name] = self._starts.get(name, 0) + 1
        try:
            self._running[name] = self._load(name)
        except MemberGone as gone:
            self.lost(gone)

    def _load(self, name: str) -> Member:
        scene = self._scene
        hosted = scene.set_up.hosted
        if not isinstance(hosted, Reference):
            raise TypeError("a scene is set up with the reference")
        compiled = name == "compile"
        place = Place(
            log=scene.logs / f"{name}.txt",
            environment=scene.environment | {"TORCHINDUCTOR_CACHE_DIR": str(scene.inductor_cache.absolute())},
            lifetime=LIFETIME,
            patience=COMPILE_SECONDS if compiled else scene.settings.time_limit,
            output=COMPILE_OUTPUT,
        )
        # A compiler too old for the processor's vector instructions fails; the second start tries them out.
        how: Literal["trusting", "trying"] = "trusting" if self._starts[name] == 1 else "trying"
        reference = msgspec.structs.replace(hosted, compiled=how if compiled else "no")
        set_up = SetUp(
            hosted=reference,
            problem=scene.set_up.problem,
            kind=scene.set_up.kind,
            flush_cache=scene.set_up.flush_cache,
        )
        member = Member(name, self._server, set_up, place)
        member.load(random.SystemRandom().getrandbits(48), scene.settings)
        if member.call_seconds > TOO_SLOW * scene.settings.seconds_per_variant:
            member.stop()
            self._starts[name] = STARTS
            reason = f"one call takes {member.call_seconds:.3g} s, over {TOO_SLOW:g} budgets of a variant"
            raise MemberGone(name, Outcome.TIMEOUT, reason)
        return member
