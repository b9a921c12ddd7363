"""The CUDA kernels: right in the emulation on awkward shapes, compiled for every target.

What an emulation cannot show stands in `pipeline/backends/cuda/emulation/fibres.hpp`; no GPU takes part.
"""

import itertools
import re
from pathlib import Path

import pytest
import torch

from pipeline.backends.registry import backend
from pipeline.records.formula import ELEMENT_BYTES, evaluate
from pipeline.records.results.compiled import Compiled
from pipeline.verify.oracle.tolerance import deviation
from tests.backends.cuda.cuda_jobs import ROOT, TARGETS, declared_job, emulated
from tests.backends.triton.triton_jobs import DIMENSIONS, kernel, target
from tests.kernels.test_cpp_kernels import inputs_of, oracle_of, problem_of
from tests.selection import slow_unless

NAMES = ("softmax", "matmul", "matmul_bias_gelu")
VARIANTS = {
    "softmax": [
        ("float32", {}),
        ("float32", {"ONLINE": False, "ROWS": 4, "WARPS": 1}),
        ("float16", {"ONLINE": False, "WARPS": 8}),
        ("float16", {"VECTORIZE": False, "ROWS": 4}),
        ("bfloat16", {"ONLINE": False, "VECTORIZE": False}),
    ],
    "matmul": [
        ("float32", {"BLOCK_M": 16, "BLOCK_K": 64, "STAGES": 1}),
        ("float32", {"BLOCK_N": 128, "WARPS": 4, "GROUP_M": 8, "STAGES": 4}),
        ("float16", {"BLOCK_M": 16, "BLOCK_N": 128, "STAGES": 4}),
        ("bfloat16", {"BLOCK_M": 128, "BLOCK_N": 128, "WARPS": 8, "GROUP_M": 8}),
    ],
    "matmul_bias_gelu": [("float32", {}), ("bfloat16", {"GROUP_M": 8})],
}
QUICKLY = {
    "softmax": [VARIANTS["softmax"][3]],
    "matmul": [VARIANTS["matmul"][0]],
    "matmul_bias_gelu": [VARIANTS["matmul_bias_gelu"][1]],
}
"""Both algorithms, 16 and 32 bits, products with and without tensor cores."""
ROWS = [(1, 1), (5, 2), (3, 7), (7, 17), (2, 1000), (6, 257), (4, 512), (3, 2311), (0, 5), (5, 0)]
PRODUCTS = [
    *((1, 1, 1), (1, 70, 200), (2, 33, 17), (3, 131, 9), (64, 64, 64), (65, 130, 70), (16, 8, 130)),
    *((129, 72, 33), (200, 128, 96), (0, 3, 3), (3, 0, 3), (3, 3, 0)),
]


def aligned(values: torch.Tensor) -> torch.Tensor:
    """The same with rows at multiples of 16 bytes, and NaN behind their ends."""
    width = -(-values.shape[-1] // 16) * 16
    buffer = torch.full((*values.shape[:-1], width), float("nan"), dtype=values.dtype)
    buffer[..., : values.shape[-1]] = values
    return buffer[..., : values.shape[-1]]


@pytest.mark.parametrize(
    ("name", "dtype", "changes"),
    slow_unless(
        lambda case: case[1:] in QUICKLY[case[0]],
        [(name, dtype, changes) for name in NAMES for dtype, changes in VARIANTS[name]],
    ),
    ids=str,
)
def test_against_the_reference(tmp_path: Path, name: str, dtype: str, changes: dict):
    """Within the bound, twice with equal bits: sizes 1 and primes, padded rows, NaN and infinities."""
    declared = kernel(name)
    launch = emulated(declared_job(name, dtype=dtype, **changes), tmp_path)
    oracle = oracle_of(declared)
    generator = torch.Generator().manual_seed(1)
    for sizes in ROWS if name == "softmax" else PRODUCTS:
        problem = problem_of(declared, dtype, sizes)
        (output,) = problem.names("output")
        for number, kind in enumerate(("normal", "large", "small", "special")):
            inputs = inputs_of(problem, kind, generator)
            if number % 2 == 0:  # the others have rows that begin anywhere
                inputs = {tensor: aligned(values) for tensor, values in inputs.items()}
            got = torch.full(problem.shape(output), 7.0, dtype=getattr(torch, dtype))
            launch({**inputs, output: got})
            found = deviation(got, oracle.expected(problem, inputs)[output])
            assert found.passed, (sizes, kind, found)
            again = torch.empty_like(got)
            launch({**inputs, output: again})
            assert torch.equal(got.view(torch.uint8), again.view(torch.uint8)), (sizes, kind)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", slow_unless("bfloat16".__eq__, ["float32", "bfloat16"]))
def test_rows_that_begin_anywhere(tmp_path: Path, dtype: str):
    """Wide loads only where the address allows them: strides and starts at every offset from 16 bytes."""
    launch = emulated(declared_job("matmul", dtype=dtype), tmp_path)
    generator = torch.Generator().manual_seed(2)
    buffer = torch.randn(1 << 14, generator=generator).to(getattr(torch, dtype))
    for offset, padding in ((0, 0), (0, 8), (1, 8), (3, 5), (4, 4), (8, 16)):
        a = buffer[offset:].as_strided((17, 48), (48 + padding, 1))
        b = buffer[4000 + offset :].as_strided((48, 24), (24 + padding, 1))
        c = torch.full((17, 24), 7.0, dtype=a.dtype)
        launch({"a": a, "b": b, "c": c})
        expected = a.double() @ b.double()
        assert torch.allclose(c.double(), expected, rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-4)


def one_at_a_time(name: str) -> list[dict]:
    """The default, and every other value of every tunable with the others at their default."""
    tunables = kernel(name).implementations["cuda"].tunables
    changed = [
        {axis: value}
        for axis, tunable in tunables.items()
        for value in tunable.values
        if value != tunable.default
    ]
    return [{}, *changed]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hardware"),
    slow_unless(
        ("softmax", "h200").__eq__,
        itertools.product(("softmax", "matmul"), ("a100", "rtx4090", "h200", "b200")),
    ),
)
def test_every_value_compiles_everywhere(tmp_path: Path, name: str, hardware: str):
    """Without spills, on every architecture; the matrix product of 16-bit elements on tensor cores.

    All values on two of them, the one with the least shared memory among these.
    """
    every = one_at_a_time(name)
    for number, changes in enumerate(every if hardware in ("rtx4090", "h200") else every[:1]):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = declared_job(name, hardware, "bfloat16", **changes)
        compiled = backend("cuda").compile(job, ROOT, folder)
        assert isinstance(compiled, Compiled), (changes, compiled)
        assert compiled.facts.spills == 0, changes
        assert ("matrix" in compiled.facts.instructions) == (name == "matmul"), changes
        wide = changes.get("VECTORIZE", True)
        loads = "load_global_128" if name == "softmax" else "async_copy"
        assert (compiled.facts.instructions.get(loads, 0) > 0) == wide, changes


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_float32_compiles_without_tensor_cores(tmp_path: Path, name: str):
    """float32 is multiplied in full."""
    compiled = backend("cuda").compile(declared_job(name, "h200", "float32"), ROOT, tmp_path)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.facts.instructions.get("matrix", 0) == 0
    assert compiled.facts.instructions["fma"] > 0


def test_sixteen_bits_compile_to_tensor_cores(tmp_path: Path):
    """The default of the matrix product, which `test_every_value_compiles_everywhere` varies."""
    compiled = backend("cuda").compile(declared_job("matmul", "h200", "bfloat16"), ROOT, tmp_path)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.facts.spills == 0
    assert compiled.facts.instructions["matrix"] > 0
    assert compiled.facts.instructions["async_copy"] > 0


@pytest.mark.parametrize("hardware", TARGETS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 17, 64, 4096])
def test_default_is_valid_everywhere(name, hardware, size):
    """The default point satisfies every constraint on every target, shape and dtype: no task is empty."""
    implementation = kernel(name).implementations["cuda"]
    defaults = {tunable: value.default for tunable, value in implementation.tunables.items()}
    for dtype in ELEMENT_BYTES:
        dimensions = dict.fromkeys(DIMENSIONS[name], size)
        names = target(hardware).limits | dimensions | defaults | {"itemsize": ELEMENT_BYTES[dtype]}
        assert [rule.rule for rule in implementation.constraints if not evaluate(rule.rule, names)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_tunable_is_used(name: str):
    """A tunable that no source mentions would sweep over equal binaries."""
    implementation = kernel(name).implementations["cuda"]
    text = "".join(path.read_text() for path in backend("cuda").sources(implementation, ROOT))
    code = re.sub(r"//.*", "", text)
    assert [tunable for tunable in implementation.tunables if not re.search(rf"\b{tunable}\b", code)] == []
