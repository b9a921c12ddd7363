"""What else ran on the machine while something was measured: other processes, and the host."""

import os
from pathlib import Path

from pipeline.records.record import Record

TOLERATED = 0.10
"""Share of the machine that others may use before a measurement counts as disturbed."""
SHORTEST = 0.05  # seconds; below it the kernel's clock ticks (10 ms) tell nothing


class CpuLoad(Record, frozen=True, kw_only=True):
    """CPU seconds of the whole machine since it started."""

    busy: float
    stolen: float
    total: float


class Disturbance(Record, frozen=True, kw_only=True):
    """Shares of the machine's CPU time; 0.5 of two cores is one core."""

    others: float
    stolen: float

    def notes(self) -> tuple[str, ...]:
        """One sentence for each disturbance that counts."""
        parts = (("other processes used", self.others), ("the host took", self.stolen))
        return tuple(
            f"disturbed: {who} {share:.0%} of the machine's CPU time"
            for who, share in parts
            if share > TOLERATED
        )


def load() -> CpuLoad | None:
    """The counters as they stand; None where the platform has none."""
    try:
        line = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return None
    ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in line.split()[1:9]]
    user, nice, system, _idle, _wait, interrupt, soft, stolen = ticks
    return CpuLoad(busy=user + nice + system + interrupt + soft, stolen=stolen, total=sum(ticks))


def disturbance(before: CpuLoad | None, after: CpuLoad | None, own_seconds: float) -> Disturbance | None:
    """What happened between two readings beyond our own CPU time; None where that cannot be read."""
    if before is None or after is None or after.total - before.total < SHORTEST:
        return None
    total = after.total - before.total
    others = max(0.0, after.busy - before.busy - own_seconds)
    return Disturbance(others=others / total, stolen=max(0.0, after.stolen - before.stolen) / total)


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it waited for, so far."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
