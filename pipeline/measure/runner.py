"""Time a candidate beside its baselines. In: how to start it, the baselines. Out: Measured."""

import os
from collections.abc import Callable

import msgspec

from pipeline.measure.baselines import Baselines
from pipeline.measure.clock import FalseClock
from pipeline.measure.disturbance import disturbance, load
from pipeline.measure.member import Member, MemberGone
from pipeline.measure.monitor import Monitor
from pipeline.measure.rounds import CANDIDATE, fresh_seed, quiet, run_rounds, undisturbed
from pipeline.measure.summary import Measured, Unstable, summarize
from pipeline.records.hardware import BackendKind
from pipeline.records.settings import Profile

ACCUSATIONS = 3
"""Measurements that have to find a clock false by what a load disturbs. One alone may be a load that met the
candidate and hardly its baselines; a false clock is false in each, and where it is true at last, that
measurement is what counts."""
BUSY = "or the load of the machine, for whose cores threads waited in most rounds, makes it seem so"


def measure(
    start: Callable[[], Member],
    baselines: Baselines,
    settings: Profile,
    kind: BackendKind,
    timed: Callable[[], None] = lambda: None,
) -> Measured:
    """Time a candidate, then see what its calls cost besides.

    `start` starts its process, again where a baseline broke down in between; `timed` is called when nothing
    is timed any more and its process has still to end.

    Raises
    ------
    MemberGone
        The candidate refused, crashed, hung, or did not tell the truth about its time.
    Unstable
        The samples scatter beyond use, or the machine is too busy to tell whether its clock is true.
    """
    accusations = 0
    while True:
        others = baselines.members()  # before the candidate: its time limit runs from its start
        candidate = start()
        try:
            candidate.load(fresh_seed(), settings)
            before, own = load(), _cpu_seconds(candidate, *others)
            with Monitor.of(kind) as monitor:
                rounds = run_rounds((candidate, *others), settings, monitor)
            own = _cpu_seconds(candidate, *others) - own
            found = disturbance(before, load(), own)
            examined = candidate.examine(settings.energy_seconds)
            timed()
        except MemberGone as gone:
            if gone.name == CANDIDATE:
                raise
            baselines.lost(gone)
            continue
        finally:
            candidate.stop()
        try:
            measured = summarize((candidate, *others), rounds, settings, baselines.absent(), found)
        except FalseClock as accusation:
            accusations += 1
            if accusations == ACCUSATIONS and 2 * len(quiet(rounds)) < len(undisturbed(rounds, settings)):
                raise Unstable(f"its clock cannot be checked: {accusation.reason}, {BUSY}", rounds) from None
            if accusations == ACCUSATIONS:
                raise
            continue
        missing = (*examined.unmeasured, *((monitor.absent,) if monitor.absent else ()))
        return msgspec.structs.replace(measured, examined=examined, unmeasured=missing)


def _cpu_seconds(*members: Member) -> float:
    """CPU time of this process and of the members."""
    own = os.times()
    return own.user + own.system + sum(member.cpu_seconds() for member in members)
