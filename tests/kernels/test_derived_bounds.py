"""Kernels whose bounds are derived, backward ones among them, on odd shapes, in C++ and in Triton."""

import itertools
import json
import os
import subprocess
import sys

import pytest
import torch

from tests.backends.triton.triton_jobs import ROOT
from tests.kernels.derived_bounds import VARIANTS, cpp_share, kernel_of
from tests.kernels.test_cpp_kernels import inputs_of, launch_of, problem_of
from tests.selection import slow_unless

NAMES = tuple(dict.fromkeys(name for name, _ in VARIANTS))
TYPES = ("bfloat16", "float32", "float16")
QUICK = ("softmax_backward", "cross_entropy", "linear_int4", "add_layer_norm")
"""One of each kind of bound."""
EXACT = ("linear_quartet", "block_top_k", "embedding")
"""Sums of products of few bits, which float32 has without rounding; indices; values that are only moved."""
PARTS = 4


def names_of(part: int) -> tuple[str, ...]:
    """Kernels that are checked together."""
    return NAMES[part::PARTS]


@pytest.fixture
def one_thread():
    """Threads that spin while they wait would make the tests as slow as the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def cpp_cases(part: int):
    """Each variant in one type, in turn: what loads and stores is common to all kernels."""
    of_each = (
        zip(itertools.repeat(name), VARIANTS[name, "cpp"], itertools.cycle(TYPES), strict=False)
        for name in names_of(part)
    )
    yield from itertools.chain.from_iterable(of_each)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The kernels of the class."""
    if "changes" in metafunc.fixturenames and metafunc.cls:
        cases = slow_unless(
            lambda case: case[0] in QUICK and case[1:] == (VARIANTS[case[0], "cpp"][0], "bfloat16"),
            list(cpp_cases(metafunc.cls.part)),
        )
        metafunc.parametrize(("name", "changes", "dtype"), cases, ids=str)


class Within:
    """A part of the kernels: the tests of a class stay with one worker, and all take a quarter of an hour."""

    part: int

    @pytest.mark.usefixtures("one_thread")
    def test_cpp(self, name, changes, dtype):
        """Padded rows, a single element, no rows, special values; every kind of vector."""
        share, where = cpp_share(name, dtype, changes)
        assert 0.0 < share <= 1.0 or (share == 0.0 and name in EXACT), where

    @pytest.mark.slow
    def test_triton(self):
        """The same in the interpreter, with a row in one piece and in blocks."""
        run = subprocess.run(
            [sys.executable, "-m", "tests.kernels.derived_bounds", *names_of(self.part)],
            env=os.environ | {"TRITON_INTERPRET": "1"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-2000:]
        cases = [json.loads(line) for line in run.stdout.splitlines()]
        assert {case["kernel"] for case in cases} == set(names_of(self.part))
        wrong = [case for case in cases if not 0.0 < case["share"] <= 1.0]
        assert [case for case in wrong if case["share"] != 0.0 or case["kernel"] not in EXACT] == []


class TestFirstPart(Within):
    """Of four."""

    part = 0


class TestSecondPart(Within):
    """Of four."""

    part = 1


class TestThirdPart(Within):
    """Of four."""

    part = 2


class TestFourthPart(Within):
    """Of four."""

    part = 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "sizes"),
    [
        ("rms_norm_backward", {}, (150, 300)),
        ("rms_norm_backward", {"CHUNKS": 32}, (150, 300)),
        ("attention_causal_backward", {}, (1, 2, 150, 170, 20)),
    ],
    ids=str,
)
def test_split_sum_does_not_depend_on_threads(tmp_path, name, changes, sizes):
    """Bit for bit: the pieces of the sums of dweight, of dk and of dv are those of the shape."""
    kernel = kernel_of(name)
    launch = launch_of(kernel, "float32", changes, tmp_path, sizes)
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(1))
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            outputs = {name: torch.empty(problem.shape(name)) for name in problem.names("output")}
            launch({**inputs, **outputs})
            results.append(outputs)
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(results[0][name], other[name]) for name in other)
