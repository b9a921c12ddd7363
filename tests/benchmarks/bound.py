"""How far the analytic bound lies below recorded times of public auto-tuning runs, and how it ranks variants.

    python -m tests.benchmarks.bound /path/to/recorded

The folder holds results in the T4 format of Kernel Tuner (`convolution_milo_A100_T4.json.gz`, …), which are
not part of this repository: AutoTuningAssociation/benchmark_hub on GitHub, MIT licence. No binary of these
variants is at hand, so that only what their sizes say is used: operations, compulsory bytes, blocks, lanes.
What the records do not say (registers, loads in flight) is left out. Prints a Markdown table.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from pipeline.performance.bound_error import Error, Pair, error_of
from pipeline.performance.quantities import digits, seconds
from pipeline.performance.time_bound import Block, Bound, Geometry, LeastWork, Rates, bound, geometry
from pipeline.records.record import Record

Configuration = dict[str, int]

FLOAT = 4  # bytes
MILLISECOND = 1e-3  # `timeunit` of these files, whichever way they spell it


class Device(Record, frozen=True, kw_only=True):
    """What was measured on."""

    rates: Rates
    limits: dict[str, int]


DEVICES = {
    # NVIDIA A100-PCIE-40GB, as the records name it: data sheet of 2020 (1,555 GB/s; 19.5 TFLOP/s), white
    # paper V1.0 (2020), table 4 (108 multiprocessors).
    "A100": Device(
        rates=Rates(bandwidth=1.555e12, arithmetic=1.95e13), limits={"sm_count": 108, "warp_size": 32}
    ),
    # One of the two dies, which is a device to HIP. CDNA 2 white paper (2021): 3.2768 TB/s and 220 compute
    # units on both; 256 packed float32 FLOP a clock and unit at 1.7 GHz.
    "MI250X": Device(
        rates=Rates(bandwidth=1.6384e12, arithmetic=110 * 256 * 1.7e9),
        limits={"sm_count": 110, "warp_size": 64},
    ),
}


class Space(Record, frozen=True, kw_only=True):
    """A recorded kernel: its work, and how its sizes make a grid."""

    work: LeastWork
    size: tuple[int, int]
    """Points along x and y, one result each."""


def convolution() -> Space:
    """A filter of 15 x 15 on 4096 x 4096 float32: a multiplication and an addition for each weight."""
    side, width = 4096, 15
    outputs, inputs = side * side, (side + width - 1) ** 2
    flops = 2.0 * width * width * outputs
    return Space(
        work=LeastWork(flops=flops, bytes=float(FLOAT * (outputs + inputs + width * width))),
        size=(side, side),
    )


def dedispersion() -> Space:
    """25,000 samples at 2,048 dispersion measures, a sum over 1,536 channels of 8-bit samples each.

    The number of channels and their type follow from the traffic of 1,536 B a result that the records state
    (`GB/s` times `time`). An addition alone runs at half the rate of the declared peak, which counts two
    operations of a fused one; so it is counted as two here.
    """
    samples, measures, channels = 25_000, 2_048, 1_536
    outputs = samples * measures
    return Space(
        work=LeastWork(flops=2.0 * channels * outputs, bytes=float(FLOAT * outputs + channels * samples)),
        size=(samples, measures),
    )


SPACES = {"convolution_milo": convolution(), "dedispersion_milo": dedispersion()}


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bound", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the T4 files are")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*_T4.json.gz"))
    if not paths:
        parser.error(f"no *_T4.json.gz in {options.folder}")
    rows = [row for path in paths for row in _rows(path)]
    heading = (
        "recorded", "bound", "variants", "bound (least, most)", "best measured", "measured / bound: least",
        "5 %", "median", "95 %", "below", "Kendall's tau", "Spearman's rho", "best / chosen",
    )  # fmt: skip
    lines = [heading, ("---",) * 2 + ("---:",) * (len(heading) - 2), *rows]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


def _rows(path: Path) -> list[tuple[str, ...]]:
    kernel, _, name = path.name.removesuffix("_T4.json.gz").rpartition("_")
    space, device = SPACES[kernel], DEVICES[name]
    recorded = read(path)
    rows = []
    for words, launched in (("peaks", False), ("peaks and launch", True)):
        pairs = [
            Pair(
                estimate=bound_of(space, device, _launch(space, device, sizes) if launched else None).seconds,
                measured=time,
            )
            for sizes, time in recorded
        ]
        error = error_of(pairs)
        assert error is not None, f"{path}: no variant was measured"
        rows.append(_row(f"{kernel.removesuffix('_milo')}, {name}", words, pairs, error))
    return rows


def read(path: Path) -> list[tuple[Configuration, float]]:
    """Configurations that ran and were right, with their mean time in seconds."""
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return [
        (entry["configuration"], float(entry["measurements"][0]["value"]) * MILLISECOND)
        for entry in content["results"]
        if entry["invalidity"] == "correct"
    ]


def bound_of(space: Space, device: Device, launch: Geometry | None) -> Bound:
    """The bound of one configuration."""
    return bound(space.work, device.rates, launch)


def _launch(space: Space, device: Device, sizes: Configuration) -> Geometry:
    grid = tuple(
        -(-points // (sizes[f"block_size_{axis}"] * sizes[f"tile_size_{axis}"]))
        for axis, points in zip("xy", space.size, strict=True)
    )
    block = Block(threads=sizes["block_size_x"] * sizes["block_size_y"])
    made = geometry(device.limits, grid, block)
    assert made is not None
    return made


def _row(recorded: str, words: str, pairs: list[Pair], error: Error) -> tuple[str, ...]:
    estimates = [pair.estimate for pair in pairs]
    spread = seconds(min(estimates))
    if error.distinct > 1:
        spread += f", {seconds(max(estimates))}"
    return (
        recorded,
        words,
        f"{error.variants:,}",
        spread,
        seconds(min(pair.measured for pair in pairs)),
        digits(error.ratio_least),
        digits(error.ratio_low),
        digits(error.ratio_median),
        digits(error.ratio_high),
        str(error.below),
        "–" if error.kendall is None else f"{error.kendall:.2f}",
        "–" if error.spearman is None else f"{error.spearman:.2f}",
        "–" if error.best is None else f"{error.best:.2f}",
    )


if __name__ == "__main__":
    main()
