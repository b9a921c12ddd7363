"""Our timings compared with other harnesses, for every kernel in C++, as docs/results/agreement.md.

    python -m tests.benchmarks.agreement [--kernels softmax …] [--workload awkward] [--seconds 330]
    python -m tests.benchmarks.agreement --hardware local --backend triton --profile cold --kernels softmax …

For each kernel the default variant is compiled, verified and measured with its baselines as the pipeline does
it, except that in every round `torch.utils.benchmark` and pytest-benchmark time the same call in the same
process, right before or after our batch (`tests.benchmarks.agreement_child`). What is undecided then is
measured again while there is time, and all rounds count. Run it on a quiet machine.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import numpy as np

from pipeline.backends.backend import CompileJob
from pipeline.measure.ceilings.roofline_share import work_of
from pipeline.measure.comparison.bench import ROUNDS, Bench
from pipeline.measure.comparison.bench_task import kernel_task
from pipeline.measure.comparison.rounds import CANDIDATE, CLEAN, Round, waiting
from pipeline.measure.hosting import process_handle
from pipeline.measure.hosting.measuring_messages import Candidate
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import options
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import Overrides
from pipeline.records.layout import entry_path, spec_path
from pipeline.records.outcome import Failure
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.verified import Verified, VerifyOutput
from tests.benchmarks import agreement_child
from tests.benchmarks.agreement_page import DISCUSSION, OF_A_CPU, Row, longer, table
from tests.benchmarks.chain import run_chain
from tests.benchmarks.machine import where
from tests.paths import ROOT

TARGET = ROOT / "docs" / "results" / "agreement.md"
TIME_LIMIT = 1800.0  # seconds for all rounds of one kernel, the other harnesses included


class _Subject(NamedTuple):
    """One kernel, compiled and verified, and what was measured so far."""

    spec: ProfileSpec
    compiled: CompileRecord
    rows: list[Row]
    seconds: list[float]
    """Of each visit."""

    @property
    def open(self) -> bool:
        """Whether more rounds could show more."""
        return any(row.open for row in self.rows)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.agreement", description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=kernels_in_cpp())
    parser.add_argument("--workload", default="awkward")
    parser.add_argument("--hardware", default="cpu", help="`local`: the GPU of this machine")
    parser.add_argument("--backend", default="cpp")
    parser.add_argument("--rounds", type=int, default=16, help="of each visit to a kernel")
    parser.add_argument("--seconds", type=float, default=330.0, help="until which undecided kernels get more")
    parser.add_argument("--profile", default="standard", help="the preset")
    parser.add_argument("--out", type=Path, help="docs/results/agreement.md for a CPU")
    chosen = parser.parse_args()
    if chosen.out is None and chosen.hardware != "cpu":
        parser.error("--out is needed for a GPU")
    chosen.out = chosen.out or TARGET
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        rows = _rows(chosen, Path(scratch))
    chosen.out.write_text("\n".join(_page(rows, chosen)))
    print(chosen.out.read_text())


def _rows(chosen: argparse.Namespace, store: Path) -> list[Row]:
    """Each kernel is visited once, then the undecided ones, the least visited first, while there is time."""
    began = time.monotonic()
    subjects = []
    for kernel in chosen.kernels:
        subject = _Subject(*_prepared(kernel, chosen, store), rows=[], seconds=[])
        subjects.append(subject)
        _visit(subject, store)
    while True:
        left = chosen.seconds - (time.monotonic() - began)
        found = [each for each in subjects if each.open and each.seconds[-1] < left]
        if not found:
            return [row for each in subjects for row in each.rows]
        _visit(min(found, key=lambda each: len(each.seconds)), store)


def _visit(subject: _Subject, store: Path) -> None:
    """More rounds in fresh processes; the rows get longer.

    Raises
    ------
    SystemExit
        The first visit has no result; one of a later visit is told, and what is known stays.
    """
    began = time.monotonic()
    try:
        _lengthen(subject, store)
    except SystemExit as failed:
        if not subject.rows:
            raise
        print(f"measured again without a result: {failed}", file=sys.stderr)
    subject.seconds.append(time.monotonic() - began)


def _lengthen(subject: _Subject, store: Path) -> None:
    samples = store / "samples"
    shutil.rmtree(samples, ignore_errors=True)
    samples.mkdir()
    rounds = _measured(subject.spec, subject.compiled, store, samples)
    kernel, backend = subject.spec.problem.kernel, subject.compiled.variant.backend
    more = [row for path in sorted(samples.iterdir()) for row in paired(kernel, path, rounds, backend)]
    subject.rows[:] = (
        [longer(*both) for both in zip(subject.rows, more, strict=True)] if subject.rows else more
    )


def kernels_in_cpp() -> list[str]:
    """Every declared kernel with an implementation in C++, its own or inherited."""
    with composer(ROOT / "conf") as hydra:
        catalogue = OptionLoader(hydra, Overrides(choices={}, values={}), ROOT)
        found = catalogue.kernels(options(ROOT / "conf", "kernel"))
    return [
        name
        for name, kernel in sorted(found.items())
        if any(each.backend == "cpp" for each in kernel.implementations.values())
    ]


def _prepared(kernel: str, chosen: argparse.Namespace, store: Path) -> tuple[ProfileSpec, CompileRecord]:
    """Generate, compile and verify the default variant; what profile would read.

    Raises
    ------
    SystemExit
        It does not compile or verify: nothing unverified is timed.
    """
    overrides = (
        f"kernel={kernel} workload={chosen.workload} hardware={chosen.hardware} optimization=defaults "
        f"optimization.implementations=[{chosen.backend}] "
        f"profile={chosen.profile} verify=fast tracking=disabled"
    )
    task, outputs = run_chain(overrides, store)
    verified = read_record(outputs["verify"], VerifyOutput).records[0]
    if not isinstance(verified.result, Verified):
        raise SystemExit(f"{kernel}: {verified.result.reason}")
    spec = read_record(spec_path(store, "profile", task.row.profile), ProfileSpec)
    settings = msgspec.structs.replace(
        spec.settings,
        seconds_per_variant=TIME_LIMIT,
        time_limit=TIME_LIMIT,
        batches_at_least=chosen.rounds,
        batches_at_most=chosen.rounds,
    )
    spec = msgspec.structs.replace(spec, settings=settings)
    return spec, read_record(outputs["compile"], CompileOutput).records[0]


def _measured(spec: ProfileSpec, compiled: CompileRecord, store: Path, samples: Path) -> list[Round]:
    """As the stage profile measures, with the other harnesses beside it.

    Raises
    ------
    SystemExit
        It has no result: too noisy, for example.
    """
    child = mock.patch.object(process_handle, "TARGET", f"{agreement_child.__name__}:serve")
    environment = mock.patch.dict(os.environ, {agreement_child.FOLDER: str(samples)})
    with child, environment, Bench(kernel_task(spec, work_of(spec), {}), store, store) as bench:
        bench.prepare()
        result = bench.profile(_candidate(spec, compiled, store), store)
    if isinstance(result, Failure):
        raise SystemExit(f"{spec.problem.kernel}: {result.outcome}: {result.reason}")
    return msgspec.json.decode((store / ROUNDS).read_bytes(), type=list[Round])


def _candidate(spec: ProfileSpec, compiled: CompileRecord, store: Path) -> Candidate:
    assert isinstance(compiled.result, Compiled)
    job = CompileJob(
        variant=compiled.variant,
        implementation=spec.implementations[compiled.variant.implementation],
        problem=spec.problem,
        target=spec.target,
    )
    folder = entry_path(store, "compile", compiled.entry).absolute()
    return Candidate(job=job, compiled=compiled.result, root=str(ROOT), folder=str(folder))


def paired(kernel: str, path: Path, rounds: list[Round], backend: str = "cpp") -> list[Row]:
    """One row for each harness, of the rounds in which no thread waited for a core.

    Of a baseline's last round theirs is not there where the coin put it after ours.
    """
    name = path.stem
    theirs = [json.loads(line) for line in path.read_text().splitlines()]
    pairs = [
        (each.batches[name].per_call, found)
        for each, found in zip(rounds, theirs, strict=False)
        if waiting(each) <= CLEAN
    ]
    return [
        Row(
            kernel=kernel,
            callable=backend if name == CANDIDATE else name,
            harness=harness,
            ours=tuple(ours for ours, _ in pairs),
            theirs=tuple(float(np.median(found[harness])) for _, found in pairs),
        )
        for harness in sorted({name for found in theirs for name in found}, reverse=True)
    ]


def _page(rows: list[Row], chosen: argparse.Namespace) -> Iterator[str]:
    is_cpu = chosen.hardware == "cpu"
    yield f"# {'CPU' if is_cpu else 'GPU'} timings compared with other harnesses\n"
    yield (
        f"Written by `python -m tests.benchmarks.agreement --workload {chosen.workload} "
        f"--rounds {chosen.rounds} --seconds {chosen.seconds:g} --profile {chosen.profile} "
        f"--hardware {chosen.hardware} --backend {chosen.backend}`."
    )
    yield where(("torch", "numpy", "pytest-benchmark" if is_cpu else "triton")) + "\n"
    yield from table(rows)
    yield ""
    yield DISCUSSION
    if is_cpu:
        yield OF_A_CPU


if __name__ == "__main__":
    main()
