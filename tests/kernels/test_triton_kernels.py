"""The Triton kernels: right in the interpreter on awkward shapes, and with a default that is always valid."""

import json
import os
import subprocess
import sys

import pytest

from pipeline.records.formula import ELEMENT_BYTES, evaluate
from tests.backends.triton.triton_jobs import DIMENSIONS, ROOT, TARGETS, kernel, target
from tests.selection import slow_unless

# float32 results differ from float64 by roundings of the sum as well; the others by their own rounding.
UNITS = {"float32": 8.0, "float16": 1.0, "bfloat16": 1.0}


@pytest.fixture(scope="module", params=slow_unless("bfloat16".__eq__, UNITS))
def cases(request):
    """All comparisons of tests.kernels.interpreted in one dtype, in a process that interprets."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.interpreted", request.param],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("name", sorted(DIMENSIONS))
def test_kernel_is_right_in_the_interpreter(cases, name):
    """Odd, prime, single and empty shapes, padded rows, every algorithm; inputs untouched."""
    mine = [case for case in cases if case["kernel"] == name]
    assert mine
    wrong = [case for case in mine if case["error"] > UNITS[case["dtype"]] or not case["inputs_kept"]]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(DIMENSIONS))
def test_special_values_propagate(cases, name):
    """NaN and infinities come out where the reference has them, masked rows among them."""
    mine = [case for case in cases if case["kernel"] == name and case["special"]]
    assert mine
    assert [case for case in mine if not (case["same_nan"] and case["same_infinities"])] == []


@pytest.mark.parametrize("hardware", TARGETS)
@pytest.mark.parametrize("name", sorted(DIMENSIONS))
@pytest.mark.parametrize("size", [1, 17, 64, 4096])
def test_default_is_valid_everywhere(name, hardware, size):
    """The default point satisfies every constraint on every target, shape and dtype: no task is empty."""
    implementation = kernel(name).implementations["triton"]
    defaults = {tunable: value.default for tunable, value in implementation.tunables.items()}
    for dtype in ELEMENT_BYTES:
        dimensions = dict.fromkeys(DIMENSIONS[name], size)
        names = target(hardware).limits | dimensions | defaults | {"itemsize": ELEMENT_BYTES[dtype]}
        assert [rule.rule for rule in implementation.constraints if not evaluate(rule.rule, names)] == []
