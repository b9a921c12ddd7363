"""What is known of one timed batch: the child's clock, and the kernel's account of its threads."""

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
    that is not told."""
    waited: float
    """Seconds that its threads were ready to run while others held the cores; 0 where that is not told."""
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
