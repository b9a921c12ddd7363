"""One timed batch: untimed calls that lead it in, the child's clock, the kernel's account of its threads."""

import contextlib
import os

from pipeline.measure.hosting.measuring_messages import Ran
from pipeline.measure.hosting.measuring_process import LONG_CALL
from pipeline.records.record import Record


class Batch(Record, frozen=True, kw_only=True):
    """One timed batch."""

    calls: int
    seconds: float
    """Of all calls, by the child's clock."""
    unseen: float
    """What passed outside beyond that, its lead, and our own waiting for a core: two messages, and what the
    child keeps quiet about."""
    computed: float
    """CPU seconds of its main thread meanwhile, by the kernel's account, without those of the lead; 0 where
    that is not reported."""
    waited: float
    """Seconds that its threads were ready to run while others held the cores; 0 if not reported."""
    queued: float = 0.0
    """Those of its main thread alone."""
    coordinated: float = 0.0
    """CPU seconds of the coordinating process meanwhile, which asks before the clock starts and hears after
    it has stopped."""
    latencies: tuple[float, ...] = ()
    """Of each call, where they were timed one by one."""

    @property
    def per_call(self) -> float:
        """Seconds of one call."""
        return self.seconds / self.calls

    @property
    def disturbed(self) -> float:
        """Share of its time for which its threads waited for others than the coordinator."""
        return max(0.0, self.waited - self.coordinated) / self.seconds


class SchedulerAccount(Record, frozen=True, kw_only=True):
    """So far; all 0 where the platform does not tell."""

    computed: float
    """CPU seconds of the main thread."""
    waited: float
    """Seconds of all threads in the run queues, without running."""
    queued: float
    """Those of the main thread."""


def account_of(process: int | None) -> SchedulerAccount:
    """Exact while the process sleeps."""
    computed = waited = own = 0
    tasks = f"/proc/{process}/task"
    with contextlib.suppress(OSError):  # it, or a thread of it, has just ended
        for thread in os.listdir(tasks):  # noqa: PTH208  (twice for each batch, and paths take longer)
            with contextlib.suppress(OSError), open(f"{tasks}/{thread}/schedstat") as stream:  # noqa: PTH123
                ran, queued, _ = map(int, stream.read().split())
                waited += queued
                if thread == str(process):
                    computed, own = ran, queued
    return SchedulerAccount(computed=computed * 1e-9, waited=waited * 1e-9, queued=own * 1e-9)


SETTLE_SECONDS = (0.0005, 0.01)  # of untimed calls before each batch, at least and at most; at least one call
SETTLE_CALLS = 100
"""Untimed calls before each batch, within these seconds. While others had the cores, caches and branch
predictors forgot this callable: calls through `torch.compile` and eager backward take half as long again in
their first millisecond and some per cent more until the tenth, those of a C++ kernel 1 % in the first. On a
processor that nobody else used the least is enough: medians within 1 % of those after 100 calls."""
LEAD_SHARE = 0.125
"""Of a batch's calls, run once more right before its clock starts: the message that starts it lets the
callable sleep, and others compute, for long enough to make the first half millisecond 3 to 45 % slower."""
LEAD_EXCESS = 2.0  # times the timed calls: what a call of the lead may take longer, by the child's clock


def settle_seconds(call_seconds: float, *, alone: bool) -> float | None:
    """Of untimed calls before a batch; `alone`: nobody else had the device. None before long calls."""
    if call_seconds >= LONG_CALL:
        return None
    least, most = SETTLE_SECONDS
    return least if alone else min(max(least, SETTLE_CALLS * call_seconds), most)


def credible_lead(ran: Ran, *, share: float, queued: float) -> float:
    """Seconds of the calls before the timed ones, as many as `share` of these.

    A false clock could shift time from the timed calls into the lead. What is beyond a bound, and no waiting
    for a core (`queued` seconds by the kernel's account), is left in our account of the batch, where it shows
    as time that the clock hides.
    """
    return min(ran.lead_seconds, LEAD_EXCESS * share * ran.seconds + max(0.0, queued))
