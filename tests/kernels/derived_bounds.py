"""Compare the backward kernels with the gradients of the forward kernels' references, and print JSON lines.

A program of its own, because Triton either interprets or compiles for the life of a process:
TRITON_INTERPRET=1 python -m tests.kernels.derived_bounds
"""

import functools
import itertools
import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch

from pipeline.backends.registry import backend
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.record import from_plain
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.verify.oracle.reference import ReferenceOracle, find_function
from pipeline.verify.oracle.tolerance import deviation
from tests.backends.triton.triton_jobs import ROOT, declared_job
from tests.kernels.test_cpp_kernels import inputs_of, launch_of, problem_of

NO_BINARY = Compiled(
    artifact="none", artifact_digest="", functions=(), facts=StaticFacts(code_bytes=0), files=()
)
SHAPES = [(40, 257), (1, 1), (7, 17), (0, 5)]
KINDS = ("normal", "large", "small", "special")
VARIANTS = {
    ("softmax_backward", "cpp"): [{}, {"LANES": 16, "UNROLL": 4}, {"LANES": 1, "UNROLL": 1}],
    ("rms_norm_backward", "cpp"): [{}, {"LANES": 16, "CHUNKS": 32}, {"LANES": 1, "UNROLL": 1}],
    ("softmax_backward", "triton"): [{"algorithm": "single"}, {"ROWS": 4, "num_stages": 3}],
    ("rms_norm_backward", "triton"): [{}, {"PIECE": 16, "BLOCK": 512}],
}


@functools.cache
def kernel_of(name: str) -> Kernel:
    """As declared."""
    with composer(ROOT / "conf") as composed:
        return from_plain(composed.option("kernel", name), Kernel)


def oracle_of(kernel: Kernel) -> ReferenceOracle:
    """Autograd of the forward kernel's reference."""
    return ReferenceOracle(
        reference=find_function(kernel.reference),
        magnitude=None,
        gradient_of=kernel.gradient_of,
        tolerance=kernel.tolerance,
        terms=lambda problem: 1.0,
    )


def triton_launch(name: str, dtype: str, changes: dict):
    """The launch in the interpreter."""
    job = declared_job(name, "h200", dtype, dimensions={"rows": 3, "cols": 5}, **changes)
    return backend("triton").load(job, NO_BINARY, ROOT, Path())


def compare(kernel: Kernel, launch, dtype: str):
    """The worst share of the bound over shapes, kinds of inputs and outputs, and where it was used."""
    oracle, generator = oracle_of(kernel), torch.Generator().manual_seed(1)
    worst = (0.0, "")
    cases = [(SHAPES[0], kind) for kind in KINDS] + [(sizes, "normal") for sizes in SHAPES[1:]]
    for sizes, kind in cases:
        problem = problem_of(kernel, dtype, sizes)
        inputs = inputs_of(problem, kind, generator)
        outputs = {
            name: torch.full(problem.shape(name), 7.0, dtype=getattr(torch, dtype))
            for name in problem.names("output")
        }
        launch({**inputs, **outputs})
        for name, expected in oracle.expected(problem, inputs).items():
            share = deviation(outputs[name], expected).share
            worst = max(worst, (share, f"{name} {sizes} {kind}"))
    return worst


def main(dtypes: list[str]):
    """Every Triton variant in the interpreter."""
    warnings.simplefilter("ignore")  # NumPy's, about the NaN that we feed it
    torch.set_num_threads(1)
    for (name, implementation), variants in VARIANTS.items():
        if implementation != "triton":
            continue
        kernel = kernel_of(name)
        for changes, dtype in itertools.product(variants, dtypes):
            share, where = compare(kernel, triton_launch(name, dtype, changes), dtype)
            print(json.dumps({"kernel": name, "dtype": dtype, "share": share, "where": where}))


def cpp_share(name: str, dtype: str, changes: dict):
    """The same for a compiled C++ variant."""
    kernel = kernel_of(name)
    with tempfile.TemporaryDirectory() as folder:
        return compare(kernel, launch_of(kernel, dtype, changes, Path(folder)), dtype)


if __name__ == "__main__":
    main(sys.argv[1:])
