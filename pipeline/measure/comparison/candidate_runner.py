"""Time a candidate side by side with its baselines. In: how to start it, the baselines. Out: Measured."""

import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pipeline.backends.devices.disturbance import disturbance, load
from pipeline.measure.comparison import process_agreement
from pipeline.measure.comparison.baselines import Baselines, BaselineSets
from pipeline.measure.comparison.result_check import check_results
from pipeline.measure.comparison.round_summary import Measured, Once, Unstable, numbered, once, together
from pipeline.measure.comparison.rounds import CANDIDATE, Round, fresh_seed, quiet, run_rounds, undisturbed
from pipeline.measure.device_monitor import Monitor
from pipeline.measure.hosting.call_costs import Examined
from pipeline.measure.hosting.clock_check import FalseClock, ShortBatches
from pipeline.measure.hosting.process_handle import Member, MemberGone
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.results.profiled import Unmeasured

ACCUSATIONS = 3
"""Measurements that have to find a clock false by what a load disturbs. One alone may be a load that met the
candidate and hardly its baselines; a false clock is false in each, and where it is true at last, that
measurement is what counts."""
BUSY = "or the load of the machine, for whose cores threads waited in most rounds, makes it seem so"


def measure(
    start: Callable[[], Member],
    baselines: BaselineSets,
    settings: Profile,
    kind: DeviceKind,
    timed: Callable[[], None] = lambda: None,
) -> Measured:
    """Time a candidate in one process or several, then see what its calls cost besides.

    `start` starts its process, again where a baseline broke down in between; `timed` is called when nothing
    is timed any more and its last process has still to end.

    Raises
    ------
    MemberGone
        The candidate refused, crashed, hung, or did not tell the truth about its time.
    Unstable
        The samples scatter beyond use, or the machine is too busy to tell whether its clock is true.
    """
    return _Measurement(start, baselines, settings, kind, timed).run()


class _End(NamedTuple):
    """What was found after the last process's calls were timed."""

    examined: Examined
    unmeasured: tuple[Unmeasured, ...]


class _Measurement:
    """The processes of one candidate, one after the other."""

    def __init__(
        self,
        start: Callable[[], Member],
        baselines: BaselineSets,
        settings: Profile,
        kind: DeviceKind,
        timed: Callable[[], None],
    ) -> None:
        self._start = start
        self._baselines = baselines
        self._settings = settings
        self._share = process_agreement.of_one(settings)
        self._kind: DeviceKind = kind
        self._timed = timed
        self._several: list[Once] = []
        self._asked = settings.processes_at_least

    def run(self) -> Measured:
        """All processes that it takes."""
        end = None
        try:
            while end is None:
                end = self._process(self._baselines.of(len(self._several)))
        except Unstable as unstable:
            rounds = numbered([*(each.rounds for each in self._several), unstable.rounds])
            raise Unstable(unstable.reason, rounds) from None
        measured = together(self._several, self._settings, self._baselines.of(0).absent())
        return msgspec.structs.replace(measured, examined=end.examined, unmeasured=end.unmeasured)

    def _process(self, baselines: Baselines) -> _End | None:
        """Time it in one process; None where another one has to follow."""
        accusations = 0
        while True:
            others = baselines.members()  # before the candidate: its time limit runs from its start
            candidate = self._start()
            rounds: list[Round] = []
            try:
                seed = fresh_seed()
                candidate.load(seed, self._share)
                before, own = load(), _cpu_seconds(candidate, *others)
                with Monitor.of(self._kind) as monitor:
                    rounds = run_rounds((candidate, *others), self._share, monitor)
                own = _cpu_seconds(candidate, *others) - own
                found = disturbance(before, load(), own)
                candidate.call_again()
                check_results(candidate, others, seed)
                self._several.append(once((candidate, *others), rounds, self._share, found))
                if self._goes_on():
                    return None
                examined = candidate.examine(self._settings.energy_seconds)
                self._timed()
                missing = (*examined.unmeasured, *((monitor.absent,) if monitor.absent else ()))
                return _End(examined, missing)
            except (FalseClock, ShortBatches) as accusation:
                accusations += 1
                if accusations == ACCUSATIONS:
                    raise self._concluded(accusation, rounds) from None
            except MemberGone as gone:
                if gone.name == CANDIDATE:
                    raise
                baselines.lost(gone)
            finally:
                candidate.stop()

    def _concluded(self, accusation: FalseClock | ShortBatches, rounds: list[Round]) -> Exception:
        """What is said where measurements agree that its clock is false, or that nobody can know."""
        if isinstance(accusation, ShortBatches):
            return Unstable(accusation.reason, rounds)
        if 2 * len(quiet(rounds)) < len(undisturbed(rounds, self._share)):
            return Unstable(f"its clock cannot be checked: {accusation.reason}, {BUSY}", rounds)
        return accusation

    def _goes_on(self) -> bool:
        """Whether further processes have to be asked.

        The first ones alone decide: who stops when he likes what he sees is wrong more often than he says.
        """
        if len(self._several) == self._settings.processes_at_least:
            speedups = [each.speedup for each in together(self._several, self._settings, ()).comparisons]
            self._asked = process_agreement.wanted(speedups, self._settings)
        return len(self._several) < self._asked


def _cpu_seconds(*members: Member) -> float:
    """CPU time of this process and of the members."""
    own = os.times()
    return own.user + own.system + sum(member.cpu_seconds() for member in members)
