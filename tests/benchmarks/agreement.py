"""Our CPU timings against independent harnesses, for every kernel in C++, as docs/results/agreement.md.

    python -m tests.benchmarks.agreement [--kernels softmax …] [--workload awkward] [--rounds 24]

For each kernel the default variant is compiled, verified and measured with its baselines as the pipeline does
it, except that in every round `torch.utils.benchmark` and pytest-benchmark time the same call in the same
process, right before or after our batch (`tests.benchmarks.agreement_child`). Run it on a quiet machine.
"""

import argparse
import collections
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args
from unittest import mock

import msgspec
import numpy as np

from pipeline.backends.backend import CompileJob
from pipeline.config.catalogue import Catalogue
from pipeline.config.compose import composer
from pipeline.config.groups import options
from pipeline.config.overrides import Overrides
from pipeline.measure import member, statistics
from pipeline.measure.bench import ROUNDS, Bench
from pipeline.measure.commands import Candidate
from pipeline.measure.rounds import CANDIDATE, CLEAN, Round, waiting
from pipeline.measure.work import work_of
from pipeline.records.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.outcome import Failure
from pipeline.records.profiled import Interval
from pipeline.records.record import Record, read_record
from pipeline.records.specs import ProfileSpec
from pipeline.records.verified import Verified, VerifyOutput
from pipeline.store.layout import entry_path, spec_path
from tests.benchmarks import agreement_child
from tests.benchmarks.chain import run_chain
from tests.benchmarks.machine import where

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "results" / "agreement.md"
TIME_LIMIT = 1800.0  # seconds for all rounds of one kernel, the other harnesses included
Verdict = Literal["agrees", "differs", "undecided"]
CONFIDENCE = 0.95
TOO_WIDE = 0.1
"""Relative width of the ratio's interval beyond which it shows nothing."""
FEWEST = 6
"""Pairs below which a bootstrap interval of a median is not worth its name: all of them on one side of the
median has a chance of 1 in 32."""
DISCUSSION = """\
*Ours* and *theirs* are medians over the rounds with bootstrap intervals of 95 %; of theirs, the median of
each round's samples. *Ours / theirs* is the median of the rounds' ratios, with its interval. *Agrees* is the
verdict that the pipeline would give on this ratio: indistinguishable, that is, the interval leaves room for a
difference below 1 %. *Undecided*: the interval is wider than 10 %, or fewer than 6 rounds were left in which
no thread waited for a core, so that nothing was shown.

What is the same: the process, its threads, cores, priority and allocator, the callable, its content and
where it lies in memory, up to 10 ms of untimed calls before each, and garbage collection (timeit, on which
`torch.utils.benchmark` builds, is told to leave it on). What is not: the clock, and the calls per sample:
ours are batches of at least 4 ms, torch's blocks in which the clock costs less than 0.1 %,
pytest-benchmark's a few calls. So a disturbance of a millisecond is averaged into one of our samples, and
dropped by a median over theirs.
"""


class Row(Record, frozen=True, kw_only=True):
    """One callable under one harness, a pair of samples for each round."""

    kernel: str
    callable: str
    harness: str
    ours: tuple[float, ...]
    """Seconds per call."""
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> Interval:
        """Median of the rounds' ratios, ours over theirs."""
        ratios = [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return statistics.median(ratios, CONFIDENCE)

    @property
    def verdict(self) -> Verdict:
        """Whether the pipeline would call them indistinguishable."""
        if len(self.ours) < FEWEST:
            return "undecided"
        return verdict(self.ratio)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.agreement", description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=kernels_in_cpp())
    parser.add_argument("--workload", default="awkward")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--profile", default="standard", help="the preset")
    parser.add_argument("--out", type=Path, default=TARGET)
    chosen = parser.parse_args()
    rows = [row for kernel in chosen.kernels for row in _rows(kernel, chosen)]
    chosen.out.write_text("\n".join(_page(rows, chosen)) + "\n")
    print(chosen.out.read_text())


def kernels_in_cpp() -> list[str]:
    """Every declared kernel with an implementation in C++, its own or inherited."""
    with composer(ROOT / "conf") as hydra:
        catalogue = Catalogue(hydra, Overrides(choices={}, values={}), ROOT)
        found = catalogue.kernels(options(ROOT / "conf", "kernel"))
    return [
        name
        for name, kernel in sorted(found.items())
        if any(each.backend == "cpp" for each in kernel.implementations.values())
    ]


def _rows(kernel: str, chosen: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        store = Path(scratch)
        spec, compiled = _prepared(kernel, chosen, store)
        samples = store / "samples"
        samples.mkdir()
        rounds = _measured(spec, compiled, store, samples)
        return [row for path in sorted(samples.iterdir()) for row in _paired(kernel, path, rounds)]


def _prepared(kernel: str, chosen: argparse.Namespace, store: Path) -> tuple[ProfileSpec, CompileRecord]:
    """Generate, compile and verify the default variant; what profile would read.

    Raises
    ------
    SystemExit
        It does not compile or verify: nothing unverified is timed.
    """
    overrides = (
        f"kernel={kernel} workload={chosen.workload} hardware=cpu optimization=defaults "
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
    child = mock.patch.object(member, "TARGET", f"{agreement_child.__name__}:serve")
    environment = mock.patch.dict(os.environ, {agreement_child.FOLDER: str(samples)})
    with child, environment, Bench(spec, work_of(spec), store, store, {}) as bench:
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


def _paired(kernel: str, path: Path, rounds: list[Round]) -> list[Row]:
    """One row for each harness, of the rounds in which no thread waited for a core.

    Of a baseline's last round theirs is not there where the coin put it after ours.
    """
    name = path.stem
    theirs = [json.loads(line) for line in path.read_text().splitlines()]
    pairs = [
        (each.batches[CANDIDATE if name == "cpp" else name].per_call, found)
        for each, found in zip(rounds, theirs, strict=False)
        if waiting(each) <= CLEAN
    ]
    return [
        Row(
            kernel=kernel,
            callable=name,
            harness=harness,
            ours=tuple(ours for ours, _ in pairs),
            theirs=tuple(float(np.median(found[harness])) for _, found in pairs),
        )
        for harness in agreement_child.HARNESSES
    ]


def _page(rows: list[Row], chosen: argparse.Namespace) -> Iterator[str]:
    yield "# Our CPU timings against independent harnesses\n"
    yield (
        f"Written by `python -m tests.benchmarks.agreement --workload {chosen.workload} "
        f"--rounds {chosen.rounds} --profile {chosen.profile}`."
    )
    yield where(("torch", "numpy", "pytest-benchmark")) + "\n"
    yield "| kernel | callable | harness | ours | theirs | ours / theirs | verdict |"
    yield "|---|---|---|---:|---:|---:|---|"
    for row in rows:
        yield f"| {row.kernel} | {row.callable} | {row.harness} | {_figures(row)} | {row.verdict} |"
    counts = collections.Counter(row.verdict for row in rows)
    ratios = [row.ratio.value for row in rows if len(row.ours) >= FEWEST]
    yield f"\nOf {len(rows)}: " + ", ".join(f"{counts[each]} {each}" for each in get_args(Verdict)) + "."
    if ratios:
        yield f"All ratios together: median {np.median(ratios):.3f}.\n"
    yield DISCUSSION


def _figures(row: Row) -> str:
    if len(row.ours) < FEWEST:
        return f"| | {len(row.ours)} pairs"
    ratio = row.ratio
    return (
        f"{_microseconds(row.ours)} | {_microseconds(row.theirs)} "
        f"| {ratio.value:.3f} ({ratio.low:.3f} – {ratio.high:.3f})"
    )


def _microseconds(samples: tuple[float, ...]) -> str:
    found = statistics.median([1e6 * each for each in samples], CONFIDENCE)
    return f"{found.value:.2f} µs ({found.low:.2f} – {found.high:.2f})"


def verdict(ratio: Interval) -> Verdict:
    """Whether the pipeline would call them indistinguishable; too wide an interval shows nothing."""
    if ratio.high / ratio.low > 1 + TOO_WIDE:
        return "undecided"
    return "agrees" if statistics.verdict(ratio) == "indistinguishable" else "differs"


if __name__ == "__main__":
    main()
