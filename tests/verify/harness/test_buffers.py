"""Buffers: nothing overlaps, nothing is misplaced, and both processes see the same memory."""

import mmap
import os
from pathlib import Path

import pytest
import torch

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.verify.harness.buffers import AGAIN, FIRST, Arena, lay_out, repeat_word, view


def problem(dtype: str = "float32", rows: int = 5) -> Problem:
    """Two matrices, one of them strided, and a vector."""
    return Problem(
        kernel="any",
        dimensions={"rows": rows, "cols": 7},
        tensors={
            "x": Tensor(role="input", shape=("rows", "cols"), dtype=dtype, layout="row_strided"),
            "weight": Tensor(role="input", shape=("cols",), dtype=dtype, layout="row_strided"),
            "y": Tensor(role="output", shape=("rows", "cols"), dtype=dtype, layout="row_strided"),
        },
        scalars={},
        attributes={},
        element="float32",
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("rows", [5, 1, 0])
def test_write_and_read_back(dtype: str, rows: int) -> None:
    """Inputs come back, outputs hold poison, guards are whole, also for empty tensors and every size."""
    case = problem(dtype, rows)
    inputs = {name: torch.ones(case.shape(name)).to(getattr(torch, dtype)) for name in ("x", "weight")}
    layout = lay_out(case, padded=True, shift=256)
    with Arena(layout.size) as arena:
        for patterns in (FIRST, AGAIN):
            arena.write(layout, inputs, patterns)
            slots = {slot.name: slot for slot in layout.slots}
            assert torch.equal(arena.copy(slots["x"]), inputs["x"])
            assert (arena.bits(slots["y"]) == repeat_word(patterns.poison, slots["y"].itemsize)).all()
            assert all(arena.trespass(slot, patterns) is None for slot in layout.slots)


def test_first_poison_and_input_guards_are_nan() -> None:
    """So what is not written, and what is read beyond an input, shows in the result."""
    for word in (FIRST.poison, FIRST.input_guard, FIRST.output_guard, AGAIN.input_guard):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
            assert torch.tensor([repeat_word(word, dtype.itemsize)], dtype=integers).view(dtype).isnan()
    assert len({FIRST.poison, FIRST.input_guard, FIRST.output_guard}) == 3
    assert len({AGAIN.poison, AGAIN.input_guard, AGAIN.output_guard}) == 3


def test_places_are_aligned_and_apart() -> None:
    """Each tensor on its own aligned address, guards in between, strides odd and unequal where padded."""
    layout = lay_out(problem(), padded=True)
    assert [slot.offset % 256 for slot in layout.slots] == [0, 0, 0]
    for one, other in zip(layout.slots, layout.slots[1:], strict=False):
        assert one.end <= other.start
    assert layout.size >= layout.slots[-1].end
    assert {slot.name: slot.strides for slot in layout.slots} == {"x": (10, 1), "weight": (1,), "y": (18, 1)}
    assert [slot.strides for slot in lay_out(problem(), padded=False).slots] == [(7, 1), (1,), (7, 1)]


def test_shift_moves_everything() -> None:
    """All addresses differ, the distances do not."""
    here, there = lay_out(problem(), padded=True), lay_out(problem(), padded=True, shift=17 * 256)
    assert {b.offset - a.offset for a, b in zip(here.slots, there.slots, strict=True)} == {17 * 256}


def test_another_process_sees_the_same(tmp_path: Path) -> None:
    """What a child writes through the path, the owner reads; nothing stays behind."""
    layout = lay_out(problem(), padded=False)
    with Arena(layout.size) as arena:
        arena.write(layout, {"x": torch.ones(5, 7), "weight": torch.ones(7)}, FIRST)
        pid = os.fork()
        if pid == 0:
            descriptor = os.open(arena.path, os.O_RDWR)
            view(mmap.mmap(descriptor, arena.size), layout.slots[2])[4, 6] = 42.0
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert arena.copy(layout.slots[2])[4, 6] == 42.0
        path = arena.path
    assert not Path(path).exists()
    assert list(tmp_path.iterdir()) == []


def test_the_file_cannot_be_cut() -> None:
    """Else a candidate could end its judge with a bus error."""
    with Arena(4096) as arena:
        descriptor = os.open(arena.path, os.O_RDWR)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        os.close(descriptor)


def test_where_it_was_written() -> None:
    """The text names the tensor, the side and the distance."""
    layout = lay_out(problem(), padded=True)
    slot = layout.slots[0]
    with Arena(layout.size) as arena:
        arena.write(layout, {"x": torch.ones(5, 7), "weight": torch.ones(7)}, FIRST)
        region = arena.region(slot)
        region[slot.guard - 2] = 1
        assert (
            arena.trespass(slot, FIRST)
            == "x: 1 element written before its start, the nearest 2 before its start"
        )
        arena.write(layout, {"x": torch.ones(5, 7), "weight": torch.ones(7)}, FIRST)
        region[slot.guard + slot.span + 2] = 1
        assert arena.trespass(slot, FIRST) == "x: 1 element written past its end, the nearest 3 past its end"
        arena.write(layout, {"x": torch.ones(5, 7), "weight": torch.ones(7)}, FIRST)
        region[slot.guard + 10 + 8] = 1
        assert arena.trespass(slot, FIRST) == "x: the padding after 1 rows was written, first after row 1"
