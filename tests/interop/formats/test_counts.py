"""The public spaces of the benchmark hub: product and valid count, exact and at once."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.search.spaces.search_space import Subspace, recorded_space
from tests.interop.formats.recorded import recorded

Grid = dict[str, npt.NDArray[np.int64]]
Trial = Callable[[Grid], npt.NDArray[np.bool_]]

COUNTS = {
    "convolution": (10_240, 4_362),
    "dedispersion": (22_272, 11_130),
    "gemm": (663_552, 116_928),
    "hotspot": (4_440_000, 82_984),
}


def space_of(name: str) -> Subspace:
    """The space of one T1 file."""
    return recorded_space(read_recorded(recorded(f"{name}_milo.T1.json")))


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    """As published; two seconds of processor time are more than enough."""
    started = time.process_time()
    space = space_of(name)
    assert (space.size, space.count) == COUNTS[name]
    assert time.process_time() - started < 2


def convolution(at: Grid) -> npt.NDArray[np.bool_]:
    """Its conditions, written by hand."""
    width = at["block_size_x"] * at["tile_size_x"] + 14
    height = at["block_size_y"] * at["tile_size_y"] + 14
    plain, direct = at["use_padding"] == 0, at["use_shmem"] == 0
    return (
        (plain | (at["block_size_x"] % 32 != 0))
        & (at["block_size_x"] * at["block_size_y"] <= 1024)
        & (plain | ~direct)
        & (direct | (width * height < 12 * 1024))
    )


def dedispersion(at: Grid) -> npt.NDArray[np.bool_]:
    """Its conditions, written by hand."""
    threads = at["block_size_x"] * at["block_size_y"]
    return (
        (threads >= 32)
        & (threads <= 1024)
        & ((at["tile_size_x"] > 1) | (at["tile_stride_x"] == 0))
        & ((at["tile_size_y"] > 1) | (at["tile_stride_y"] == 0))
    )


def gemm(at: Grid) -> npt.NDArray[np.bool_]:
    """Its conditions, written by hand; the quotients there are whole or no divisors."""
    threads = at["MDIMC"] * at["NDIMC"]
    corner = (at["MWG"] == 128) & (at["NWG"] == 128) & (at["MDIMC"] == 8) & (at["NDIMC"] == 8)
    return (
        (at["MWG"] % (at["MDIMC"] * at["VWM"]) == 0)
        & (at["NWG"] % (at["NDIMC"] * at["VWN"]) == 0)
        & (at["MWG"] % (at["MDIMA"] * at["VWM"]) == 0)
        & (at["NWG"] % (at["NDIMB"] * at["VWN"]) == 0)
        & ((at["KWG"] * at["MDIMA"]) % threads == 0)
        & ((at["KWG"] * at["NDIMB"]) % threads == 0)
        & ~corner
    )


def hotspot(at: Grid) -> npt.NDArray[np.bool_]:
    """Its conditions, written by hand."""
    threads, halo = at["block_size_x"] * at["block_size_y"], 2 * at["temporal_tiling_factor"]
    width = at["block_size_x"] * at["tile_size_x"] + halo
    height = at["block_size_y"] * at["tile_size_y"] + halo
    return (
        (threads >= 32)
        & (threads <= 1024)
        & (at["temporal_tiling_factor"] % at["loop_unroll_factor_t"] == 0)
        & (width * height * (2 + at["sh_power"]) * 4 <= 49_152)
    )


@pytest.mark.parametrize("trial", [convolution, dedispersion, gemm, hotspot], ids=lambda each: each.__name__)
def test_trial_of_every_point_finds_as_many(trial: Trial) -> None:
    """Brute force over the whole product, with the conditions written anew."""
    space = space_of(trial.__name__)
    axes = np.meshgrid(*(np.array(each) for each in space.values.values()), indexing="ij", sparse=True)
    holds = trial(dict(zip(space.values, axes, strict=True)))
    whole = np.broadcast_to(holds, [len(each) for each in space.values.values()])
    assert (whole.size, np.count_nonzero(whole)) == COUNTS[trial.__name__]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["convolution_milo_A100", "convolution_milo_MI250X", "dedispersion_milo_A100"]
)
def test_what_was_recorded_is_what_is_valid(name: str) -> None:
    """The hub measured every valid point: its configurations are exactly ours."""
    space = space_of(name.partition("_")[0])
    results = read_recorded(recorded(f"{name}.json.gz")).results
    points = {tuple(point.values()) for point in space.points()}
    assert points == {tuple(result.tunables[name] for name in space.values) for result in results}
