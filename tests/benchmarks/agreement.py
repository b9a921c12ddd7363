"""Our CPU timings against independent harnesses, for every kernel in C++, as docs/results/agreement.md.

    python -m tests.benchmarks.agreement [--kernels softmax …] [--workload awkward] [--rounds 6]

For each kernel the default variant is compiled and verified as the pipeline does it. Then, in turn and as
often as there are rounds: our bench measures it with its baselines, as profile does, and for each of the
three callables a process of its own times the same callable with `torch.utils.benchmark` and
pytest-benchmark. Run it on a quiet machine.
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from pipeline.backends.backend import CompileJob
from pipeline.config.catalogue import Catalogue
from pipeline.config.compose import composer
from pipeline.config.groups import options
from pipeline.config.overrides import Overrides
from pipeline.measure import statistics
from pipeline.measure.bench import Bench
from pipeline.measure.commands import Candidate, Reference, SetUp
from pipeline.measure.processor import usable_cores
from pipeline.records.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.outcome import Failure
from pipeline.records.profiled import Interval, Timing
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.specs import ProfileSpec
from pipeline.records.verified import Verified, VerifyOutput
from pipeline.stages import profile
from pipeline.store.layout import entry_path, spec_path
from tests.benchmarks.chain import run_chain
from tests.benchmarks.machine import where

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "results" / "agreement.md"
HARNESSES = ("torch.utils.benchmark", "pytest-benchmark")
KERNELS = tuple(
    sorted(
        path.stem for path in (ROOT / "conf" / "kernel").glob("*.yaml") if "backend: cpp" in path.read_text()
    )
)
Verdict = Literal["agrees", "differs", "undecided"]
TOO_WIDE = 0.25
"""Largest over smallest ratio of the rounds, beyond which they show nothing."""
DISCUSSION = """\
*Ours* and *theirs* are medians over the rounds; in brackets the least and the largest ratio of all rounds
(with six rounds these enclose the median ratio with 97 % confidence). *Intervals overlap*: in how many
rounds our bootstrap interval of the median and the same of the other harness's samples have a value in
common. *Agrees*: the ratios leave room for 1, within the 1 % by which two processes that run the same code
differ; *undecided*: they scatter by more than 25 %, so that nothing was shown. Run this on a quiet machine.

What is the same: callable and call path, threads, cores, priority, allocator, a process of its own. What is
not:

- **Content.** Ours draws fresh content and moves every tensor before each batch, then makes untimed calls
  for 0.5 ms. The others time one content at one place for as long as they run: their caches and branch
  predictors know it better, and where it lies stays a matter of luck for the whole process.
- **Garbage collection.** `torch.utils.benchmark` builds on timeit, which switches it off; pytest-benchmark
  and ours leave it on, as users have it. It shows where calls make many Python objects (eager backward,
  torch.compile's guards).
- **Samples.** Ours are batches of at least 4 ms, torch's are blocks in which the clock costs less than 0.1
  %, pytest-benchmark's are rounds of a few calls. Short samples see single disturbances, which a median
  drops; a batch averages them in.
- **Disturbances.** Ours repeats rounds in which its threads waited for a core; the others keep every
  sample.
"""


class Pair(Record, frozen=True, kw_only=True):
    """One round: medians with their intervals."""

    ours: Interval
    theirs: Interval

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours.value / self.theirs.value

    @property
    def overlap(self) -> bool:
        """Whether the intervals have a value in common."""
        return self.ours.low <= self.theirs.high and self.theirs.low <= self.ours.high


class Row(Record, frozen=True, kw_only=True):
    """One callable under one harness."""

    kernel: str
    callable: str
    harness: str
    pairs: tuple[Pair, ...]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.agreement", description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=kernels_in_cpp())
    parser.add_argument("--workload", default="awkward")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--profile", default="standard", help="the preset")
    chosen = parser.parse_args()
    rows = [row for kernel in chosen.kernels for row in _rows(kernel, chosen)]
    TARGET.write_text("\n".join(_page(rows, chosen)) + "\n")
    print(TARGET.read_text())


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
        pairs: dict[tuple[str, str], list[Pair]] = {}
        with Bench(spec, profile._cost(spec), store, store, {}) as bench:
            bench.prepare()
            for _ in range(chosen.rounds):
                for key, pair in _round(spec, compiled, bench, store).items():
                    pairs.setdefault(key, []).append(pair)
    return [
        Row(kernel=kernel, callable=name, harness=harness, pairs=tuple(found))
        for (name, harness), found in pairs.items()
    ]


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
    return spec, read_record(outputs["compile"], CompileOutput).records[0]


def _round(
    spec: ProfileSpec, compiled: CompileRecord, bench: Bench, store: Path
) -> dict[tuple[str, str], Pair]:
    """Ours and theirs in random order; callable and harness -> the pair."""
    hosted = _hosted(spec, compiled, store)
    turns = ["ours", *hosted]
    random.SystemRandom().shuffle(turns)
    ours: dict[str, Timing] = {}
    theirs: dict[str, dict[str, list[float]]] = {}
    for turn in turns:
        if turn == "ours":
            ours = _ours(spec, compiled, bench, store)
        else:
            theirs[turn] = _theirs(spec, hosted[turn], store)
    return {
        (name, harness): Pair(
            ours=ours[name].median, theirs=statistics.median(samples, spec.settings.confidence)
        )
        for name, measured in theirs.items()
        if name in ours
        for harness, samples in measured.items()
    }


def _hosted(spec: ProfileSpec, compiled: CompileRecord, store: Path) -> dict[str, Candidate | Reference]:
    assert isinstance(compiled.result, Compiled)
    folder = entry_path(store, "compile", compiled.entry).absolute()
    candidate = Candidate(
        job=_job(spec, compiled), compiled=compiled.result, root=str(ROOT), folder=str(folder)
    )
    eager = Reference(function=spec.reference, gradient_of=spec.gradient_of)
    return {"cpp": candidate, "eager": eager, "compile": msgspec.structs.replace(eager, compiled="default")}


def _job(spec: ProfileSpec, compiled: CompileRecord) -> CompileJob:
    variant = compiled.variant
    implementation = spec.implementations[variant.implementation]
    return CompileJob(
        variant=variant, implementation=implementation, problem=spec.problem, target=spec.target
    )


def _ours(spec: ProfileSpec, compiled: CompileRecord, bench: Bench, store: Path) -> dict[str, Timing]:
    """As the stage profile measures.

    Raises
    ------
    SystemExit
        It has no result: too noisy, for example.
    """
    assert isinstance(compiled.result, Compiled)
    candidate = _hosted(spec, compiled, store)["cpp"]
    assert isinstance(candidate, Candidate)
    result = bench.profile(candidate, store)
    if isinstance(result, Failure):
        raise SystemExit(f"{spec.problem.kernel}: {result.outcome}: {result.reason}")
    return {"cpp": result.timing} | {each.baseline: each.timing for each in result.comparisons}


def _theirs(spec: ProfileSpec, hosted: Candidate | Reference, store: Path) -> dict[str, list[float]]:
    """Samples of both harnesses from one fresh process."""
    set_up = SetUp(hosted=hosted, problem=spec.problem, kind="cpu", flush_cache=False)
    given, out = store / "set_up.json", store / "samples.json"
    given.write_bytes(to_json(set_up))
    environment = os.environ | {
        "OMP_NUM_THREADS": str(len(usable_cores())),
        "TORCHINDUCTOR_CACHE_DIR": str((store / "cache" / "inductor").absolute()),
    }
    command = [sys.executable, "-m", "tests.benchmarks.agreement_harness", str(given), str(out)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    found: dict[str, list[float]] = json.loads(out.read_text())
    return found


def _page(rows: list[Row], chosen: argparse.Namespace) -> Iterator[str]:
    yield "# Our CPU timings against independent harnesses\n"
    yield (
        f"Written by `python -m tests.benchmarks.agreement --workload {chosen.workload} "
        f"--rounds {chosen.rounds} --profile {chosen.profile}`."
    )
    yield where(("torch", "numpy", "pytest-benchmark")) + "\n"
    yield "| kernel | callable | harness | ours | theirs | ours / theirs | intervals overlap | verdict |"
    yield "|---|---|---|---:|---:|---:|---:|---|"
    for row in rows:
        low, middle, high = _span(row)
        ours = np.median([pair.ours.value for pair in row.pairs])
        theirs = np.median([pair.theirs.value for pair in row.pairs])
        overlap = sum(pair.overlap for pair in row.pairs)
        yield (
            f"| {row.kernel} | {row.callable} | {row.harness} | {ours * 1e6:.2f} µs | {theirs * 1e6:.2f} µs "
            f"| {middle:.3f} ({low:.3f} – {high:.3f}) | {overlap} of {len(row.pairs)} "
            f"| {verdict(row)} |"
        )
    counts = collections.Counter(map(verdict, rows))
    yield f"\nOf {len(rows)}: " + ", ".join(f"{counts[each]} {each}" for each in get_args(Verdict)) + ".\n"
    yield DISCUSSION


def _span(row: Row) -> tuple[float, float, float]:
    """Least, median and largest ratio of the rounds."""
    ratios = [pair.ratio for pair in row.pairs]
    return min(ratios), float(np.median(ratios)), max(ratios)


def verdict(row: Row) -> Verdict:
    """Whether the rounds' ratios leave room for equality, within what two processes of one code differ by.

    Ratios that scatter widely leave room for everything: then nothing was shown.
    """
    low, _, high = _span(row)
    if high / low > 1 + TOO_WIDE:
        return "undecided"
    room = 1 + statistics.RESOLUTION
    return "agrees" if low <= room and high >= 1 / room else "differs"


if __name__ == "__main__":
    main()
