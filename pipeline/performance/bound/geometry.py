"""How a launch spreads over a GPU: its blocks and the target's limits in, waves and balance out.

An estimate: blocks are taken to be alike, and to be dealt out evenly as they end.
"""

import math
from collections.abc import Mapping

from pipeline.records.record import Record


class Block(Record, frozen=True, kw_only=True):
    """One block of a launch."""

    threads: int
    resident: int | None = None
    """Blocks that one multiprocessor holds at once; None where it is not known."""
    bytes_in_flight: int | None = None
    """The most that its loads can have on the way at once; None where it is not known."""


class Geometry(Record, frozen=True, kw_only=True):
    """A launch on a device."""

    blocks: int
    multiprocessors: int
    warp_size: int
    block: Block

    @property
    def busiest(self) -> int:
        """Blocks that the multiprocessor with the most of them works through."""
        return -(-self.blocks // self.multiprocessors)

    @property
    def balance(self) -> float:
        """Mean over busiest multiprocessor: the share of the device's arithmetic that even blocks can use."""
        return self.blocks / (self.busiest * self.multiprocessors)

    @property
    def lanes(self) -> float:
        """Threads over the lanes of the warps that hold them."""
        return self.block.threads / (self._warps * self.warp_size)

    @property
    def wave(self) -> int | None:
        """Blocks that the device holds at once."""
        return self.block.resident * self.multiprocessors if self.block.resident else None

    @property
    def waves(self) -> int | None:
        """How often the device is filled until all blocks have run."""
        return -(-self.blocks // self.wave) if self.wave else None

    @property
    def last_wave(self) -> float | None:
        """How full the last wave is."""
        if self.wave is None or self.waves is None:
            return None
        return self.blocks / self.wave - (self.waves - 1)

    @property
    def wave_efficiency(self) -> float | None:
        """Blocks over the places of all waves."""
        return self.blocks / (self.waves * self.wave) if self.wave and self.waves else None

    @property
    def bytes_in_flight(self) -> float | None:
        """The most that all loads of the device can have on the way at once."""
        if self.wave is None or self.block.bytes_in_flight is None:
            return None
        return float(min(self.blocks, self.wave) * self.block.bytes_in_flight)

    @property
    def _warps(self) -> int:
        return -(-self.block.threads // self.warp_size)


def geometry(limits: Mapping[str, int], grid: tuple[int, ...] | None, block: Block) -> Geometry | None:
    """The launch; None where the grid or the number of multiprocessors is not known."""
    count, warp = limits.get("sm_count"), limits.get("warp_size")
    blocks = math.prod(grid) if grid else 0
    if not count or not warp or blocks < 1 or block.threads < 1:
        return None
    return Geometry(blocks=blocks, multiprocessors=count, warp_size=warp, block=block)
