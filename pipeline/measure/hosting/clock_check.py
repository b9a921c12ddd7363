"""Is the candidate's clock true? In: its batches and its baselines'. Out: nothing, or FalseClock."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.backends.devices.device_registry import device
from pipeline.measure.comparison.rounds import CANDIDATE, Round
from pipeline.measure.hosting.measuring_process import MOST_CALLS
from pipeline.measure.hosting.process_handle import MemberGone
from pipeline.measure.hosting.timed_batch import Batch
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Outcome

COMPUTED_SHARE = 0.05  # of a batch, and
COMPUTED_SECONDS = 0.0003  # CPU time that the main thread may use beyond what its clock says: two messages
UNSEEN_SHARE = 0.2  # of a batch, and
UNSEEN_SECONDS = 0.002  # that may pass outside the child's clock beyond what passes for its baselines
DRIVING_SECONDS = 0.0007
"""CPU time of a batch on a GPU besides its calls: launches, two waits for the device, messages. The upper
quartile over the rounds was 0.2 to 0.6 ms for 19 callables on an H200; the baselines show it, where there
are any."""
WAKING_SECONDS = 1e-4  # of CPU for each gap between calls, where no baseline shows it
BESIDE_SHARE = 0.01  # of a batch, and
BESIDE_SECONDS = 75e-6  # or, where that is more,
BESIDE_GAP_SECONDS = 15e-6  # for each gap between calls that are timed one by one
"""CPU time that it may use outside of its clock beyond what its baselines do in the same round, on a CPU. The
lower quartile over the rounds of each of 186 right processes, back to back and after gaps, was at most
26 µs, and mostly below none; a false clock raises it."""
SHORTENED = 0.25  # of `batch_seconds`: in what is shorter a false clock has too much room


class FalseClock(MemberGone):
    """By accounts that a load can disturb, so that several measurements have to agree; outcome `tampered`."""

    def __init__(self, reason: str) -> None:
        super().__init__(CANDIDATE, Outcome.TAMPERED, reason)


class ShortBatches(Exception):
    """Of the candidate: too short to check its clock by."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_clock(rounds: Sequence[Round], settings: Profile, kind: DeviceKind) -> None:
    """Compare what the candidate's clock says with the kernel's account of its CPU time, and with our clock.

    The account does not see time in which the main thread sleeps, and sees what it computes before its clock
    starts: where other threads of it wait for a core, it spins until they have come. A virtual machine may
    count time that it was not given. Our clock sees all time, with the delays of two messages. The
    baselines, whose code we trust, show how long these are on this machine at this moment. Where calls are
    timed one by one, or on a flushed cache, they sleep and compute between their calls as well; there each
    batch is followed by one that does not, and that one is looked at. After gaps the baselines show the
    rest; of a clock that is false after flushes alone nothing is known.

    Raises
    ------
    FalseClock
        It used more CPU time than its clock says, much more time passed, or it computed more outside of its
        clock than its baselines do. Or a load met the candidate in most rounds and hardly its baselines.
    ShortBatches
        Its batches are far shorter than when their calls were counted.
    """
    straight = [each.straight or each.batches for each in rounds]
    after_gaps = [each.batches for each in rounds if settings.mode == "server" and not settings.flush_cache]
    _check(straight, waking=0.0 if device(kind).is_host else DRIVING_SECONDS)
    if after_gaps:
        _check(after_gaps, waking=_waking(after_gaps))
    if device(kind).is_host:  # a GPU's host launches meanwhile, which takes some callables longer than others
        _check_beside(straight)
        if after_gaps:
            _check_beside(after_gaps)
    _check_length([each[CANDIDATE] for each in straight], settings.batch_seconds)


def _check(turns: Sequence[Mapping[str, Batch]], *, waking: float) -> None:
    """`waking`: CPU seconds in each batch that are no time of a call."""
    ours = [each[CANDIDATE] for each in turns]
    theirs = [batch for each in turns for name, batch in each.items() if name != CANDIDATE]
    told = float(np.median([batch.seconds for batch in ours]))
    computed = float(np.median([_unexplained(batch) for batch in ours]))
    # A slow machine needs longer for the two messages; the baselines receive the same.
    usual = float(np.quantile(list(map(_outside, theirs)), 0.75)) if theirs else 0.0
    if computed > COMPUTED_SECONDS + (1 + COMPUTED_SHARE) * told + max(waking, usual):
        raise FalseClock(f"its clock says {told:.3g} s for a batch that took {computed:.3g} s of CPU time")
    # On a busy machine its clock may count time in the run queue as well, by which a false one is hidden.
    hidden = float(np.quantile([_hidden(batch) for batch in ours], 0.25))
    least = max(0.0, float(np.quantile(list(map(_hidden, theirs)), 0.75))) if theirs else waking
    if hidden - least > COMPUTED_SECONDS + COMPUTED_SHARE * told:
        took = f"{told + hidden:.3g} s"
        raise FalseClock(f"its clock says {told:.3g} s for a batch that was running or ready for {took}")
    # The lower quartile: other processes delay some messages, a false clock hides time in every batch.
    unseen = float(np.quantile([batch.unseen for batch in ours], 0.25))
    delay = float(np.quantile([batch.unseen for batch in theirs], 0.75)) if theirs else 0.0
    if unseen - delay > UNSEEN_SECONDS + UNSEEN_SHARE * told:
        reason = f"its clock says {told:.3g} s for a batch that took {told + unseen:.3g} s"
        raise FalseClock(reason)


def _check_length(ours: Sequence[Batch], least: float) -> None:
    """A clock that is fast while calls are counted makes batches in which it may hide all that it likes."""
    told = float(np.median([batch.seconds for batch in ours]))
    if told < SHORTENED * least and ours[0].calls < MOST_CALLS:
        raise ShortBatches(
            f"its batches take {told:.3g} s by its clock, and took {least:.3g} s or more when their calls "
            "were counted: too short to check the clock by, unless the machine was busy then"
        )


def _check_beside(turns: Sequence[Mapping[str, Batch]]) -> None:
    """Beside the same round's baselines, which hear the same messages and sleep as long before each call.

    What a load does to them can look like it, so several measurements have to agree.
    """
    told = float(np.median([each[CANDIDATE].seconds for each in turns]))
    found = [
        _outside(each[CANDIDATE]) - float(np.mean([max(0.0, _outside(batch)) for batch in theirs]))
        for each in turns
        if (theirs := [batch for name, batch in each.items() if name != CANDIDATE])
    ]
    hidden = float(np.quantile(found, 0.25)) if found else 0.0
    gaps = len(turns[0][CANDIDATE].latencies)
    if hidden > max(BESIDE_SECONDS, gaps * BESIDE_GAP_SECONDS) + BESIDE_SHARE * told:
        raise FalseClock(
            f"its clock says {told:.3g} s for a batch, and it used at least {hidden:.3g} s of CPU time more "
            "outside of its clock than its baselines do"
        )


def _waking(turns: Sequence[Mapping[str, Batch]]) -> float:
    """CPU seconds of falling asleep and waking between calls that are timed one by one, which no clock sees.

    The baselines show them: after ten milliseconds of sleep they are several times what they are after two.
    """
    gaps = len(turns[0][CANDIDATE].latencies)
    others = [batch for each in turns for name, batch in each.items() if name != CANDIDATE]
    if not gaps or not others:
        return gaps * WAKING_SECONDS
    return max(0.0, float(np.quantile(list(map(_outside, others)), 0.75)))


def _unexplained(batch: Batch) -> float:
    """CPU seconds of its main thread, without as many as it may have waited in vain for its other threads."""
    return batch.computed - max(0.0, batch.waited - batch.queued)


def _outside(batch: Batch) -> float:
    """CPU seconds beyond what its clock says; less than none where the clock counted a wait for a core."""
    return _unexplained(batch) - batch.seconds


def _hidden(batch: Batch) -> float:
    """Seconds in which its main thread ran or was ready to, beyond what its clock says."""
    return batch.computed + batch.queued - batch.seconds
