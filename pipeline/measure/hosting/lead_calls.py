"""The untimed calls that lead a batch in: how long they run, and what is believed of their time."""

from pipeline.measure.hosting.measuring_messages import Ran
from pipeline.measure.hosting.measuring_process import LONG_CALL

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
