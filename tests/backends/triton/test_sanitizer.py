"""Data races, accesses out of bounds and results that depend on an order show in the interpreter."""

import json
import os
import subprocess
import sys

import pytest

from tests.backends.triton.triton_jobs import ROOT

KERNELS = """
import json, sys
import torch, triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
from pipeline.backends.triton.interpretation.sanitizer import SANITIZER


@triton.jit
def carry(x, y, n, B: tl.constexpr):
    p = tl.program_id(0)
    at = p * B + tl.arange(0, B)
    before = 0.0
    if p > 0:
        before = tl.load(y + p * B - 1)
    tl.store(y + at, tl.cumsum(tl.load(x + at, mask=at < n, other=0.0), 0) + before, mask=at < n)


@triton.jit
def histogram(bins, counts, n, B: tl.constexpr):
    for i in range(B):
        where = counts + tl.load(bins + tl.program_id(0) * B + i)
        tl.store(where, tl.load(where) + 1)


@triton.jit
def atomic_histogram(bins, counts, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(counts + tl.load(bins + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def cleared_by_one(x, total, n, B: tl.constexpr):
    p = tl.program_id(0)
    at = p * B + tl.arange(0, B)
    if p == 0:
        tl.store(total, 0.0)
    tl.atomic_add(total, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


@triton.jit
def last_program_adds(x, parts, count, total, n, B: tl.constexpr):
    p = tl.program_id(0)
    at = p * B + tl.arange(0, B)
    tl.store(parts + p, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))
    if tl.atomic_add(count, 1) == tl.num_programs(0) - 1:
        found = 0.0
        for i in range(tl.num_programs(0)):
            found += tl.load(parts + i)
        tl.store(total, found)
        tl.store(count, 0)


@triton.jit
def locked(x, total, lock, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    mine = tl.sum(tl.load(x + at, mask=at < n, other=0.0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + mine)
    tl.atomic_xchg(lock, 0)


@triton.jit
def load_past_end(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at), mask=at < n)


@triton.jit
def store_past_end(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n))


@triton.jit
def pointers(table, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(y + tl.program_id(0) * B + at, tl.load(x + at))


@triton.jit
def same_value_everywhere(x, y, n, B: tl.constexpr):
    tl.store(y, 7.0)
    tl.store(y + 1, tl.load(x))


@triton.jit
def waits(x, flag, n, B: tl.constexpr):
    while tl.load(flag) == 0:
        pass


@triton.jit
def tickets(order, count):
    tl.store(order + tl.program_id(0), tl.atomic_add(count, 1))


@triton.jit
def last_of_bin(last, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(last + at % 8, at)


def in_any_order():
    order = number(16)
    tickets[(16,)](order, number())
    assert order.tolist() != list(range(16)), "in order"


def any_thread():
    last = number(8)
    last_of_bin[(1,)](last, B=256)
    assert (last % 8).tolist() == list(range(8)), "none of the values"
    assert last.tolist() != list(range(248, 256)), "the last value"


n, B = 100, 32
x, y = torch.randn(n), torch.zeros(n)
bins = torch.randint(0, 4, (128,))
one = lambda: torch.zeros(1)
number = lambda count=1: torch.zeros(count, dtype=torch.int32)
rows = torch.randn(4, B)
table = torch.tensor([row.data_ptr() for row in rows])
CALLS = {
    "carry": lambda: carry[(4,)](x, torch.zeros(n), n, B=B),
    "histogram": lambda: histogram[(4,)](bins, number(4), 128, B=B),
    "atomic_histogram": lambda: atomic_histogram[(4,)](bins, number(4), 128, B=B),
    "cleared_by_one": lambda: cleared_by_one[(4,)](x, torch.ones(1), n, B=B),
    "last_program_adds": lambda: last_program_adds[(4,)](x, torch.empty(4), number(), one(), n, B=B),
    "locked": lambda: locked[(4,)](x, one(), number(), n, B=B),
    "load_past_end": lambda: load_past_end[(4,)](x, y, n, B=B),
    "store_past_end": lambda: store_past_end[(4,)](x, torch.zeros(n), n, B=B),
    "pointers": lambda: pointers[(4,)](table, torch.empty(4, B), n, B=B),
    "same_value_everywhere": lambda: same_value_everywhere[(4,)](x, torch.zeros(2), n, B=B),
    "in_any_order": in_any_order,
    "any_thread": any_thread,
    "waits": lambda: waits[(2,)](x, number(), n, B=B),
}
found = {}
for name, call in CALLS.items():
    kinds = []
    for _ in range(3):  # each in another order
        try:
            call()
        except Exception as error:
            kinds.append("needs a device" if "needs a device" in str(error) else repr(error))
        kinds += sorted({fault.kind for fault in SANITIZER.take()})
    found[name] = kinds
print(json.dumps(found))
"""
EXPECTED = {
    "carry": ["race"] * 3,
    "histogram": ["race"] * 3,
    "atomic_histogram": [],
    "cleared_by_one": ["race"] * 3,
    "last_program_adds": [],
    "locked": [],
    "load_past_end": ["out_of_bounds"] * 3,
    "store_past_end": ["out_of_bounds"] * 3,
    "pointers": [],
    "same_value_everywhere": [],
    "in_any_order": [],
    "any_thread": [],
    "waits": ["needs a device"] * 3,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Kernel -> kinds of faults of three launches, from a process that interprets."""
    path = tmp_path_factory.mktemp("sanitizer") / "kernels.py"  # the interpreter reads the source
    path.write_text(KERNELS)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(path)], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    kinds: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return kinds


@pytest.mark.parametrize("name", EXPECTED)
def test_faults(found: dict[str, list[str]], name: str) -> None:
    """In every launch."""
    assert found[name] == EXPECTED[name]
