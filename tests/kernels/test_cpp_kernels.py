"""The C++ kernels against their references in float64: dtypes, odd shapes, padded rows, special values."""

import os
import re
from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.backends.backend import CompileJob
from pipeline.backends.cpp import Cpp
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.formula import evaluate_number
from pipeline.records.planning.problem import Problem
from pipeline.records.record import from_plain
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.variant import Variant
from pipeline.verify.oracle.random_inputs import make_inputs, with_row_norm
from pipeline.verify.oracle.reference import ReferenceOracle, find_function
from pipeline.verify.oracle.tolerance import deviation
from tests.paths import ROOT
from tests.selection import slow_unless

NAMES = ("softmax", "rms_norm", "matmul", "matmul_bias_gelu", "selective_scan")
VARIANTS = {
    "softmax": [
        ("float32", {}),
        ("float32", {"LANES": 16, "UNROLL": 8, "ONLINE": True, "STREAM": True}),
        ("float32", {"LANES": 1, "UNROLL": 1}),
        ("float16", {"LANES": 16, "UNROLL": 8, "STREAM": True}),
        ("float16", {"LANES": 1, "UNROLL": 1, "ONLINE": True}),
        ("bfloat16", {"UNROLL": 4, "ONLINE": True, "STREAM": True}),
        ("bfloat16", {"LANES": 16, "UNROLL": 1}),
    ],
    "rms_norm": [
        ("float32", {}),
        ("float32", {"LANES": 16, "UNROLL": 4, "PREFETCH": True, "STREAM": True}),
        ("float16", {"UNROLL": 1, "PREFETCH": True, "STREAM": True}),
        ("bfloat16", {"LANES": 16, "UNROLL": 4}),
        ("bfloat16", {"LANES": 1, "UNROLL": 1}),
    ],
    "matmul": [
        ("float32", {}),
        ("float32", {"LANES": 16, "MICRO_ROWS": 14, "BLOCK_K": 512, "PREFETCH": 8}),
        ("float32", {"LANES": 1, "MICRO_ROWS": 1, "MICRO_VECTORS": 1}),
        ("float16", {"LANES": 16, "MICRO_ROWS": 6, "MICRO_VECTORS": 4}),
        ("bfloat16", {"LANES": 16, "MICRO_ROWS": 8, "PREFETCH": 8}),
        ("bfloat16", {"LANES": 8, "MICRO_ROWS": 6}),
    ],
    "matmul_bias_gelu": [
        ("float32", {"LANES": 16, "MICRO_ROWS": 8}),
        ("float16", {}),
        ("bfloat16", {"LANES": 16, "MICRO_ROWS": 1, "MICRO_VECTORS": 1}),
    ],
    "selective_scan": [
        ("float32", {}),
        ("float32", {"LANES": 1, "TILE": 1, "UNROLL": 1, "FUSE": False}),
        ("float16", {"LANES": 16, "TILE": 4, "UNROLL": 4}),
        ("bfloat16", {"TILE": 4, "FUSE": False}),
    ],
}
ROWS = [(1, 1), (200, 2), (3, 5), (7, 17), (2, 1000), (33, 257), (40, 512), (0, 5)]
PRODUCTS = [
    *((1, 1, 1), (1, 70, 600), (2, 33, 17), (3, 1030, 9), (4, 5, 6), (5, 64, 300), (13, 100, 64)),
    *((121, 257, 33), (130, 40, 1030), (0, 3, 3), (3, 0, 3), (3, 3, 0), (6, 40, 0)),
]
SCANS = [(1, 1, 1, 1), (2, 40, 33, 16), (1, 7, 70, 3), (3, 5, 8, 17), (0, 3, 5, 4)]
SHAPES = {name: PRODUCTS if name.startswith("matmul") else ROWS for name in NAMES} | {"selective_scan": SCANS}


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    """As declared."""
    with composer(ROOT / "conf") as composed:
        return {name: from_plain(composed.option("kernel", name), Kernel) for name in NAMES}


def problem_of(kernel: Kernel, dtype: str, sizes: tuple[int, ...]) -> Problem:
    """The kernel on these sizes, in the order of its dimensions."""
    tensors = {
        name: msgspec.structs.replace(item, dtype=dtype) if item.dtype == "element" else item
        for name, item in kernel.tensors.items()
    }
    return Problem(
        kernel=kernel.name,
        dimensions=dict(zip(kernel.dimensions, sizes, strict=True)),
        tensors=tensors,
        scalars=kernel.scalars,
        attributes=kernel.attributes,
        element=dtype,
    )


def oracle_of(kernel: Kernel) -> ReferenceOracle:
    """What knows the right answer."""
    return ReferenceOracle(
        reference=find_function(kernel.reference),
        magnitude=find_function(kernel.tolerance.magnitude),
        tolerance=kernel.tolerance,
        terms=lambda problem: evaluate_number(kernel.tolerance.reduction, problem.dimensions),
    )


def inputs_of(problem: Problem, kind: str, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Random inputs, integers in their range; rows that may be padded are."""
    scale = {"large": 30.0, "small": 1e-3}.get(kind, 1.0)
    inputs = {}
    for name in problem.names("input"):
        shape = problem.shape(name)
        padding = 3 if problem.tensors[name].layout == "row_strided" else 0
        dtype = getattr(torch, problem.tensors[name].dtype)
        if not dtype.is_floating_point:
            inputs[name] = make_inputs(problem, "normal", generator.initial_seed())[name]
            continue
        buffer = torch.full((*shape[:-1], shape[-1] + padding), float("nan"), dtype=dtype)
        tensor = buffer[..., : shape[-1]]
        drawn = scale * torch.randn(shape, dtype=torch.float64, generator=generator)
        norm = problem.tensors[name].row_norm
        tensor.copy_(drawn if norm is None else with_row_norm(drawn, norm))
        inputs[name] = tensor.abs_() if problem.tensors[name].nonnegative else tensor
    if kind == "special":
        first = next(iter(inputs.values()))
        if min(first.shape) > 2:
            first[0, -1] = float("inf")
            first[1] = float("-inf")
            first[2, 1] = float("nan")
        if first.numel() and first.shape[0] > 3:
            first[3:, 0] = float("-inf")
    return inputs


def launch_of(kernel: Kernel, dtype: str, changes: dict, folder: Path, sizes: tuple[int, ...]):
    """Compile and load one variant, for a problem of these sizes."""
    implementation = kernel.implementations["cpp"]
    tunables = {name: tunable.default for name, tunable in implementation.tunables.items()} | changes
    job = CompileJob(
        variant=Variant(
            kernel=kernel.name,
            implementation="cpp",
            backend="cpp",
            source_digest="",
            attributes=kernel.attributes,
            tunables=tunables,
        ),
        implementation=implementation,
        problem=problem_of(kernel, dtype, sizes),
        target=Target(kind="cpu", architecture="native", limits={}),
        shared=str(Path(os.environ["XDG_CACHE_HOME"]) / "headers"),
    )
    Cpp().share(job, ROOT)  # as a run does: two thirds of such a compile are system headers
    compiled = Cpp().compile(job, ROOT, folder)
    assert isinstance(compiled, Compiled), compiled
    return Cpp().load(job, compiled, ROOT, folder)


@pytest.fixture
def one_thread():
    """Threads that spin while they wait would make the tests as slow as the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("name", "dtype", "changes"),
    slow_unless(
        lambda case: case[1:] == VARIANTS[case[0]][-1],
        [(name, dtype, changes) for name in NAMES for dtype, changes in VARIANTS[name]],
    ),
    ids=str,
)
def test_against_the_reference(kernels, tmp_path: Path, name: str, dtype: str, changes: dict):
    """Within the bound that the kernel's own tolerance derives, on every shape and kind of input."""
    kernel = kernels[name]
    launch = launch_of(kernel, dtype, changes, tmp_path, SHAPES[name][0])
    oracle = oracle_of(kernel)
    generator = torch.Generator().manual_seed(1)
    for sizes in SHAPES[name]:
        problem = problem_of(kernel, dtype, sizes)
        (output,) = problem.names("output")
        for kind in ("normal", "large", "small", *(["special"] if kernel.special_values else [])):
            inputs = inputs_of(problem, kind, generator)
            got = torch.full(problem.shape(output), 7.0, dtype=getattr(torch, dtype))
            launch({**inputs, output: got})
            found = deviation(got, oracle.expected(problem, inputs)[output])
            assert found.passed, (sizes, kind, found)
            again = torch.empty_like(got)
            launch({**inputs, output: again})
            assert torch.equal(got.view(torch.uint8), again.view(torch.uint8)), (sizes, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "matmul"])
def test_result_does_not_depend_on_threads(kernels, tmp_path: Path, name: str):
    """Bit for bit: the order of summation is that of the shape."""
    kernel = kernels[name]
    sizes = (150, 300, 520)[: len(kernel.dimensions)]
    launch = launch_of(kernel, "float32", {}, tmp_path, sizes)
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(1))
    (output,) = problem.names("output")
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(torch.empty(problem.shape(output)))
            launch({**inputs, output: results[-1]})
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("name", NAMES)
def test_every_tunable_is_used(kernels, name: str):
    """A tunable that no source mentions would sweep over equal binaries."""
    implementation = kernels[name].implementations["cpp"]
    text = "".join(path.read_text() for path in Cpp().sources(implementation, ROOT))
    code = re.sub(r"//.*", "", text)
    unused = [tunable for tunable in implementation.tunables if not re.search(rf"\b{tunable}\b", code)]
    assert unused == []


@pytest.mark.parametrize("name", NAMES)
def test_default_and_off_values_are_declared(kernels, name: str):
    """Both are points of the axis."""
    for tunable in kernels[name].implementations["cpp"].tunables.values():
        assert tunable.default in tunable.values
        assert (tunable.technique is None) == (tunable.off is None)
        assert tunable.off is None or tunable.off in tunable.values
