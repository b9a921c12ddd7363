"""Run the Triton kernels in the interpreter and print how they compare with their references, as JSON.

A program of its own, because Triton either interprets or compiles for the life of a process:
TRITON_INTERPRET=1 python -m tests.kernels.interpreted float32 bfloat16
"""

import importlib
import itertools
import json
import sys
import warnings

import torch

from pipeline.backends.registry import backend
from pipeline.records.results.compiled import Compiled, StaticFacts
from tests.backends.triton.triton_jobs import ROOT, declared_job

INFINITY = float("inf")
NO_BINARY = Compiled(
    artifact="none", artifact_digest="", functions=(), facts=StaticFacts(code_bytes=0), files=()
)
SHAPES = {
    "softmax": [
        {"rows": rows, "cols": cols}
        for rows, cols in [(1, 1), (3, 197), (5, 2048), (2, 3001), (0, 7), (4, 0)]
    ],
    "rms_norm": [
        {"rows": rows, "cols": cols} for rows, cols in [(1, 1), (3, 197), (5, 2048), (2, 3001), (0, 7)]
    ],
    "matmul": [
        {"M": m, "N": n, "K": k}
        for m, n, k in [(1, 1, 1), (65, 130, 70), (64, 64, 64), (17, 3, 129), (3, 5, 0), (0, 4, 4), (4, 0, 4)]
    ],
}
SHAPES["matmul_bias_gelu"] = SHAPES["matmul"]
VARIANTS = {
    "softmax": [
        {"algorithm": algorithm, "ROWS": rows, "num_stages": 1 if algorithm == "single" else 3}
        for algorithm, rows in itertools.product(("single", "online", "lanes"), (1, 4))
    ],
    "rms_norm": [
        {"algorithm": "single", "ROWS": 4},
        {"algorithm": "two_pass", "ROWS": 1, "CACHE_HINTS": True},
        {"algorithm": "two_pass", "ROWS": 4, "num_stages": 3},
    ],
    "matmul": [{"BLOCK_M": 16, "num_stages": 3}, {"BLOCK_M": 64, "BLOCK_K": 64, "GROUP_M": 8}],
}
VARIANTS["matmul_bias_gelu"] = VARIANTS["matmul"]


def main(dtypes):
    """Every kernel, variant and shape in these dtypes."""
    warnings.simplefilter("ignore")  # NumPy's, about the NaN that we feed it
    torch.manual_seed(0)
    for kernel, variants in VARIANTS.items():
        for variant, dtype in itertools.product(variants, dtypes):
            for shape, special in itertools.product(SHAPES[kernel], (False, True)):
                if special and min(shape.values()) <= 2:
                    continue  # no room for special values
                case = {"kernel": kernel, **variant, **shape, "dtype": dtype, "special": special}
                job = declared_job(kernel, "h200", dtype, dimensions=shape, **variant)
                print(json.dumps(case | compare(job, special)))


def compare(job, special):
    """Worst error in units of the last place of what entered the sums, and whether NaN match."""
    tensors = {name: make(job.problem, name, special) for name in job.problem.tensors}
    kept = {name: tensor.clone() for name, tensor in tensors.items()}
    backend("triton").load(job, NO_BINARY, ROOT, ROOT)(tensors)
    (output,) = job.problem.names("output")
    module = importlib.import_module(f"kernels.{job.problem.kernel.removesuffix('_bias_gelu')}.reference")
    inputs = [kept[name].double() for name in job.problem.names("input")]
    rest = [*job.problem.scalars.values()]
    expected = module.reference(*inputs, *rest, **job.problem.attributes)
    scale = module.magnitude(*inputs, *rest, **job.problem.attributes)
    got = tensors[output].double()
    finite = expected.isfinite()
    information = torch.finfo(tensors[output].dtype)
    smallest = information.smallest_normal * information.eps  # below it, steps are no longer relative
    error = ((got - expected).abs() / (information.eps * (scale + expected.abs()) + smallest))[finite]
    return {
        "error": error.max().item() if error.numel() else 0.0,
        "same_infinities": bool(torch.equal(got[~finite].nan_to_num(0.5), expected[~finite].nan_to_num(0.5))),
        "same_nan": bool(torch.equal(got.isnan(), expected.isnan())),
        "inputs_kept": all(
            torch.equal(tensors[n].nan_to_num(), kept[n].nan_to_num()) for n in tensors if n != output
        ),
    }


def make(problem, name, special):
    """A tensor: padded rows where the kernel takes them, poisoned outputs, special values in front."""
    tensor, shape = problem.tensors[name], problem.shape(name)
    dtype = getattr(torch, tensor.dtype)
    if tensor.role == "output":
        return torch.full(shape, 7.0, dtype=dtype)
    padding = 3 if tensor.layout == "row_strided" else 0
    values = torch.randn(*shape[:-1], shape[-1] + padding).to(dtype)[..., : shape[-1]]
    if special and len(shape) == 2 and min(shape) > 2 and name in ("x", "a"):
        values[0] = -INFINITY
        values[1, : shape[1] // 2] = -INFINITY
        values[2, -1] = INFINITY if problem.kernel == "softmax" else float("nan")
    return values


if __name__ == "__main__":
    main(sys.argv[1:])
