"""The naive check that the gate is measured against; prints its seconds.

    python -m tests.benchmarks.naive SPEC COMPILED STORE

SPEC and COMPILED are files of the verify stage. The first compiled variant is launched once on the inputs of
the gate's first case, the reference computes in their own type, and `torch.allclose` compares.
"""

import os
import sys
import time
from pathlib import Path

from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import read_record
from pipeline.records.results.compiled import Compiled, CompileOutput

REPEATS = 20


def main() -> None:
    """Measure the fastest of some repetitions; the first ones warm caches."""
    spec = read_record(Path(sys.argv[1]), VerifySpec)
    compiled = read_record(Path(sys.argv[2]), CompileOutput)
    if spec.target.kind != "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    import torch

    from pipeline.backends.registry import backend
    from pipeline.verify.harness.planning.preparation import case_set_of, cases_of, job_of, shapes_of
    from pipeline.verify.oracle.reference import find_function

    torch.set_num_threads(1)
    record = next(record for record in compiled.records if isinstance(record.result, Compiled))
    assert isinstance(record.result, Compiled)
    folder = entry_path(Path(sys.argv[3]), "compile", record.entry)
    launch = backend(record.variant.backend).load(
        job_of(spec, record.variant), record.result, Path.cwd(), folder
    )
    case_set = case_set_of(spec, (1,))
    case = case_set.prepare(cases_of(spec, case_set, shapes_of(spec, record.variant))[0])
    reference = find_function(spec.reference)
    problem = case.problem
    outputs = {
        name: torch.empty(problem.shape(name), dtype=getattr(torch, problem.tensors[name].dtype))
        for name in problem.names("output")
    }
    # Of a backward kernel the forward reference: autograd would only take longer.
    upstream = () if spec.gradient_of is None else spec.gradient_of.upstream
    arguments = [tensor for name, tensor in case.inputs.items() if name not in upstream]
    best = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        launch({**case.inputs, **outputs})
        expected = reference(*arguments, **problem.scalars, **problem.attributes)
        first = next(iter(outputs.values()))
        torch.allclose(first, expected.to(first.dtype).reshape(first.shape), rtol=1e-2, atol=1e-2)
        best = min(best, time.perf_counter() - started)
    print(best)


if __name__ == "__main__":
    main()
